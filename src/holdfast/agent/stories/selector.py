"""What somebody means by `eth0`, `route 10.0.0.0/24`, `192.0.2.1` or `RouteList/transit`."""

from __future__ import annotations

import ipaddress
import re

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.kinds import KINDS
from holdfast.errors import HoldfastError

_RESOURCE = re.compile(r"[A-Z]\w*/.+")
# The words that `ip` and `nft` take too.
_ALIASES = {
    "addr": "address",
    "neigh": "neighbour",
    "neighbor": "neighbour",
    "r": "route",
    "dev": "link",
    "interface": "link",
    "table": "nft",
}
_NFT_FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
_SERVICE = re.compile(r"[a-z][a-z0-9-]*")
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
        match key.kind:
            case "hostname":
                return self.words in ((), ("system",))
            case "rule":
                return len(self.words) == 1 and _priority(key.name) == self.words[0]
            case "route" | "address" | "neighbour":
                return self._ip_matches(key)
        return False

    def claimed(self, claim: Claim) -> bool:
        return self.resource in claim.owners if self.resource else self.matches(claim.key)

    @property
    def destinations(self) -> tuple[Network, ...]:
        """The destinations a route may have to be meant."""
        if "route" not in self.kinds or not self.words:
            return ()
        if self.words[0] == "default":
            return tuple(ipaddress.ip_network(each) for each in _DEFAULTS)
        given = _interface(self.words[0])
        if given is None:
            return ()
        # 192.0.2.1/24 is an address; only somebody who says `route` means the network around it.
        if given.ip != given.network.network_address and self.kinds != {"route"}:
            return ()
        return (given.network,)

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
        if key.kind == "route":
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
    if kind in KINDS and (len(words) > 1 or kind == "hostname"):
        rest = words[1:]
        return Selector(text, frozenset({kind}), tuple(rest))
    return Selector(text, _kinds_of(words[0]), tuple(words))


def _kinds_of(word: str) -> frozenset[str]:
    if word == "default":
        return frozenset({"route"})
    if word.startswith("/"):
        return frozenset({"file"})
    if _interface(word) is not None:
        return frozenset({"address", "route", "neighbour"})
    if word in _NFT_FAMILIES:
        return frozenset({"nft"})
    # A VLAN link and a kernel setting may both have dots in their names.
    services = {"service"} if _SERVICE.fullmatch(word) else set()
    return frozenset({"link", "sysctl"} | services)


def _interface(text: str) -> Interface | None:
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def _priority(name: str) -> str:
    return name.removeprefix("inet6 ").partition(":")[0]
