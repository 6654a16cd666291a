"""An address that pages are served on."""

from __future__ import annotations

from holdfast.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Listen:
    host: str
    port: int

    @property
    def shown(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def names(self) -> frozenset[str]:
        """What a browser on this machine may call it. Any other name is one that somebody else's
        page had resolve to here, to read what it shows."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset(f"{name}:{self.port}" for name in (host, "localhost")) | frozenset(
            (host, "localhost") if self.port == 80 else ()
        )
