"""What somebody means by `eth0`, `route 10.0.0.0/24`, `192.0.2.1` or `RouteList/transit`."""

from __future__ import annotations

import ipaddress
import re

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key, NamedBy
from holdfast.engine.claim import Claim
from holdfast.engine.kinds import KINDS
from holdfast.errors import HoldfastError

_RESOURCE = re.compile(r"[A-Z]\w*/.+")
_ALIASES = {alias: name for name, kind in KINDS.items() for alias in kind.naming.aliases}
_OF_ADDRESSES = frozenset(
    name for name, kind in KINDS.items() if kind.naming.by is not NamedBy.ITSELF
)
_OF_DESTINATIONS = frozenset(
    name for name, kind in KINDS.items() if kind.naming.by is NamedBy.DESTINATION
)
_LIKE_AN_ADDRESS = re.compile(r"\d+(?:\.\d+){3,}(?:/.*)?|[0-9a-fA-F]*:[0-9a-fA-F.]*:.*|[\d.]+/\d+")
_DEFAULTS = ("0.0.0.0/0", "::/0")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class Selector:
    text: str  # as it was given
    kinds: frozenset[str] = frozenset()  # artifact kinds it may be about
    words: tuple[str, ...] = ()  # without the kind
    resource: str = ""  # "RouteList/transit" where it names a resource

    def matches(self, key: Key) -> bool:
        """Is this artifact meant?"""
        if key.kind not in self.kinds:
            return False
        if key.name.split() == list(self.words):
            return True
        if key.kind in _OF_ADDRESSES:
            return self._ip_matches(key)
        naming = KINDS[key.kind].naming
        return self.words == ((naming.short(key.name),) if not naming.sole else ())

    def claimed(self, claim: Claim) -> bool:
        return self.resource in claim.owners if self.resource else self.matches(claim.key)

    @property
    def destinations(self) -> tuple[Network, ...]:
        """The destinations a route may have to be meant."""
        if self.kinds.isdisjoint(_OF_DESTINATIONS) or not self.words:
            return ()
        if self.words[0] == "default":
            return tuple(ipaddress.ip_network(each) for each in _DEFAULTS)
        given = _interface(self.words[0])
        if given is None:
            return ()
        # 192.0.2.1/24 is an address; only somebody who says `route` means the network around it.
        if given.ip != given.network.network_address and not self.kinds <= _OF_DESTINATIONS:
            return ()
        return (given.network,)

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """Where it is one address, bare or as a prefix of its own, which some route leads to."""
        if self.kinds.isdisjoint(_OF_DESTINATIONS) or len(self.words) != 1:
            return None
        given = _interface(self.words[0])
        alone = given is not None and given.network.prefixlen == given.max_prefixlen
        return given.ip if given is not None and alone else None

    def option(self, name: str) -> str:
        """The word after `table`, `metric` or `dev`; empty where it was not said."""
        words = list(self.words)
        at = words.index(name) if name in words else -1
        return words[at + 1] if 0 <= at < len(words) - 1 else ""

    def _ip_matches(self, key: Key) -> bool:
        name, *rest = key.name.split()
        if any(
            self.option(option) not in ("", rest[rest.index(option) + 1] if option in rest else "")
            for option in ("table", "metric", "dev")
        ):
            return False
        if key.kind in _OF_DESTINATIONS:
            return any(name == str(network) for network in self.destinations)
        given = _interface(self.words[0]) if self.words else None
        seen = _interface(name)
        if given is None or seen is None or given.ip != seen.ip:
            return False
        return not ("/" in self.words[0] and "/" in name) or given.network == seen.network


def parse(text: str) -> Selector:
    """Raises where it can be about nothing."""
    words = text.split()
    if not words:
        raise HoldfastError("an empty name is about nothing")
    if len(words) == 1 and _RESOURCE.fullmatch(words[0]):
        return Selector(text, resource=words[0])
    kind = _ALIASES.get(words[0], words[0])
    if kind in KINDS and (len(words) > 1 or KINDS[kind].naming.sole):
        rest = words[1:]
        if kind in _OF_ADDRESSES:
            _refuse_misspelt(rest[0])
        return Selector(text, frozenset({kind}), tuple(rest))
    _refuse_misspelt(words[0])
    return Selector(text, _kinds_of(words[0]), tuple(words))


def _refuse_misspelt(word: str) -> None:
    """What only an address or a prefix looks like, and is none: no link is meant by it."""
    if not _LIKE_AN_ADDRESS.fullmatch(word) or _interface(word) is not None:
        return
    exactly = ipaddress.IPv6Interface if ":" in word else ipaddress.IPv4Interface
    try:
        exactly(word)
    except ValueError as error:
        raise HoldfastError(f"{word} is no address or prefix: {error}") from None


def _kinds_of(word: str) -> frozenset[str]:
    if _interface(word) is not None:
        return _OF_ADDRESSES
    sure = frozenset(name for name, kind in KINDS.items() if kind.naming.recognised(word))
    return sure or frozenset(name for name, kind in KINDS.items() if kind.naming.guessed(word))


def _interface(text: str) -> Interface | None:
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None
