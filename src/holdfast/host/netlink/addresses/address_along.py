"""What of ours the kernel takes along with addresses: all that goes, less what others lose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from holdfast.engine.artifact import Key
from holdfast.engine.observed import Along
from holdfast.host.netlink import side_effects, tags
from holdfast.host.netlink.addresses.address_codec import SeenAddress
from holdfast.host.netlink.addresses.address_losses import (
    AddressLosses,
    Arriving,
    LinkPlace,
    Losses,
)
from holdfast.host.netlink.side_effects import Lost
from holdfast.host.netlink.socket import NetlinkSocket


def whoever(
    sock: NetlinkSocket,
    everything: Sequence[SeenAddress],
    places: Mapping[int, LinkPlace],
    coming: Collection[Arriving],
) -> AddressLosses:
    """Tells what goes whoever made it."""
    tag, ours = tags.NOBODY, side_effects.nobody
    return AddressLosses(sock, everything, places, tag, ours, coming, all_go=True)


def swept(
    gone: Sequence[SeenAddress],
    losses: AddressLosses,
    declared: Collection[Key],
    is_own: Callable[[SeenAddress], bool],
) -> dict[Key, list[Key]]:
    """Declared addresses of ours that the kernel deletes with others, by those. Whoever deletes
    those puts them back at once."""
    leaving = {address.key for address in gone}
    return {
        address.key: [
            other.key
            for other in losses.secondaries(address)
            if other.key in declared and other.key not in leaving and is_own(other)
        ]
        for address in gone
    }


def along(
    all_: Losses, others: Losses, secondaries: Mapping[Key, Sequence[Key]]
) -> dict[Key, Sequence[Along]]:
    return {
        key: [
            *(Along(other, str(other)) for other in secondaries.get(key, ())),
            *(
                Along(one.key, one.plain)
                for one in dict.fromkeys(lost)
                if isinstance(one, Lost) and one not in others[key]
            ),
        ]
        for key, lost in all_.items()
    }
