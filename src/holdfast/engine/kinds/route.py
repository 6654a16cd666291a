"""Routes, the one bulk kind: packed keys under shared templates.

Canonical form is what the kernel reads back: IPv6 metric 1024 where none is given, destination
masked, `default` spelt 0.0.0.0/0 or ::/0, table as a number.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from holdfast.dataclass import dataclass, replace
from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    BulkGroup,
    BulkKind,
    Fields,
    Key,
    NamedBy,
    Naming,
    PartialLook,
    Value,
)
from holdfast.engine.kinds.link import LINK
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

MAIN_TABLE = 254
IPV6_DEFAULT_METRIC = 1024
_SCOPE = "!BIIB"  # family, table, metric, aside
DEFAULTS = ("0.0.0.0/0", "::/0")
TYPES = ("unicast", "blackhole", "unreachable", "prohibit")


@dataclass(frozen=True, slots=True)
class Nexthop:
    gateway: str = ""  # canonical address; an IPv6 gateway under an IPv4 route is fine
    # "": which link the gateway is behind is not known yet. Left to the kernel, it would be any
    # that it has a way over at that moment, for as long as the route lives.
    dev: str = ""
    weight: int = 1
    onlink: bool = False

    def __str__(self) -> str:
        words = []
        if self.gateway:
            words += ["via", self.gateway]
        if self.dev:
            words += ["dev", self.dev]
        if self.weight != 1:
            words += ["weight", str(self.weight)]
        if self.onlink:
            words.append("onlink")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class RouteTemplate:
    """Everything about a route but its destination."""

    family: int  # 4 or 6
    table: int = MAIN_TABLE
    metric: int = 0  # IPv6: 1024 where the user gave none; use `template()`
    type: str = "unicast"
    nexthops: tuple[Nexthop, ...] = ()  # one, or the ECMP legs in the order given
    prefsrc: str = ""
    mtu: int = 0
    # What a route may say besides, as `ip` writes it ("advmss 1400"). None is made with it.
    other: str = ""
    protocol: int = 0  # the tag of before that it carries still; 0: the one that is given now

    @property
    def aside(self) -> int:
        """Not 0: the kernel keeps it beside others of the same destination and metric."""
        return 0


def template(
    family: int,
    *,
    table: int = MAIN_TABLE,
    metric: int = 0,
    kind: str = "unicast",
    nexthops: tuple[Nexthop, ...] = (),
    prefsrc: str = "",
    mtu: int = 0,
) -> RouteTemplate:
    """A template in canonical form."""
    if family == 6 and metric == 0:
        metric = IPV6_DEFAULT_METRIC
    return RouteTemplate(family, table, metric, kind, nexthops, prefsrc, mtu)


def scope(shared: RouteTemplate) -> bytes:
    """What all routes of a template have in common of their identity."""
    return struct.pack(_SCOPE, shared.family, shared.table, shared.metric, shared.aside)


def pack_key(packed_destination: bytes, prefix_length: int) -> bytes:
    """The key of a route in its batch: prefix length, then the network address."""
    return bytes((prefix_length,)) + packed_destination


def batch(shared: RouteTemplate, keys: list[bytes]) -> Batch:
    return Batch(ROUTE, shared, keys)


def destination(key: bytes) -> str:
    family = socket.AF_INET if len(key) == 5 else socket.AF_INET6
    return f"{socket.inet_ntop(family, key[1:])}/{key[0]}"


def route_key(prefix: str, family: int, table: int, metric: int) -> Key:
    name = prefix
    if table != MAIN_TABLE:
        name += f" table {table}"
    if metric != (IPV6_DEFAULT_METRIC if family == 6 else 0):
        name += f" metric {metric}"
    return Key(ROUTE.name, name)


def expand(shared: RouteTemplate, key: bytes) -> Artifact:
    prefix = destination(key)
    fields: dict[str, Value] = {
        "destination": prefix,
        "table": shared.table,
        "metric": shared.metric,
        "type": shared.type,
        "nexthops": tuple(str(nexthop) for nexthop in shared.nexthops),
        "prefsrc": shared.prefsrc,
        "mtu": shared.mtu,
    }
    if shared.other:
        fields["other"] = shared.other
    if shared.protocol:
        fields["protocol"] = shared.protocol
    return Artifact(route_key(prefix, shared.family, shared.table, shared.metric), fields)


def identify(fields: Fields) -> tuple[bytes, bytes]:
    """The scope and key of a route from the fields that `expand` gives it."""
    address, _, length = str(fields["destination"]).partition("/")
    family = 6 if ":" in address else 4
    packed = socket.inet_pton(socket.AF_INET6 if family == 6 else socket.AF_INET, address)
    table, metric = fields["table"], fields["metric"]
    shared = RouteTemplate(family, int(str(table)), int(str(metric)))
    return scope(shared), pack_key(packed, int(length))


@lru_cache(maxsize=1024)
def parse_nexthop(text: str) -> Nexthop:
    """The inverse of `str(nexthop)`."""
    words = iter(text.split())
    found = Nexthop()
    for word in words:
        match word:
            case "via":
                found = replace(found, gateway=next(words))
            case "dev":
                found = replace(found, dev=next(words))
            case "weight":
                found = replace(found, weight=int(next(words)))
            case "onlink":
                found = replace(found, onlink=True)
            case _:
                raise ValueError(f"no nexthop: {text!r}")
    return found


def template_of(artifact: Artifact) -> tuple[RouteTemplate, bytes]:
    """The inverse of `expand`: the template and key of one route."""
    fields: Any = artifact.fields
    _, key = identify(fields)
    shared = RouteTemplate(
        4 if len(key) == 5 else 6,
        fields["table"],
        fields["metric"],
        fields["type"],
        tuple(parse_nexthop(text) for text in fields["nexthops"]),
        fields["prefsrc"],
        fields["mtu"],
        fields.get("other", ""),
    )
    return shared, key


def identity(key: Key) -> bytes:
    """Scope and key of the route that `route_key` named so."""
    prefix, *words = key.name.split(" ")
    given = dict(zip(words[::2], words[1::2], strict=True))
    metric = IPV6_DEFAULT_METRIC if ":" in prefix else 0
    return b"".join(
        identify(
            {
                "destination": prefix,
                "table": int(given.get("table", MAIN_TABLE)),
                "metric": int(given.get("metric", metric)),
            }
        )
    )


def split_identity(identity: bytes) -> tuple[bytes, bytes]:
    """Scope and key. The family comes first in a scope; a key is its length and an address of that
    family."""
    size = 5 if identity[0] == 4 else 17
    return identity[:-size], identity[-size:]


def in_table(table: int) -> BulkGroup:
    """All routes of a routing table."""
    return ROUTE.name, str(table)


def _table_of(scope: bytes) -> str:
    return str(struct.unpack(_SCOPE, scope)[1])


def unfit(key: Key, fields: Fields) -> str:
    """The kernel takes no route over a link that is down, and drops those that are there."""
    return "it is down" if key.kind == LINK.name and fields.get("up") is False else ""


def matches(field: str, desired: Value, seen: Value) -> bool:
    """A claim of an earlier version may hold a leg without its link, which the kernel chose."""
    if field != "nexthops" or not isinstance(desired, tuple) or not isinstance(seen, tuple):
        return desired == seen
    return len(desired) == len(seen) and all(
        want == have or ("dev" not in want.split() and want == _without_dev(have))
        for want, have in zip(desired, seen, strict=True)
    )


def _without_dev(nexthop: str) -> str:
    words = nexthop.split()
    if "dev" in words:
        at = words.index("dev")
        del words[at : at + 2]
    return " ".join(words)


def vital(artifact: Artifact) -> str:
    """A default route; but one that drops what it gets leads nowhere. Those of other tables are for
    what rules lead there, and none of them stands in for the one of the main table."""
    fields = artifact.fields
    if fields.get("destination") not in DEFAULTS or fields.get("type") != "unicast":
        return ""
    name = f"the IPv{6 if ':' in str(fields['destination']) else 4} way out"
    return name if fields.get("table") == MAIN_TABLE else f"{name} by other tables"


def urgent(artifact: Artifact, _operation: Operation) -> str:
    """A default route, also one that drops what must not take another way out."""
    if artifact.fields.get("destination") not in DEFAULTS:
        return ""
    return vital(artifact) or "what is to be held back"


def risk(verb: Verb, subject: Artifact | Batch, _changes: Changes) -> Cost:
    if _has_default(subject):
        note = {
            Verb.CREATE: "sends what no other route matches this way",
            Verb.DELETE: "what no other route matches is no longer reachable",
        }
        return Risk.HIGH, note.get(verb, "moves what no other route matches")
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.MEDIUM, "the destination may become unreachable"
    return (
        Risk.MEDIUM,
        "traffic moves to the new path; the new route is in place before the old goes",
    )


def _has_default(subject: Artifact | Batch) -> bool:
    if isinstance(subject, Artifact):
        return subject.fields.get("destination") in DEFAULTS
    # A key begins with the length of its prefix; the least of a million is found without a step of
    # Python's for each.
    return bool(subject.keys) and min(subject.keys)[0] == 0


def shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    prefix, _, rest = name.partition(" ")
    kind = fields.get("type", "unicast")
    words = ["route", kind if kind != "unicast" else "", prefix]
    nexthops: Sequence[str] = fields.get("nexthops") or ()
    if len(nexthops) == 1:
        words.append(nexthops[0])
    else:
        words += [f"nexthop {nexthop}" for nexthop in nexthops]
    words.append(rest)
    if fields.get("prefsrc"):
        words += ["src", fields["prefsrc"]]
    if fields.get("mtu"):
        words += ["mtu", str(fields["mtu"])]
    return words


ROUTE = ArtifactKind(
    name="route",
    identity="destination, table, metric",
    fields=("type", "nexthops", "prefsrc", "mtu", "other"),
    surplus=("other",),
    proof="the kernel tag rtm_protocol, which also guards the delete; a claim where it was adopted",
    cleanup="deleted when tagged: the delete names protocol, metric, type and nexthops, so the"
    " kernel itself refuses to remove anything else",
    deletes_orphans=True,
    writer_field="protocol",
    after=("link", "address", "neighbour"),
    matches=matches,
    vital=vital,
    urgent=urgent,
    risk=risk,
    partial_look=PartialLook.KIND,
    tagged=True,
    shown=shown,
    naming=Naming(
        aliases=("r",), by=NamedBy.DESTINATION, recognised=lambda word: word == "default"
    ),
    bulk=BulkKind(
        scope=scope,
        expand=expand,
        identify=identify,
        template_of=template_of,
        # One that stands aside nobody can declare.
        declarable=lambda shared: not shared.aside,
        group=_table_of,
        unfit=unfit,
    ),
    tells_its_maker=True,
)
