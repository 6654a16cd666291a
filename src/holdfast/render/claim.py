"""A claim as documents show it."""

from __future__ import annotations

from typing import Any

from holdfast.engine.claim import Claim


def entry(claim: Claim) -> dict[str, Any]:
    return {
        "artifact": {"kind": claim.key.kind, "name": claim.key.name},
        "owners": list(claim.owners),
        "provenance": claim.provenance.value,
        "state": claim.state.value,
        "fields": dict(claim.fields),
        "fingerprint": claim.fingerprint,
        "origin": claim.origin,
        "generation": claim.generation,
        "original": None if claim.original is None else dict(claim.original),
    }
