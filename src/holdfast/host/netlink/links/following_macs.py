"""MACs that follow those of other links: a bridge without one of its own takes the lowest of its
ports', a bond that of its first member, a VLAN that of its parent. Each time one moves, the kernel
forgets every neighbour on that link, permanent ones too; addresses and routes stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.engine.artifact import Fields

Links = Mapping[str, Fields]  # by name

MASTERS = ("bridge", "bond")
_NO_MAC = "00:00:00:00:00:00"  # what is left to a bridge when its last port goes
_WAS_SET = "3"  # NET_ADDR_SET


def moves(master: str, fields: Fields, old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the MAC of a bridge or bond may become another one when its ports have other MACs
    than before, or are others."""
    if sorted(old) == sorted(new):
        return False
    if fields["type"] == "bond":
        moved = not old or not new
    else:
        # One that is not the lowest of the ports' was set by somebody, and stays.
        is_lowest = not old or fields["mac"] == min(old)
        moved = is_lowest and fields["mac"] != min(new, default=_NO_MAC)
    return moved and not _was_set(master, fields)


def _was_set(name: str, fields: Fields) -> bool:
    """Netlink does not tell whether a MAC was chosen by somebody. Sysfs does, but it shows the
    links of the namespace it was mounted in, which may be another one: then nobody knows."""
    place = Path("/sys/class/net", name)
    try:
        index, mac, origin = (
            (place / said).read_text().strip()
            for said in ("ifindex", "address", "addr_assign_type")
        )
    except OSError:
        return False
    return (index, mac, origin) == (str(fields["ifindex"]), fields["mac"], _WAS_SET)


def led(name: str, links: Links) -> dict[int, str]:
    """The links whose MAC changes with that of this one, itself among them, by index: VLANs that
    have the same follow it, as far as can be seen. One that was set to it looks alike."""
    found = [name]
    for lower in found:  # grows while it is walked
        found += [
            upper
            for upper, fields in links.items()
            if fields["type"] == "vlan"
            and fields["parent"] == lower
            and fields["mac"] == links[name]["mac"]
            and upper not in found
        ]
    return {int(str(links[each]["ifindex"])): each for each in found}
