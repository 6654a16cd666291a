"""The record: what others have, in the very bytes in which the kernel told it.

Bytes, because what others make has attributes that Holdfast knows nothing of; sent back, they mean
the same. Only the indexes of links in them may mean something else by then, so that the names of
the links go along.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from enum import StrEnum

from holdfast.dataclass import dataclass, field


class Kind(StrEnum):
    """In the order in which they are put back."""

    LINK = "link"
    SETTING = "setting"  # of a link, below /proc/sys/net
    TOKEN = "token"  # of a link's IPv6  # noqa: S105 (no secret)
    PORT = "port"  # of a bridge
    ADDRESS = "address"
    NEXTHOP = "nexthop"
    ROUTE = "route"
    NEIGHBOUR = "neighbour"
    FORWARDING = "forwarding entry"  # of a bridge or vxlan
    GROUP = "multicast entry"


@dataclass(frozen=True, slots=True)
class Record:
    moment: float  # seconds of the boot clock: lifetimes go on
    tag: int  # that ours carry
    names: Mapping[int, str] = field(default_factory=dict)  # of all links, by the index they had
    others: Mapping[Kind, Sequence[bytes]] = field(default_factory=dict)
    # All addresses on the links that are touched, ours among them, in the kernel's order.
    order: Sequence[bytes] = ()
    # IPv4 routes that stand beside equal ones, one of which may go: all of these, ours among them,
    # in the kernel's order.
    aliases: Sequence[bytes] = ()
    left_out: Sequence[str] = ()  # what may go and could not be recorded, for people to read

    @property
    def empty(self) -> bool:
        return not (any(self.others.values()) or self.order or self.aliases)


def pack(record: Record) -> bytes:
    said = {
        "moment": record.moment,
        "tag": record.tag,
        "names": {str(index): name for index, name in record.names.items()},
        "others": {kind: _text(bodies) for kind, bodies in record.others.items() if bodies},
        "order": _text(record.order),
        "aliases": _text(record.aliases),
        "leftOut": list(record.left_out),
    }
    return zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)


def unpack(data: bytes) -> Record:
    """ValueError where it is not what `pack` made."""
    try:
        said = json.loads(zlib.decompress(data))
        return Record(
            float(said["moment"]),
            int(said["tag"]),
            {int(index): str(name) for index, name in said["names"].items()},
            {Kind(kind): _bodies(bodies) for kind, bodies in said["others"].items()},
            _bodies(said["order"]),
            _bodies(said.get("aliases", ())),  # not known to those who wrote it before
            tuple(map(str, said["leftOut"])),
        )
    except (zlib.error, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the record of what others had cannot be read: {error!r}") from error


def _text(bodies: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(body).decode() for body in bodies]


def _bodies(said: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(map(base64.b64decode, said))
