"""DNS messages: one question out, the addresses in the answer back (RFC 1035)."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

from holdfast.dataclass import dataclass
from holdfast.resources.facts import Address

_HEADER = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")  # type, class, TTL, length
_A, _CNAME, _AAAA, _IN = 1, 5, 28, 1
_RESPONSE, _OPCODE, _TRUNCATED, _RECURSE, _CODE = 0x8000, 0x7800, 0x0200, 0x0100, 0x000F
_NO_ERROR, _NO_SUCH_NAME = 0, 3
_TYPES = {4: _A, 6: _AAAA}
_CHAIN_MAX = 16
# RFC 8767: 32 bits with the highest one set are to be read as 0.
_TTL_MAX = 0x7FFFFFFF

Name = tuple[bytes, ...]  # labels, in lower case


class Nonsense(ValueError):  # noqa: N818 (as below)
    """Not an answer to the question asked: to be passed over, as anybody may have sent it."""


class Truncated(Exception):  # noqa: N818 (a turn of the conversation, not an error)
    """The answer did not fit; it has to be asked for over TCP."""


class ServerFailed(Exception):  # noqa: N818 (as above)
    """The server answered that it cannot answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    addresses: tuple[Address, ...]
    ttl: int  # in seconds; 0 where the server says that there are none


def parse_name(text: str) -> Name:
    """ValueError: no name that can be asked for."""
    plain = text.removesuffix(".").lower()
    labels = tuple(label.encode() for label in plain.split("."))
    if not all(1 <= len(label) <= 63 for label in labels) or len(plain) > 253 or not text.isascii():
        raise ValueError(f"{text!r} is not a domain name")
    return labels


def encode_question(identity: int, name: Name, family: int) -> bytes:
    header = _HEADER.pack(identity, _RECURSE, 1, 0, 0, 0)
    labels = b"".join(bytes((len(label),)) + label for label in name)
    return header + labels + b"\0" + struct.pack("!HH", _TYPES[family], _IN)


def read_answer(data: bytes, identity: int, name: Name, family: int) -> Answer:
    """Raises Nonsense, Truncated or ServerFailed."""
    try:
        return _read(data, identity, name, family)
    except (struct.error, IndexError) as error:
        raise Nonsense("cut short") from error


def _read(data: bytes, identity: int, name: Name, family: int) -> Answer:
    found, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    if found != identity or not flags & _RESPONSE or flags & _OPCODE or questions != 1:
        raise Nonsense("not an answer to this question")
    asked, offset = _name(data, _HEADER.size)
    if asked != name or struct.unpack_from("!HH", data, offset) != (_TYPES[family], _IN):
        raise Nonsense("an answer to another question")
    code = flags & _CODE
    if code == _NO_SUCH_NAME:
        return Answer((), 0)
    if code != _NO_ERROR:
        raise ServerFailed(f"code {code}")
    if flags & _TRUNCATED:
        raise Truncated
    return _follow(name, _records(data, offset + 4, answers), family)


Records = dict[tuple[Name, int], list[tuple[int, bytes | Name]]]  # name, type -> TTL, data


def _records(data: bytes, offset: int, count: int) -> Records:
    found: Records = {}
    for _ in range(count):
        owner, offset = _name(data, offset)
        kind, group, ttl, length = _RECORD.unpack_from(data, offset)
        offset += _RECORD.size
        body = data[offset : offset + length]
        if len(body) < length:
            raise Nonsense("cut short")
        ttl = 0 if ttl > _TTL_MAX else ttl
        if group == _IN and kind == _CNAME:
            found.setdefault((owner, kind), []).append((ttl, _name(data, offset)[0]))
        elif group == _IN and kind in (_A, _AAAA):
            found.setdefault((owner, kind), []).append((ttl, body))
        offset += length
    return found


def _follow(name: Name, records: Records, family: int) -> Answer:
    """Only what the chain of aliases from the name asked for leads to counts."""
    ttls: list[int] = []
    for _ in range(_CHAIN_MAX):
        own = records.get((name, _TYPES[family]))
        if own:
            size = 4 if family == 4 else 16
            bodies = [body for _, body in own if isinstance(body, bytes) and len(body) == size]
            parse = IPv4Address if family == 4 else IPv6Address
            ttl = min(*ttls, *(ttl for ttl, _ in own), _TTL_MAX)
            return Answer(tuple(dict.fromkeys(map(parse, bodies))), ttl)
        aliases = records.get((name, _CNAME))
        if not aliases:
            break
        ttl, target = aliases[0]
        if not isinstance(target, tuple):
            break
        ttls.append(ttl)
        name = target
    return Answer((), 0)


def _name(data: bytes, offset: int) -> tuple[Name, int]:
    """A name and where it ends. Pointers lead backwards only, so that they come to an end."""
    labels: list[bytes] = []
    end, before = 0, offset
    while True:
        size = data[offset]
        if size >= 0xC0:
            end = end or offset + 2
            offset = (size & 0x3F) << 8 | data[offset + 1]
            if offset >= before:
                raise Nonsense("a name that points forward")
            before = offset
        elif size >= 0x40:
            raise Nonsense("a label of unknown type")
        elif size == 0:
            return tuple(labels), end or offset + 1
        else:
            label = data[offset + 1 : offset + 1 + size]
            if len(label) < size or len(labels) > 127:
                raise Nonsense("cut short")
            labels.append(label.lower())
            offset += 1 + size
