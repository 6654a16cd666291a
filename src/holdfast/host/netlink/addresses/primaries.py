"""Which of several IPv4 addresses in a subnet comes first: that is its primary, and what packets
are sent from. The kernel goes by which was made first, so that one that was deleted and came back
stands behind the others for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Key
from holdfast.engine.driver import Result, Scope
from holdfast.engine.plan import Operation
from holdfast.host import steps
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import (
    RTM_DELADDR,
    RTM_NEWADDR,
    SECONDARY,
    SeenAddress,
)
from holdfast.host.netlink.addresses.address_losses import AddressLosses
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkSocket


def displaced(
    scope: Scope,
    everything: Sequence[SeenAddress],
    losses: Callable[[], AddressLosses],
    is_own: Callable[[SeenAddress], bool],
) -> dict[Key, str]:
    """Declared primaries that stand behind another of ours, by what is said of them. Only where
    putting that right takes nothing from others."""
    found = {}
    for address in everything:
        if not (address.version == 4 and address.flags & SECONDARY and is_own(address)):
            continue
        wanted = scope.declared(address.key)
        if wanted is None or not wanted.fields.get("primary"):
            continue
        group = in_subnet(address, everything)
        before = next((address for address in group if not address.flags & SECONDARY), None)
        if before is None or not all(is_own(address) for address in group):
            continue
        if not any(losses().of(group).values()):
            found[address.key] = f"it stands behind {before.artifact.fields['address']}"
    return found


def put_first(
    sock: NetlinkSocket,
    operation: Operation,
    first: SeenAddress,
    group: Sequence[SeenAddress],
    tag: int,
) -> Result:
    """All of them go and come again, in their order but for the first. group: all of the subnet."""
    others = [address for address in group if address.key != first.key]
    placeholder = address_codec.placeholder(first.index, tag)
    held = steps.send(sock, RTM_NEWADDR, CREATE | EXCL, placeholder) is None
    for other in (first, *reversed(others)):
        steps.send(sock, RTM_DELADDR, 0, address_codec.delete_body(other))
    problems = []
    for other in (first, *others):
        error = steps.send(sock, RTM_NEWADDR, CREATE | EXCL, other.body)
        if error is not None:
            problems.append(f"{other.key}: {error}")
    if held:
        steps.send(sock, RTM_DELADDR, 0, placeholder)
    if problems:
        return steps.failed(operation, "; ".join(problems))
    return steps.done(operation, *(f"{other.key} was made anew behind it" for other in others))


def in_subnet(address: SeenAddress, everything: Sequence[SeenAddress]) -> list[SeenAddress]:
    """Those that the kernel takes for one subnet, in its order."""
    return [one for one in everything if one.version == 4 and one.subnet == address.subnet]
