"""All addresses, read as often as it matters, and taken apart once each."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.host.netlink import attributes
from holdfast.host.netlink.addresses import address_codec
from holdfast.host.netlink.addresses.address_codec import RTM_GETADDR, SeenAddress
from holdfast.host.netlink.addresses.address_losses import LinkPlace, read_places
from holdfast.host.netlink.socket import NetlinkSocket


class Reading(NamedTuple):
    addresses: list[SeenAddress]
    places: dict[int, LinkPlace]  # of the links they are on, by index


class AddressReader:
    """Reads anew whenever asked. What the kernel says of an address in the very same bytes as
    before, of a link of the same name, is the same address: only the rest is taken apart."""

    def __init__(self, sock: NetlinkSocket) -> None:
        self._sock = sock
        self._known: dict[tuple[bytes, LinkPlace], SeenAddress] = {}

    def read(self) -> Reading:
        # Addresses first: one whose link is then unknown went away with that link meanwhile.
        bodies = self._sock.dump(RTM_GETADDR, bytes(8), "addresses")
        places = read_places(self._sock)
        found = []
        # Only what is there now is kept: a daemon reads for as long as it lives.
        known: dict[tuple[bytes, LinkPlace], SeenAddress] = {}
        for body in bodies:
            place = places.get(attributes.to_int(body[4:8]))
            # Some machines have addresses of other families (Phonet, MCTP), which say other things.
            if place is None or body[0] not in address_codec.FAMILIES:
                continue
            address = self._known.get((body, place))
            if address is None:
                address = address_codec.decode(body, place.name, place.vrf_table)
            known[body, place] = address
            found.append(address)
        self._known = known
        return Reading(found, places)
