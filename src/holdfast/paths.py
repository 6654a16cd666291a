"""Where Holdfast keeps things. `--root DIR` moves all of them at once."""

from __future__ import annotations

from pathlib import Path

from holdfast.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Paths:
    root: Path = Path("/")

    def under(self, absolute: str) -> Path:
        """The place of an absolute path below the root."""
        return self.root / absolute.lstrip("/")

    @property
    def config(self) -> Path:
        return self.under("/etc/holdfast/router.yaml")

    @property
    def state_dir(self) -> Path:
        return self.under("/var/lib/holdfast")

    @property
    def frr(self) -> Path:
        """Where FRR's daemons have their sockets."""
        return self.under("/run/frr")

    @property
    def ledger(self) -> Path:
        return self.state_dir / "state.db"
