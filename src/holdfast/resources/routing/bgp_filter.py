"""BGPFilter: which routes a peer may tell, or is told, and what becomes of their attributes."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bgp_filter as filters
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.routing import path_attributes
from holdfast.resources.routing.bgp_instance import GROUPS
from holdfast.resources.routing.path_attributes import PathAttributes
from holdfast.resources.routing.values import as_path, community, large_community
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    listed,
    nested,
    optional,
    required,
)
from holdfast.resources.spec.values import EVERYTHING, Network, prefix

FAMILIES = (4, 6)
_STEP = 10  # between the numbers of entries
_RULES_MAX = 6000  # FRR counts entries up to 65535


class PrefixMatch(Spec):
    prefix: Network = required(prefix(), "a route to it; with one of the next, or into it")
    at_least: int | None = optional(integer(0, 128), "shortest prefix length of a route into it")
    at_most: int | None = optional(integer(0, 128), "longest one")


class Changes(PathAttributes):
    """What is set on a route that passes."""


class FilterRule(Spec):
    action: str = optional(choice("permit", "deny"), "of routes that match", default="permit")
    prefixes: tuple[PrefixMatch, ...] = optional(
        listed(nested(PrefixMatch), least=0), "any of these", default=()
    )
    communities: tuple[str, ...] = optional(
        listed(community(), least=0), "carries one of these", default=()
    )
    large_communities: tuple[str, ...] = optional(
        listed(large_community(), least=0), "carries one of these", default=()
    )
    as_path: str | None = optional(as_path(), "its path of ASes is so", name="asPath")
    set: Changes | None = optional(nested(Changes), "what it is taken or told with")


class BGPFilter(Spec):
    rules: tuple[FilterRule, ...] = optional(
        listed(nested(FilterRule), least=0),
        "the first that matches in all that it says decides",
        default=(),
    )
    default: str = optional(
        choice("permit", "deny"), "of routes that no rule matches", default="deny"
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: BGPFilter = resource.spec
    if len(spec.rules) > _RULES_MAX:
        yield Fault(("rules",), f"are {len(spec.rules)}: FRR takes {_RULES_MAX}")
    last = next((at for at, rule in enumerate(spec.rules) if _matches_all(rule)), None)
    if last is not None and last + 1 < len(spec.rules):
        yield Fault(("rules", last + 1), f"is never asked: rules[{last}] matches every route")
    for index, rule in enumerate(spec.rules):
        at = ("rules", index)
        for number, match in enumerate(rule.prefixes):
            yield from _lengths(match, (*at, "prefixes", number))
        if rule.set is None:
            continue
        if rule.action == "deny":
            yield Fault((*at, "set"), "has no meaning where the route is denied")
        if rule.set.prepend:
            words = "cannot be said in a filter, which is not of one AS: say it in a BGPPrefix"
            yield Fault((*at, "set", "prepend"), words)
        families: set[int] = {match.prefix.version for match in rule.prefixes}
        yield from path_attributes.check(rule.set, families, (*at, "set"))


def _lengths(match: PrefixMatch, at: Location) -> Iterator[Fault]:
    """FRR wants length < ge <= le."""
    length, bits = match.prefix.prefixlen, match.prefix.max_prefixlen
    for name, value in (("atLeast", match.at_least), ("atMost", match.at_most)):
        if value is not None and not length <= value <= bits:
            yield Fault((*at, name), f"must be from {length} to {bits} for {match.prefix}")
    if (match.at_least or 0) > (bits if match.at_most is None else match.at_most):
        yield Fault((*at, "atLeast"), f"is more than `atMost`, which is {match.at_most}")


def _matches_all(rule: FilterRule) -> bool:
    return not (rule.prefixes or rule.communities or rule.large_communities or rule.as_path)


def _families(rule: FilterRule) -> set[int]:
    return {match.prefix.version for match in rule.prefixes} or set(FAMILIES)


def lines(spec: BGPFilter, family: int) -> list[str]:
    """Of the map for a family, and of its lists, with `@` for the name."""
    lists: list[str] = []
    entries: list[str] = []
    count = 0
    for index, rule in enumerate(spec.rules, 1):
        if family not in _families(rule):
            continue
        entries.append(f"route-map @ {rule.action} {index * _STEP}")
        for kind, found in _asked(rule, family):
            count += 1
            lists += (
                f"{kind} @-{count} seq {number * 5} permit {value}"
                for number, value in enumerate(found, 1)
            )
            entries.append(f"match {_MATCH[kind]} @-{count}")
        if rule.set is not None and rule.action == "permit":
            hop = rule.set.next_hop
            told = path_attributes.attributes(rule.set, 0).lines()
            entries += (
                line for line in told if hop is None or hop.version == family or "hop" not in line
            )
    if spec.default == "permit":
        entries.append(f"route-map @ permit {(len(spec.rules) + 1) * _STEP}")
    if not entries:
        entries.append(f"route-map @ deny {_STEP}")  # a map without an entry is none
    return [*lists, *entries]


_MATCH = {
    "ip prefix-list": "ip address prefix-list",
    "ipv6 prefix-list": "ipv6 address prefix-list",
    "bgp community-list standard": "community",
    "bgp large-community-list standard": "large-community",
    "bgp as-path access-list": "as-path",
}


def _asked(rule: FilterRule, family: int) -> Iterator[tuple[str, list[str]]]:
    """The lists of a rule: the command, and what each line of it permits."""
    prefixes = [
        _entry(prefix_match)
        for prefix_match in rule.prefixes
        if prefix_match.prefix.version == family
    ]
    if prefixes:
        yield "ip prefix-list" if family == 4 else "ipv6 prefix-list", prefixes
    if rule.communities:
        yield "bgp community-list standard", list(rule.communities)
    if rule.large_communities:
        yield "bgp large-community-list standard", list(rule.large_communities)
    if rule.as_path is not None:
        yield "bgp as-path access-list", [rule.as_path]


def _entry(match: PrefixMatch) -> str:
    """As FRR writes it: `ge` only where it is more than the length, `le` only where it is more than
    that."""
    length, bits = match.prefix.prefixlen, match.prefix.max_prefixlen
    low = match.at_least if match.at_least is not None else length
    high = match.at_most if match.at_most is not None else (bits if match.at_least else length)
    words = [str(match.prefix)]
    if low > length:
        words.append(f"ge {low}")
    if high > length:
        words.append(f"le {high}")
    return " ".join(words)


def made(resource: Resource, family: int) -> Artifact:
    return filters.bgp_filter(f"{resource.name}-v{family}", lines(resource.spec, family))


def reaches(resource: Resource) -> Iterator[Reach]:
    """Routes to anywhere, where it lets them through without a look at their prefix."""
    spec: BGPFilter = resource.spec
    at: list[Location] = [("default",)] if spec.default == "permit" else []
    at += (
        ("rules", index)
        for index, rule in enumerate(spec.rules)
        if rule.action == "permit" and not rule.prefixes
    )
    for location in at:
        yield from (Reach(location, EVERYTHING[family]) for family in FAMILIES)


def intents(resource: Resource, _site: Site) -> Iterator[Intent]:
    for family in FAMILIES:
        yield Intent(resource.id, made(resource, family), resource.place)


KINDS = (
    Kind(
        BGPFilter,
        "Which routes a peer may tell, or is told, by prefix, community and AS path, and what they"
        " are taken or told with. Peers name it for a family. What no rule matches is denied,"
        " unless `default` says otherwise. A filter that changes is another one for FRR: peers are"
        " pointed to it, and no session is reset.",
        (BGP_FILTER.name,),
        """\
rules:
  - action: deny
    asPath: _64512_
  - prefixes:
      - prefix: 10.0.0.0/8
        atMost: 24
    set: {localPreference: 200}
""",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
        reaches=reaches,
    ),
)
