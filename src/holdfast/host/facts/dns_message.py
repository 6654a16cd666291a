"""DNS messages: one question out, the addresses in the answer back.

dnspython takes the answers apart, as they are those of strangers. It takes longer to import than
many passes run: this module is for those who ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset
from dns.name import Name
from dns.opcode import Opcode
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from holdfast.dataclass import dataclass
from holdfast.resources.facts import Address

_TYPES = {4: RdataType.A, 6: RdataType.AAAA}
_CHAIN_MAX = 16


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
    try:
        found = dns.name.from_text(text) if text.isascii() and "\\" not in text else dns.name.root
    except dns.exception.DNSException:
        found = dns.name.root
    if found == dns.name.root:
        raise ValueError(f"{text!r} is not a domain name")
    return found


def encode_question(identity: int, name: Name, family: int) -> bytes:
    return dns.message.make_query(name, _TYPES[family], id=identity).to_wire()


def read_answer(data: bytes, identity: int, name: Name, family: int) -> Answer:
    """Raises Nonsense, Truncated or ServerFailed."""
    try:
        # Each record alone: to gather those of one name takes time by the square of their number.
        found = dns.message.from_wire(
            data, one_rr_per_rrset=True, ignore_trailing=True, raise_on_truncation=True
        )
    except dns.message.Truncated as error:
        found = error.message()  # type: ignore[no-untyped-call]  # as dnspython has it
    except Exception as error:  # of whatever kind: a stranger may have written it for that
        raise Nonsense(f"no DNS message: {error}") from error
    _check_question(found, identity, name, family)
    code = found.rcode()
    if code == Rcode.NXDOMAIN:
        return Answer((), 0)
    if code != Rcode.NOERROR:
        raise ServerFailed(f"code {int(code)}")
    if found.flags & dns.flags.TC:
        raise Truncated
    return _follow(name, found.answer, _TYPES[family])


def _check_question(found: dns.message.Message, identity: int, name: Name, family: int) -> None:
    is_answer = found.id == identity and bool(found.flags & dns.flags.QR)
    if not is_answer or found.opcode() != Opcode.QUERY or len(found.question) != 1:
        raise Nonsense("not an answer to this question")
    (asked,) = found.question
    if (asked.name, asked.rdtype, asked.rdclass) != (name, _TYPES[family], RdataClass.IN):
        raise Nonsense("an answer to another question")


def _follow(name: Name, answer: Sequence[dns.rrset.RRset], wanted: RdataType) -> Answer:
    """Only what the chain of aliases from the name asked for leads to counts."""
    records: dict[tuple[Name, int], list[dns.rrset.RRset]] = {}
    for record in answer:
        if record.rdclass == RdataClass.IN:
            records.setdefault((record.name, record.rdtype), []).append(record)
    ttls: list[int] = []
    for _ in range(_CHAIN_MAX):
        own = records.get((name, wanted))
        if own:
            addresses = dict.fromkeys(ip_address(record[0].address) for record in own)
            return Answer(tuple(addresses), min(ttls + [record.ttl for record in own]))
        aliases = records.get((name, RdataType.CNAME))
        if not aliases:
            break
        ttls.append(aliases[0].ttl)
        name = aliases[0][0].target
    return Answer((), 0)
