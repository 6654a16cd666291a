"""What a DynamicConfigSource allows its source to declare, and every reason against a part.

Fields are judged by the shape that their spec declares (`Shape.reach`, `Shape.ifname`, references
to links), and not by how they are called. A value that cannot be judged is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from holdfast.config.document import Location
from holdfast.config.part import Part
from holdfast.dataclass import dataclass, field
from holdfast.resources import registry
from holdfast.resources.dynamic import route_policy
from holdfast.resources.dynamic.dynamic_config_source import Allowance
from holdfast.resources.dynamic.dynamic_override_policy import matches
from holdfast.resources.resource import Reach, Resource
from holdfast.resources.spec import shape
from holdfast.resources.spec.durations import format_duration
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.values import Network

_NOTHING = Allowance(kinds=(), names=(), max_resources=0)
_MAPPED = ip_network("::ffff:0:0/96")


def refusals(
    policy: Resource, part: Part, given: Iterable[Resource], others: Iterable[Resource]
) -> Iterator[str]:
    """Every reason why a part is not allowed. policy: of its source. given: its resources. others:
    those of the startup file and of parts that are in force already."""
    resources = tuple(given)
    found = judge(policy, Links.of((*others, *resources)))
    if policy.spec.allow is None and policy.spec.source is None:
        for resource in resources:  # a plugin may declare every open kind then
            yield from found.links_cut_off(resource)
        return
    if outlasts(policy, part):
        yield found.lifetime(part)
    yield from found.count_of_part(resources)
    for resource in resources:
        yield from found.refusals(resource)


def judge(policy: Resource, links: Links) -> Judge:
    """Of single resources of a source. links: of all that is declared."""
    return Judge(policy, policy.spec.allow or _NOTHING, links)


def outlasts(policy: Resource, part: Part) -> bool:
    """Whether a part says that it is in force for longer than its source may say."""
    longest = policy.spec.allow.lifetime if policy.spec.allow is not None else None
    if longest is None:
        return False
    return part.expires is None or part.expires > part.observed + longest


@dataclass(frozen=True, slots=True)
class Links:
    """Which link of the kernel is meant by a name, and what links are called."""

    named: dict[tuple[str, str], Resource]  # by what a reference may ask for, and name
    ifnames: dict[str, set[str]]  # kernel names, by the name of a link's resource
    declared: dict[str, set[str]]  # names of resources of the startup file, by kernel name

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Links:
        found = cls({}, defaultdict(set), defaultdict(set))
        for resource in resources:
            for asked in registry.referred_as(resource.kind):
                found.named[asked, resource.name] = resource
            link = registry.kind(resource.kind).link
            if link is not None:
                ifname = link.ifname(resource)
                found.ifnames[resource.name].add(ifname)
                if not resource.part:
                    found.declared[ifname].add(resource.name)
        return found

    def called(self, name: str) -> set[str]:
        """The kernel names of a link that is named by its resource or by the kernel's name."""
        return self.ifnames.get(name) or {name}

    def allows(self, patterns: Iterable[str], ifname: str, *, in_full: bool = False) -> bool:
        """A name that the startup file gives to another link is no name of this one. in_full: a
        pattern does not name it."""
        names = set(self.declared.get(ifname, ()))
        taken = any(ifname in called for other, called in self.declared.items() if other != ifname)
        if not taken:
            names.add(ifname)
        if in_full:
            return not names.isdisjoint(patterns)
        return any(matches(pattern, name) for pattern in patterns for name in names)


