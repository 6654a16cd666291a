"""What an Interface of each type takes besides the fields every interface has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from holdfast.engine.artifact import Value
from holdfast.resources.resource import Fault
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    device_reference,
    flag,
    integer,
    optional,
    required,
)
from holdfast.resources.spec.values import (
    TABLES,
    Address,
    address,
    encap_limit,
    ifname,
    route_table,
)

BOND_MODES = (
    "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb",
    "balance-alb",
)  # fmt: skip

Fields = dict[str, Value]
IfnameOf = Callable[[str], str]


_MEMBERS: Mapping[str, str] = dict.fromkeys(
    ("ports", "slaves", "members", "interfaces"),
    "each of them names it, by `master` of its own Interface",
)


class Bridge(Spec):
    elsewhere = _MEMBERS

    stp: bool | None = optional(flag(), "run the spanning tree protocol")
    vlan_filtering: bool | None = optional(flag(), "keep VLANs apart on the bridge")

    def fields(self, _ifname: IfnameOf) -> Fields:
        return _declared(stp=self.stp, vlan_filtering=self.vlan_filtering)


class Vlan(Spec):
    parent: str = required(device_reference(), "the interface that carries the VLAN")
    id: int = required(integer(1, 4094), "VLAN number")
    protocol: str = optional(choice("802.1q", "802.1ad"), "tag protocol", default="802.1q")

    def fields(self, ifname: IfnameOf) -> Fields:
        return {
            "parent": ifname(self.parent),
            "vlan_id": self.id,
            "vlan_protocol": self.protocol,
        }


class Vxlan(Spec):
    id: int = required(integer(0, 0xFFFFFF), "VXLAN network identifier")
    local: Address | None = optional(address(), "source address of the tunnel")
    remote: Address | None = optional(address(), "the other end, or a multicast group")
    # Without a port Linux takes 8472, which nothing but Linux speaks.
    port: int = optional(integer(1, 65535), "UDP port", default=4789)
    parent: str = optional(
        device_reference(empty=True), "the interface to send through", default=""
    )
    learning: bool | None = optional(flag(), "learn remote addresses from what is received")

    def fields(self, ifname: IfnameOf) -> Fields:
        return {
            "vni": self.id,
            "local": str(self.local or ""),
            "remote": str(self.remote or ""),
            "port": self.port,
            "parent": ifname(self.parent) if self.parent else "",
            **_declared(learning=self.learning),
        }

    def check(self) -> Iterator[Fault]:
        if self.local and self.remote and self.local.version != self.remote.version:
            yield Fault(("vxlan", "remote"), f"{self.remote} is not of the family of {self.local}")
        if self.remote and self.remote.is_multicast and not self.parent:
            yield Fault(("vxlan", "remote"), "a multicast group needs `parent` to send through")


class Vrf(Spec):
    elsewhere = _MEMBERS

    table: int = required(route_table(), "the routing table of the VRF")

    def fields(self, _ifname: IfnameOf) -> Fields:
        return {"table": self.table}

    def check(self) -> Iterator[Fault]:
        for name, table in TABLES.items():
            if table == self.table:
                message = f"table {table} is table {name} of the host; a VRF needs one of its own"
                yield Fault(("vrf", "table"), message)


class Veth(Spec):
    peer: str = required(ifname(), "kernel name of the other end")

    def fields(self, _ifname: IfnameOf) -> Fields:
        return {"peer": self.peer}


class Bond(Spec):
    elsewhere = _MEMBERS

    mode: str | None = optional(choice(*BOND_MODES), "how traffic is spread over the members")
    miimon: int | None = optional(integer(0, 0x7FFFFFFF), "link check interval, milliseconds")

    def fields(self, _ifname: IfnameOf) -> Fields:
        return _declared(mode=self.mode, miimon=self.miimon)


class Macvlan(Spec):
    parent: str = required(device_reference(), "the interface underneath")
    mode: str | None = optional(
        choice("private", "vepa", "bridge", "passthru"), "what siblings may say to each other"
    )

    def fields(self, ifname: IfnameOf) -> Fields:
        return {"parent": ifname(self.parent), **_declared(mode=self.mode)}


class Ip6tnl(Spec):
    remote: Address = required(address(6), "the other end")
    local: Address | None = optional(
        address(6), "source address of the tunnel; without it the kernel picks one for each packet"
    )
    parent: str = optional(
        device_reference(empty=True), "the interface to send through", default=""
    )
    mode: str = optional(
        choice("ipip6", "ip6ip6", "any"), "carry IPv4, IPv6 or both", default="any"
    )
    # A limit costs an extension header in every packet, which much of the Internet drops.
    encap_limit: str = optional(
        encap_limit(), "how many more tunnels may be entered on the way", default="none"
    )
    # 0, which is what the kernel takes by itself, loses inner packets of a short lifetime on the
    # way between the ends.
    hop_limit: int = optional(
        integer(0, 255), "hop limit of the outer packets; 0: that of the packet inside", default=64
    )

    def fields(self, ifname: IfnameOf) -> Fields:
        return {
            "local": str(self.local or ""),
            "remote": str(self.remote),
            "parent": ifname(self.parent) if self.parent else "",
            "mode": self.mode,
            "encap_limit": self.encap_limit,
            "hop_limit": self.hop_limit,
        }

    def check(self) -> Iterator[Fault]:
        for name, end in (("local", self.local), ("remote", self.remote)):
            if end is None:
                continue
            if end.is_unspecified or end.is_loopback or end.is_multicast:
                yield Fault(("ip6tnl", name), f"{end} cannot be the end of a tunnel")
            elif end.is_link_local and not self.parent:
                yield Fault(("ip6tnl", name), f"{end} is link-local: it needs `parent`")
        if self.local == self.remote:
            yield Fault(("ip6tnl", "remote"), f"{self.remote} is the local end")


def _declared(**fields: Value) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}
