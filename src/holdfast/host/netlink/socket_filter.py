"""Which multicast messages the kernel keeps from us: a classic BPF program on the socket.

Another program may change ten thousand routes a second, and each of its messages would wake us up.
The kernel drops those that cannot be about anything of ours, before they take up any buffer.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.dataclass import dataclass
from holdfast.host.netlink import tags
from holdfast.host.netlink.routes.route_codec import HEAD, RTA_MULTIPATH, RTM_DELROUTE, RTM_NEWROUTE
from holdfast.host.netlink.socket import EXCL

RTM_NEWNEIGH, RTM_DELNEIGH = 28, 29
NDA_PROTOCOL = 12
# Entries that somebody declared; those in passing states the kernel learned.
LASTING_NEIGHBOUR = 0x80 | 0x40

_SO_ATTACH_FILTER = 26
_INSTRUCTION = struct.Struct("=HBBI")

# BPF loads are in network order, and messages in the machine's: of a number of two bytes that is
# below 256 only one is loaded, wherever it stands.
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)
_TYPE, _FLAGS_HIGH, _PORT = 4 + _LOW, 6 + _HIGH, 12
# Of a route (rtmsg) and a neighbour (ndmsg), behind the netlink header.
_FAMILY, _PREFIX_LENGTH, _PROTOCOL, _NEIGHBOUR_STATE, _ATTRIBUTES = 16, 17, 21, 24 + _LOW, 28
_DESTINATION = 16 + HEAD + 4
# Places more than this are not told apart: each is looked for in every message, one by one.
_MOST_PLACES = 16

_LOAD_BYTE, _LOAD_WORD, _LOAD_BYTE_AT_X = 0x30, 0x20, 0x50
_LOAD_NUMBER, _LOAD_X_NUMBER, _A_TO_X = 0x00, 0x01, 0x07
_IF_EQUAL, _IF_ANY_BIT, _JUMP, _RETURN = 0x15, 0x45, 0x05, 0x06
# The offset of an attribute of type X, looked for from A on; 0 where there is none.
_FIND_ATTRIBUTE = 0xFFFFF000 + 12
_ALL, _NOTHING = 0xFFFFFFFF, 0


class _Step(NamedTuple):
    code: int
    number: int = 0
    then: str = ""  # a label; "" is the next step
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What messages about routes and neighbours are let through. All others always are.

    Routes: those with one of `protocols`; default routes, which facts are made of; new ones that
    replaced one or came beside one (the kernel says EXCL of all others, whatever was asked of it),
    which may be ours; and IPv6 ones with several legs, of which one may be ours, for the kernel
    tells the protocol of one leg alone. Of those that go, the ones at `places`, which others hold,
    and the kernel's own that somebody deleted: others go with their address, which is told.
    Neighbours: those with one of `protocols`, and lasting ones; `neighbours` lets all through.
    """

    protocols: frozenset[int]
    ports: frozenset[int] = frozenset()  # of ours: our own changes to both are no news
    neighbours: bool = False
    places: frozenset[bytes] | None = frozenset()  # packed addresses of destinations; None: all


