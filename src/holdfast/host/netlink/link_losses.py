"""What others lose when a link is deleted: what stands on it, and what stands on that."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from holdfast.engine.artifact import Fields, Key
from holdfast.host.netlink import (
    address_codec,
    attributes,
    following_macs,
    link_codec,
    side_effects,
    tags,
)
from holdfast.host.netlink.following_macs import Links
from holdfast.host.netlink.names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.side_effects import FAMILY, IsOurs
from holdfast.host.netlink.socket import NetlinkSocket


def lost_with_link(
    sock: NetlinkSocket, links: Links, name: str, tag: int, ours: IsOurs
) -> list[str]:
    """The kernel deletes the links above a link, and the other end of a pair, along with it; its
    ports stay but are let go, and tunnels through it stay but lead nowhere."""
    lost: list[str] = []
    gone = [name]
    for lower in gone:  # grows while it is walked
        for other, fields in links.items():
            if other in gone:
                continue
            if lower in (fields.get("parent"), fields.get("peer")):
                if fields["type"] != "ip6tnl":
                    gone.append(other)
                if lower == fields.get("parent") and not ours(Key("link", other)):
                    lost.append(f"link {other}, which stands on {lower}")
            elif fields.get("master") == lower and not ours(Key("link", other)):
                lost.append(f"the place of link {other} in {lower}")
    for one in gone:
        if one in links:
            lost += _on_link(sock, one, int(str(links[one]["ifindex"])), tag, ours)
    after = {other: fields for other, fields in links.items() if other not in gone}
    return lost + lost_with_ports(sock, links, after, tag, ours)


def lost_with_ports(
    sock: NetlinkSocket, before: Links, after: Links, tag: int, ours: IsOurs
) -> list[str]:
    """What others lose on the bridges and bonds whose MAC follows their ports."""
    changed = [name for name, fields in before.items() if after.get(name) is not fields]
    masters = {
        links[name]["master"] for links in (before, after) for name in changed if name in links
    }
    lost = []
    for name in sorted(str(master) for master in masters if master in after):
        fields = after[name]
        if fields["type"] in following_macs.MASTERS and following_macs.moves(name, before, after):
            lost += side_effects.lost_with_mac(sock, following_macs.led(name, before), tag, ours)
    return lost


def read_links(sock: NetlinkSocket) -> dict[str, Fields]:
    return decode_links(dump_links(sock))


def decode_links(bodies: Sequence[bytes]) -> dict[str, Fields]:
    names = {
        attributes.to_int(body[4:8]): attributes.to_text(attributes.parse(body, 16)[IFLA_IFNAME])
        for body in bodies
    }
    seen = [link_codec.decode(body, lambda index: names.get(index, "")) for body in bodies]
    return {link.artifact.key.name: link.artifact.fields for link in seen}


def _on_link(sock: NetlinkSocket, dev: str, index: int, tag: int, ours: IsOurs) -> list[str]:
    lost = side_effects.lost_with_link_down(sock, dev, index, tag, ours)
    header = struct.pack("=BBBBI", FAMILY[4], 0, 0, 0, index)
    for body in sock.dump(address_codec.RTM_GETADDR, header, f"addresses on {dev}"):
        address = address_codec.decode(body, dev)
        if address.protocol != tag and not ours(address.key):
            holder = tags.holder_text(address.protocol, tag, address=True)
            lost.append(f"{address.key} ({holder})")
    return lost