@dataclass(frozen=True, slots=True)
class Judge:
    policy: Resource
    allow: Allowance
    links: Links
    prefixes: tuple[Network, ...] = field(init=False)

    def __post_init__(self) -> None:
        four = [prefix for prefix in self.allow.prefixes if isinstance(prefix, IPv4Network)]
        six = [prefix for prefix in self.allow.prefixes if isinstance(prefix, IPv6Network)]
        merged = (*collapse_addresses(four), *collapse_addresses(six))
        object.__setattr__(self, "prefixes", merged)

    def lifetime(self, part: Part) -> str:
        longest = format_duration(self.allow.lifetime or 0.0)
        said = f"{part.ref}: expiresAt: is missing, or more than {longest} after observedAt"
        return f"{said}, which is the most that {self._who} may say by {self.policy}"

    def count(self, others: int, resource: Resource) -> Iterator[str]:
        """One more, besides so many others of its source."""
        found = others + registry.kind(resource.kind).size(resource)
        if found > self.allow.max_resources:
            told = f"{resource.place}: {resource.id}: would be resource {found}"
            yield f"{told}, more than {self._may('maxResources', str(found))}"

    def count_of_part(self, resources: tuple[Resource, ...]) -> Iterator[str]:
        found = sum(registry.kind(resource.kind).size(resource) for resource in resources)
        if found > self.allow.max_resources:
            told = f"{resources[0].part}: resources: are {found}"
            yield f"{told}, more than {self._may('maxResources', str(found))}"

    def refusals(self, resource: Resource) -> Iterator[str]:
        if resource.kind not in self.allow.kinds:
            yield self._refusal(resource, "kind", resource.kind, "kinds", resource.kind)
        if not any(matches(pattern, resource.name) for pattern in self.allow.names):
            yield self._refusal(resource, "metadata.name", resource.name, "names", resource.name)
        yield from dict.fromkeys(self._fields(resource))

    def _fields(self, resource: Resource) -> Iterator[str]:
        kind = registry.kind(resource.kind)
        # Whom a session is held with is judged by `peers`, and not by what may be advertised.
        peers = {reach.location for reach in kind.reaches(resource) if reach.peer}
        for location, form, value in shape.values(resource.spec):
            if location in peers:
                continue
            if form.reach is None:
                said = f"{resource.id}: what {value!r} leads to cannot be judged, so no policy"
                said += " allows it"
                path = dotted(("spec", *location))
                yield f"{resource.place}: {path}: {said} to {self._who}: leave the field out"
                continue
            for network in form.reach(value):
                yield from self._network(resource, location, network)
            if form.ifname:
                yield from self._link(resource, location, value, {value})
            elif form.refers and value:
                for name in self._led_to(form.refers, value, set()):
                    yield from self._link(resource, location, name, self.links.called(name))
        if kind.link is not None:
            ifname = kind.link.ifname(resource)
            yield from self._link(resource, (kind.link.field,), ifname, {ifname})
        for reach in kind.reaches(resource):
            if reach.learned:
                yield from self._learned(resource, reach)
            elif reach.network is not None:
                yield from self._network(resource, reach.location, reach.network)
            for network in self._outside(reach.packed):
                yield from self._network(resource, reach.location, network)
            yield from self._route(resource, reach)
            if reach.ifname:
                yield from self._link(resource, reach.location, reach.ifname, {reach.ifname})
            if reach.link:
                called = self.links.called(reach.link)
                yield from self._link(resource, reach.location, reach.link, called)
        yield from self.links_cut_off(resource)

    def _learned(self, resource: Resource, reach: Reach) -> Iterator[str]:
        if reach.network is not None and not self.allow.may_learn_routes:
            for told in self._network(resource, reach.location, reach.network):
                yield f"{told}, or set allow.mayLearnRoutes"

    def _route(self, resource: Resource, reach: Reach) -> Iterator[str]:
        path = dotted(("spec", *reach.location))
        if reach.advertised and reach.network is not None:
            rule = self.allow.prefix_length
            trouble = route_policy.length_trouble(rule, reach.network)
            if trouble:
                yield (
                    f"{resource.place}: {path}: {resource.id}: {trouble}, which is what"
                    f" {self._who} may advertise by {self.policy}: allow.prefixLength is {rule}"
                )
        if reach.peer and not route_policy.holds_peer(self.allow.peers, reach.peer):
            yield self._refusal(resource, path, f"peer {reach.peer}", "peers", reach.peer)
        number = reach.autonomous_system
        if number and not route_policy.holds_number(self.allow.autonomous_systems, number):
            yield self._refusal(resource, path, f"AS {number}", "autonomousSystems", str(number))
        if reach.unnumbered_as and self.allow.autonomous_systems != (route_policy.EVERY,):
            yield self._refusal(
                resource,
                path,
                "an AS without its number",
                "autonomousSystems",
                str(route_policy.EVERY),
            )
        if reach.instance and not self.allow.may_configure_instance:
            yield (
                f"{resource.place}: {resource.id}: {self._who} may not configure the BGP"
                f" instance by {self.policy}: to allow it, set allow.mayConfigureInstance"
            )

    def links_cut_off(self, resource: Resource) -> Iterator[str]:
        """Those that `allow.interfaces` does not name in full: what a link was used for is cut off,
        and the link stays as it is when the part is gone."""
        for reach in registry.kind(resource.kind).reaches(resource):
            patterns = self.allow.interfaces
            if reach.cut and not self.links.allows(patterns, reach.ifname, in_full=True):
                said = f"{resource.id}: {self._who} may not {reach.cut.format(reach.ifname)}"
                path = dotted(("spec", *reach.location))
                yield (
                    f"{resource.place}: {path}: {said} by {self.policy}: to allow it, add"
                    f" {reach.ifname} in full to allow.interfaces"
                )

    def _led_to(self, asked: str, name: str, seen: set[str]) -> Iterator[str]:
        """The links that a reference leads to, through other resources too: a zone is its links."""
        found = self.links.named.get((asked, name))
        if found is None or registry.kind(found.kind).link is not None:
            if found is not None or asked in (shape.LINK, shape.DEVICE):
                yield name
            return
        if found.id not in seen:
            seen.add(found.id)
            for _, below, other in shape.references(found.spec):
                yield from self._led_to(below, other, seen)

    def _outside(self, packed: Iterable[bytes]) -> Iterator[Network]:
        """Those that may be refused. There may be 100 000 in a list, and to make a network of each
        takes seconds."""
        allowed = {
            4: [
                (int(prefix[0]), int(prefix[-1])) for prefix in self.prefixes if prefix.version == 4
            ],
            6: [
                (int(prefix[0]), int(prefix[-1])) for prefix in self.prefixes if prefix.version == 6
            ],
        }
        for key in packed:
            version, bits = (4, 32) if len(key) == 5 else (6, 128)
            first = int.from_bytes(key[1:], "big")
            last = first | ((1 << (bits - key[0])) - 1)
            fits = any(low <= first and last <= high for low, high in allowed[version])
            if not fits or (version == 6 and first >> 32 == 0xFFFF):
                yield (IPv4Network if version == 4 else IPv6Network)((first, key[0]))

    def _network(self, resource: Resource, at: Location, network: Network) -> Iterator[str]:
        for wanted in (network, *_as_ipv4(network)):
            if not any(_within(wanted, allowed) for allowed in self.prefixes):
                path = dotted(("spec", *at))
                yield self._refusal(resource, path, str(wanted), "prefixes", str(wanted))

    def _link(self, resource: Resource, at: Location, name: str, called: set[str]) -> Iterator[str]:
        for ifname in sorted(called):
            if not self.links.allows(self.allow.interfaces, ifname):
                shown = f"{name} (link {ifname})" if name != ifname else f"link {ifname}"
                yield self._refusal(resource, dotted(("spec", *at)), shown, "interfaces", ifname)

    def _refusal(self, resource: Resource, path: str, said: str, under: str, write: str) -> str:
        return (
            f"{resource.place}: {path}: {resource.id}: {said} is not what {self._may(under, write)}"
        )

    def _may(self, under: str, write: str) -> str:
        said = f"{self._who} may declare by {self.policy}"
        word = "set" if under == "maxResources" else "add"
        return (
            f"{said}: to allow it, {word} {write} {'to' if word == 'add' else 'as'} allow.{under}"
        )

    @property
    def _who(self) -> str:
        who: str = self.policy.spec.contributor
        return who


def _within(network: Network, allowed: Network) -> bool:
    return network.version == allowed.version and network.subnet_of(allowed)  # type: ignore[arg-type] # of one family


def _as_ipv4(network: Network) -> Iterator[Network]:
    """An IPv4 address that is written as one of IPv6 has to be allowed as what it is, too."""
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):  # type: ignore[arg-type] # IPv6
        mapped = network.network_address.ipv4_mapped
        yield IPv4Network((mapped or 0, network.prefixlen - 96))
