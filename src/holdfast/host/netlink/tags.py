"""Protocol numbers, the kernel's ownership tags: which one is ours, and whose the others are."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engine import protocols
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim

REDIRECT, KERNEL, ROUTER_ADVERTISEMENT = 1, 2, 9
NOBODY = -1  # a tag that nothing carries

# Addresses have numbers of their own (if_addr.h): the kernel's loopback, router advertisements,
# link-local.
_ADDRESS_WRITERS = {1: "kernel_lo", 2: "kernel_ra", 3: "kernel_ll"}
KERNEL_ADDRESSES = frozenset(_ADDRESS_WRITERS)


def tag_text(protocol: int, tag: int) -> str:
    """The tag of a sighting: empty unless it is ours."""
    return f"protocol {tag}" if protocol == tag else ""


def holder_text(protocol: int, tag: int = NOBODY, *, address: bool = False) -> str:
    """Whose an object seems to be, for people to read; empty where it carries our tag."""
    if protocol == tag:
        return ""
    if protocol == 0:
        return "protocol 0 (made by hand or by a program that sets none)"
    return f"protocol {(_ADDRESS_WRITERS if address else protocols.NAMES).get(protocol, protocol)}"


def retag(protocol: int, tag: int) -> int | None:
    """What a sighting of ours is to be tagged with; None where it is."""
    return tag if protocol != tag else None


def untagged(
    claims: Mapping[Key, Claim], tag: int, former: frozenset[int] = frozenset()
) -> dict[Key, Claim]:
    """The claims on what carries no tag of ours. What was claimed with our tag and lacks it now,
    somebody else has put there."""
    ours = {tag, *former}
    return {key: claim for key, claim in claims.items() if claim.fields.get("protocol") not in ours}
