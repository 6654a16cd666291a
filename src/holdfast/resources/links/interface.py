"""Interface: a link that exists, or one to create."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.artifact import Key, Value
from holdfast.engine.intent import Action, Intent
from holdfast.engine.kinds.link import LINK, TYPES, link, link_key
from holdfast.resources.links.link_type import Bond, Bridge, Ip6tnl, Macvlan, Veth, Vlan, Vrf, Vxlan
from holdfast.resources.resource import Fault, Kind, Link, Reach, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    device_reference,
    flag,
    integer,
    nested,
    no_networks,
    optional,
    required,
    text,
)
from holdfast.resources.spec.values import ifname, mac

# What would be set on the link: meaningless on one that is only observed.
_SETTINGS = ("adminUp", "mtu", "mac", "master", "alias", "type")
_NEEDS_FIELDS = ("vlan", "vxlan", "vrf", "veth", "macvlan", "ip6tnl")
_IPV6_LEAST_MTU = 1280
_LOOPBACK = "lo"
Detail = Bridge | Vlan | Vxlan | Vrf | Veth | Bond | Macvlan | Ip6tnl


class Interface(Spec):
    ifname: str = required(ifname(), "the kernel's name of the link")
    managed: bool | None = optional(
        flag(),
        "false: only observe it; what needs it waits until it is there. True unless said otherwise;"
        " has to be said under the routerd.net groups",
    )
    owner: str | None = optional(
        choice("holdfast", "routerd", "external"),
        "`external` is the same as `managed: false` and prevails over it",
    )
    state: str = optional(
        choice("present", "absent"),
        "`absent` deletes a link that Holdfast made, unless others have built on it",
        default="present",
    )
    admin_up: bool | None = optional(flag(), "set it up or down; left alone where not given")
    mtu: int | None = optional(integer(68, 65535), "largest packet, bytes")
    mac: str | None = optional(
        mac(),
        "hardware address. A bridge without one takes the lowest of its ports', a bond that of its"
        " first member; each time it moves the kernel forgets all neighbours on it, so no port is"
        " added or removed where that would take permanent ones that others made",
    )
    master: str | None = optional(
        device_reference(empty=True), "the bridge, bond or VRF it belongs to"
    )
    # IFALIASZ is 256 with the final NUL.
    alias: str | None = optional(
        text(longest=255, reach=no_networks), "a description kept in the kernel"
    )
    type: str | None = optional(
        choice(*TYPES), "make the link, of this type; without it the link has to exist"
    )
    bridge: Bridge | None = optional(nested(Bridge), "for `type: bridge`")
    vlan: Vlan | None = optional(nested(Vlan), "for `type: vlan`")
    vxlan: Vxlan | None = optional(nested(Vxlan), "for `type: vxlan`")
    vrf: Vrf | None = optional(nested(Vrf), "for `type: vrf`")
    veth: Veth | None = optional(nested(Veth), "for `type: veth`")
    bond: Bond | None = optional(nested(Bond), "for `type: bond`")
    macvlan: Macvlan | None = optional(nested(Macvlan), "for `type: macvlan`")
    ip6tnl: Ip6tnl | None = optional(
        nested(Ip6tnl), "for `type: ip6tnl`: IPv4 or IPv6 in IPv6, as DS-Lite needs"
    )

    @property
    def observed(self) -> bool:
        return self.managed is False or self.owner == "external"

    @property
    def parent(self) -> str:
        """The Interface it is stacked on, "" for none."""
        detail = self.detail
        return detail.parent if isinstance(detail, Vlan | Vxlan | Macvlan | Ip6tnl) else ""

    @property
    def detail(self) -> Detail | None:
        return getattr(self, self.type, None) if self.type else None


def _given(spec: Interface, name: str) -> bool:
    return getattr(spec, "admin_up" if name == "adminUp" else name) is not None


def check(resource: Resource) -> Iterator[Fault]:
    spec: Interface = resource.spec
    if resource.alias and spec.managed is None:
        yield Fault(("managed",), "is missing; the routerd.net groups require it")
    if spec.observed:
        yield from _check_observed(spec, resource.alias)
    for name in TYPES:
        if name != spec.type and getattr(spec, name, None) is not None:
            fix = f"`type` is {spec.type}" if spec.type else f"`type: {name}` is not said"
            yield Fault((name,), f"has no meaning here: {fix}")
    if spec.type in _NEEDS_FIELDS and spec.detail is None:
        yield Fault(("type",), f"type {spec.type} needs its fields under `{spec.type}`")
    if isinstance(spec.detail, Vxlan | Vrf | Ip6tnl):
        yield from spec.detail.check()
    if spec.veth is not None and spec.veth.peer == spec.ifname:
        yield Fault(("veth", "peer"), f"{spec.ifname} cannot be its own peer")
    if spec.type == "ip6tnl":
        yield from _check_tunnel(spec)
    if spec.type == "wireguard" and spec.mac is not None:
        yield Fault(("mac",), "a WireGuard link has no hardware address")


def _check_tunnel(spec: Interface) -> Iterator[Fault]:
    if spec.ifname == "ip6tnl0":
        message = "the kernel makes ip6tnl0 by itself, together with the first tunnel"
        yield Fault(("ifname",), f"{message}; it can neither be changed nor deleted")
    if spec.mac is not None:
        yield Fault(("mac",), "a tunnel has no hardware address")
    carries_ipv6_alone = spec.ip6tnl is not None and spec.ip6tnl.mode == "ip6ip6"
    if carries_ipv6_alone and spec.mtu is not None and spec.mtu < _IPV6_LEAST_MTU:
        yield Fault(("mtu",), f"must be at least {_IPV6_LEAST_MTU} for IPv6, not {spec.mtu}")


def _check_observed(spec: Interface, alias: bool) -> Iterator[Fault]:
    why = "the interface is only observed (owner: external or managed: false)"
    for name in _SETTINGS:
        if _given(spec, name):
            # Files of the alias system say adminUp on interfaces they do not manage.
            tolerated = alias and name == "adminUp"
            yield Fault((name,), f"would not be applied: {why}", warning=tolerated)
    if spec.state == "absent":
        yield Fault(("state",), f"cannot be absent: {why}")


def _cuts_off(spec: Interface) -> Iterator[tuple[str, str]]:
    """The fields by which it cuts off what the link is used for, and how. A link that it makes is
    used for nothing else yet."""
    if spec.observed:
        return
    if spec.admin_up is False:
        yield "adminUp", "take link {} down"
    if spec.state == "absent":
        yield "state", "take link {} down"
    if spec.type is not None:
        return
    if spec.master is not None:
        yield "master", "put link {} under another, or take it out of one"
    if spec.mac is not None:
        yield "mac", "give link {} another hardware address"
    if spec.mtu is not None and spec.mtu < _IPV6_LEAST_MTU:
        yield "mtu", f"take IPv6 off link {{}} by an MTU below {_IPV6_LEAST_MTU}"


def against_others(resource: Resource) -> Iterator[Fault]:
    """Everything on the machine that speaks to itself does so over the loopback link, and what was
    cut off stays so when its source is gone."""
    spec: Interface = resource.spec
    if spec.ifname == _LOOPBACK:
        for name, _ in _cuts_off(spec):
            yield Fault((name,), "lo stays up and as it is: only the startup file can change that")


def reaches(resource: Resource) -> Iterator[Reach]:
    for name, cut in _cuts_off(resource.spec):
        yield Reach((name,), ifname=resource.spec.ifname, cut=cut)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: Interface = resource.spec
    if spec.observed:
        artifact = link(spec.ifname, {})
        yield Intent(resource.id, artifact, resource.place, Action.OBSERVE)
        return
    fields: dict[str, Value] = {}
    requires: list[Key] = []
    if spec.type:
        fields["type"] = spec.type
    for name, value in (("up", spec.admin_up), ("mtu", spec.mtu), ("mac", spec.mac)):
        if value is not None:
            fields[name] = value
    if spec.alias is not None:
        fields["alias"] = spec.alias
    if spec.master is not None:
        fields["master"] = site.ifname(spec.master) if spec.master else ""
    if spec.detail is not None:
        fields.update(spec.detail.fields(site.ifname))
    for below in (spec.master, spec.parent):
        if below:
            requires.append(link_key(site.ifname(below)))
    maker = _made_by_peer(resource, site)
    if maker is not None:
        requires.append(link_key(maker.spec.ifname))
    yield Intent(
        resource.id,
        link(spec.ifname, fields),
        resource.place,
        Action.DELETE if spec.state == "absent" else Action.ENSURE,
        () if spec.state == "absent" else tuple(requires),
        creates=spec.type is not None and maker is None,
    )


def _made_by_peer(resource: Resource, site: Site) -> Resource | None:
    """The veth Interface whose creation makes this link too.

    Where both ends are declared as veths, the first in the file makes the pair.
    """
    maker = site.veths.get(resource.spec.ifname)
    if maker is None or maker.spec.state == "absent":
        return None
    if resource.spec.veth is not None and resource.index < maker.index:
        return None
    return maker


KINDS = (
    Kind(
        Interface,
        "A network interface: one that exists (a NIC) whose settings are kept, one that Holdfast"
        " creates (`type`), or one that is only observed (`managed: false`).",
        (LINK.name,),
        """\
ifname: br0
type: bridge
bridge: {stp: false}
adminUp: true
mtu: 1500
""",
        intents,
        check,
        open_to_others=against_others,
        reaches=reaches,
        cross_checks="links.interface_checks",
        link=Link(lambda resource: str(resource.spec.ifname), 1500, over="parent", device=True),
    ),
)
