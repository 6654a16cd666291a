"""Claims and files to fill ledgers with."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim, ClaimState, Provenance


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: bytes


def claim(number: int, generation: int = 1, **changes: object) -> Claim:
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    values: dict[str, object] = {
        "key": Key("address", f"{address}/32 dev lan0"),
        "owners": ("IPv4StaticAddress/lan", "IPv4StaticAddress/guest"),
        "provenance": Provenance.CREATED,
        "state": ClaimState.OWNED,
        "fields": {"address": address, "prefix_length": 32, "no_prefix_route": False},
        "origin": f"router.yaml:{number + 1}:3",
        "generation": generation,
        "epoch": "boot/42",
    }
    return Claim(**(values | changes))  # type: ignore[arg-type]  # values of mixed types by name