def attach(sock: socket.socket, wanted: Wanted) -> None:
    code = program(wanted)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: the number of instructions, and where they are.
    described = struct.pack("@HP", len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


def program(wanted: Wanted) -> bytes:
    steps: list[_Step | str] = [
        _Step(_LOAD_BYTE, _TYPE),
        _Step(_IF_EQUAL, RTM_NEWROUTE, "route"),
        _Step(_IF_EQUAL, RTM_DELROUTE, "route"),
        _Step(_IF_EQUAL, RTM_NEWNEIGH, "neighbour"),
        _Step(_IF_EQUAL, RTM_DELNEIGH, "neighbour", "take"),
        "route",
        *_drop_own(wanted.ports),
        _Step(_LOAD_BYTE, _PROTOCOL),
        *(_Step(_IF_EQUAL, protocol, "take") for protocol in sorted(wanted.protocols)),
        _Step(_LOAD_BYTE, _PREFIX_LENGTH),
        _Step(_IF_EQUAL, 0, "take"),
        _Step(_LOAD_BYTE, _TYPE),
        _Step(_IF_EQUAL, RTM_NEWROUTE, "", "gone"),
        _Step(_LOAD_BYTE, _FLAGS_HIGH),
        _Step(_IF_ANY_BIT, EXCL >> 8, "legs", "take"),
        "gone",
        _Step(_LOAD_BYTE, _PROTOCOL),
        _Step(_IF_EQUAL, tags.KERNEL, "", "places"),
        _Step(_LOAD_WORD, _PORT),
        _Step(_IF_EQUAL, 0, "", "take"),
        "places",
        *_at(wanted.places),
        "legs",
        _Step(_LOAD_BYTE, _FAMILY),
        _Step(_IF_EQUAL, socket.AF_INET6, "", "drop"),
        *_find(RTA_MULTIPATH),
        _Step(_IF_EQUAL, 0, "drop", "take"),
        "neighbour",
        *_drop_own(wanted.ports),
        _Step(_LOAD_BYTE, _FAMILY),
        _Step(_IF_EQUAL, socket.AF_INET, "state"),
        # Not those of bridges, which they keep by the thousand.
        _Step(_IF_EQUAL, socket.AF_INET6, "", "drop"),
        "state",
        *([_Step(_JUMP, 0, "take")] if wanted.neighbours else []),
        _Step(_LOAD_BYTE, _NEIGHBOUR_STATE),
        _Step(_IF_ANY_BIT, LASTING_NEIGHBOUR, "take"),
        *_find(NDA_PROTOCOL),
        _Step(_IF_EQUAL, 0, "drop"),
        _Step(_A_TO_X),
        _Step(_LOAD_BYTE_AT_X, 4),
        *(_Step(_IF_EQUAL, protocol, "take") for protocol in sorted(wanted.protocols)),
        "drop",
        _Step(_RETURN, _NOTHING),
        "take",
        _Step(_RETURN, _ALL),
    ]
    return _assemble(steps)


def _drop_own(ports: Iterable[int]) -> list[_Step]:
    swapped = (int.from_bytes(port.to_bytes(4, sys.byteorder), "big") for port in sorted(ports))
    return [_Step(_LOAD_WORD, _PORT), *(_Step(_IF_EQUAL, one, "drop") for one in swapped)]


def _at(places: frozenset[bytes] | None) -> Iterator[_Step | str]:
    """Of an IPv6 destination the first half will do: whoever reads the message sees the rest."""
    if places is None or len(places) > _MOST_PLACES:
        yield _Step(_JUMP, 0, "take")
    elif places:
        yield _Step(_LOAD_BYTE, _FAMILY)
        yield _Step(_IF_EQUAL, socket.AF_INET6, "six")
        yield _Step(_LOAD_WORD, _DESTINATION)
        for place in sorted(place for place in places if len(place) == 4):
            yield _Step(_IF_EQUAL, int.from_bytes(place, "big"), "take")
        yield _Step(_JUMP, 0, "drop")
        yield "six"
        for place in sorted({place[:8] for place in places if len(place) == 16}):
            other = f"other than {place.hex()}"
            yield _Step(_LOAD_WORD, _DESTINATION)
            yield _Step(_IF_EQUAL, int.from_bytes(place[:4], "big"), "", other)
            yield _Step(_LOAD_WORD, _DESTINATION + 4)
            yield _Step(_IF_EQUAL, int.from_bytes(place[4:], "big"), "take")
            yield other


def _find(attribute: int) -> tuple[_Step, ...]:
    return (
        _Step(_LOAD_NUMBER, _ATTRIBUTES),
        _Step(_LOAD_X_NUMBER, attribute),
        _Step(_LOAD_WORD, _FIND_ATTRIBUTE),
    )


def _assemble(steps: Sequence[_Step | str]) -> bytes:
    places: dict[str, int] = {}
    real: list[_Step] = []
    for step in steps:
        if isinstance(step, str):
            places[step] = len(real)
        else:
            real.append(step)
    code = bytearray()
    for at, step in enumerate(real, 1):
        then = places[step.then] - at if step.then else 0
        otherwise = places[step.otherwise] - at if step.otherwise else 0
        if step.code == _JUMP:
            code += _INSTRUCTION.pack(_JUMP, 0, 0, then)
        else:
            code += _INSTRUCTION.pack(step.code, then, otherwise, step.number)
    return bytes(code)
