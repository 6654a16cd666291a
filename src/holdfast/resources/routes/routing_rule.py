"""RoutingRule: which table, or which end, a packet is sent to."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.rule import RULE, rule
from holdfast.resources.resource import Fault, Kind, Reach, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec, choice, integer, link_reference, optional, required
from holdfast.resources.spec.values import EVERYTHING, Network, mark, prefix, rule_table

FULL_MASK = 0xFFFFFFFF


class RoutingRule(Spec):
    # 0, 32766 and 32767 are the kernel's own rules.
    priority: int = required(integer(1, 32765), "place in the order of rules, lowest first")
    family: str | None = optional(
        choice("ipv4", "ipv6"), "that of `from` and `to`; ipv4 where there is neither"
    )
    source: Network | None = optional(prefix(), "packets from this prefix", name="from")
    destination: Network | None = optional(prefix(), "packets to this prefix", name="to")
    iif: str | None = optional(link_reference(), "packets that came in here")
    oif: str | None = optional(link_reference(), "packets of sockets bound to this interface")
    fwmark: int | None = optional(mark(), "packets that carry this mark")
    fwmask: int | None = optional(mark(), "the bits of the mark that count; all of them by default")
    table: int | None = optional(rule_table(), "look the route up here")
    action: str | None = optional(
        choice("blackhole", "unreachable", "prohibit"), "or end the packet this way"
    )

    @property
    def version(self) -> int:
        for selector in (self.source, self.destination):
            if selector is not None:
                return selector.version
        return 6 if self.family == "ipv6" else 4

    @property
    def mask(self) -> int:
        return FULL_MASK if self.fwmask is None else self.fwmask

    @property
    def selectors(self) -> tuple[object, ...]:
        """Everything that picks packets, but the mark."""
        return (self.version, _shown(self.source), _shown(self.destination), self.iif, self.oif)


def _shown(selector: Network | None) -> str:
    """The kernel reads a selector of length 0 back as none."""
    return str(selector) if selector is not None and selector.prefixlen else ""


def check(resource: Resource) -> Iterator[Fault]:
    spec: RoutingRule = resource.spec
    if spec.family is not None and (spec.source or spec.destination) is not None:
        for name, selector in (("from", spec.source), ("to", spec.destination)):
            if selector is not None and spec.family != f"ipv{selector.version}":
                yield Fault((name,), f"{selector} is not {spec.family}, which `family` says")
    elif spec.source and spec.destination and spec.source.version != spec.destination.version:
        yield Fault(("to",), f"{spec.destination} is not of the family of {spec.source}")
    if (spec.table is None) == (spec.action is None):
        yield Fault((), "needs either `table` or `action`, one of them")
    if spec.fwmask is not None and spec.fwmark is None:
        yield Fault(("fwmask",), "has no meaning without `fwmark`")
    if spec.fwmask == 0:
        yield Fault(("fwmask",), "0 leaves no bit of the mark to match; leave both out")
    elif spec.fwmark is not None and spec.fwmark & ~spec.mask:
        message = f"{spec.fwmark:#x} has bits that fwmask {spec.mask:#x} leaves out"
        yield Fault(("fwmark",), message)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    # No requires: the kernel takes rules for interfaces that are not there yet.
    spec: RoutingRule = resource.spec
    artifact = rule(
        spec.version,
        spec.priority,
        source=_shown(spec.source),
        destination=_shown(spec.destination),
        iif=site.ifname(spec.iif) if spec.iif else "",
        oif=site.ifname(spec.oif) if spec.oif else "",
        fwmark=spec.fwmark,
        fwmask=spec.mask,
        action=spec.action or "lookup",
        table=spec.table or 0,
    )
    yield Intent(resource.id, artifact, resource.place)


def reaches(resource: Resource) -> Iterator[Reach]:
    """A rule without a selector is for every packet."""
    spec: RoutingRule = resource.spec
    if not (spec.source or spec.destination or spec.iif or spec.oif):
        yield Reach(("from",), EVERYTHING[spec.version])


KINDS = (
    Kind(
        RoutingRule,
        "A policy routing rule.",
        (RULE.name,),
        "priority: 10000\nfamily: ipv4\nfwmark: 0x100\ntable: 100\n",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=reaches,
    ),
)
