"""Few deletes are weighed: what the router would be without is not deleted unless asked for."""

from __future__ import annotations

from ipaddress import ip_interface

import pytest

from holdfast.engine import guard
from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds import nft, route
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.nft import nft_table
from holdfast.engine.kinds.route import Nexthop, pack_key
from holdfast.engine.kinds.service import Unit, dhcp_client, pppoe_session, service
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import Policy

LAN = address(ip_interface("192.0.2.1/24"), "lan0")
FILTER = nft_table(*nft.FILTER, "")
DEFAULTS = {4: pack_key(bytes(4), 0), 6: pack_key(bytes(16), 0)}
UNATTENDED = Policy(unattended=True)


def default(family: int = 4, kind: str = "unicast", table: int = 254, metric: int = 0) -> Artifact:
    legs = (Nexthop(dev="wan0"),) if kind == "unicast" else ()
    shared = route.template(family, nexthops=legs, kind=kind, table=table, metric=metric)
    return route.expand(shared, DEFAULTS[family])


def many(*keys: bytes) -> Batch:
    return route.batch(route.template(4, nexthops=(Nexthop(dev="wan0"),)), list(keys))


def program(name: str) -> Artifact:
    return service(Unit(name, "", ("/bin/true",)))


def client(family: int, ifname: str) -> Artifact:
    return program(dhcp_client(family, ifname))


def op(verb: Verb, subject: Artifact | Batch) -> Operation:
    return Operation(verb, subject, ("X/x",), "")


def refusal(*operations: Operation, policy: Policy = UNATTENDED) -> str:
    desired = Desired((Intent("X/x", LAN, ""),))
    return guard.refusal(operations, desired, (), policy)


NAT = nft_table(*nft.NAT, "")
OTHERS = many(pack_key(bytes((10, 1, 0, 0)), 16), pack_key(bytes((10, 2, 0, 0)), 16))


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (LAN, "IPv4 on lan0"),
        (address(ip_interface("2001:db8::1/64"), "lan0"), "IPv6 on lan0"),
        (FILTER, "the firewall"),
        (NAT, "NAT"),
        (default(), "the IPv4 way out"),
        (default(6), "the IPv6 way out"),
        (default(table=100), "the IPv4 way out by other tables"),
        (client(4, "wan0"), "IPv4 on wan0"),
        (client(6, "wan0"), "IPv6 on wan0"),
        (program(pppoe_session("home")), "the PPPoE session home"),
        (many(*OTHERS.keys, DEFAULTS[4]), "the IPv4 way out"),
    ],
    ids=[
        "IPv4",
        "IPv6",
        "filter",
        "nat",
        "default",
        "default6",
        "table",
        "DHCPv4",
        "DHCPv6",
        "PPPoE",
        "among many",
    ],
)
def test_what_the_router_would_be_without(subject: Artifact | Batch, name: str) -> None:
    gone = op(Verb.DELETE, subject)
    assert list(guard.lost([gone])) == [name]
    said = refusal(gone)
    assert f"the router would be without {name} (" in said
    assert "`holdfast apply` does it if that is meant" in said
    # Who asks for it gets it, and a pass over what is in force already may find that a lease ended.
    assert refusal(gone, policy=Policy()) == ""
    assert refusal(gone, policy=Policy(unattended=True, allow_mass_delete=True)) == ""


@pytest.mark.parametrize(
    "subject",
    [OTHERS, default(kind="blackhole"), nft_table("inet", "holdfast_mss", ""), program("dnsmasq")],
    ids=["routes", "blackhole", "table", "program"],
)
def test_what_others_can_do_without(subject: Artifact | Batch) -> None:
    assert refusal(op(Verb.DELETE, subject)) == ""


@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.KEEP, Verb.UPDATE, Verb.REPLACE])
@pytest.mark.parametrize(
    ("gone", "instead"),
    [
        (LAN, address(ip_interface("198.51.100.1/24"), "lan0")),  # renumbered
        (LAN, address(ip_interface("192.0.2.1/24"), "br0")),  # moved
        (default(), default(metric=5)),
        (default(table=101), default(table=100)),
        (many(DEFAULTS[4]), default(metric=5)),
        (client(4, "lan0"), LAN),
        (LAN, client(4, "lan0")),
        (default(metric=5), many(*OTHERS.keys, DEFAULTS[4])),
    ],
    ids=["renumbered", "moved", "metric", "table", "of many", "leased", "static", "among many"],
)
def test_what_something_takes_the_place_of(
    gone: Artifact | Batch, instead: Artifact | Batch, verb: Verb
) -> None:
    assert refusal(op(Verb.DELETE, gone), op(verb, instead)) == ""


@pytest.mark.parametrize(
    "other",
    [
        address(ip_interface("198.51.100.1/24"), "wan0"),
        address(ip_interface("2001:db8::1/64"), "lan0"),
        NAT,
        OTHERS,
    ],
    ids=["another link", "another family", "another kind", "routes"],
)
def test_what_nothing_takes_the_place_of(other: Artifact | Batch) -> None:
    assert "IPv4 on lan0" in refusal(op(Verb.DELETE, LAN), op(Verb.KEEP, other))


@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.KEEP])
def test_another_table_is_no_way_out(verb: Verb) -> None:
    """Nothing says that a rule leads there."""
    said = refusal(op(Verb.DELETE, default()), op(verb, default(table=77)))
    assert "the router would be without the IPv4 way out (" in said


def test_all_of_it_is_said() -> None:
    said = refusal(*(op(Verb.DELETE, one) for one in (LAN, FILTER, NAT)))
    assert (
        "without IPv4 on lan0 (address 192.0.2.1/24 dev lan0), NAT (nft ip holdfast_nat) and"
        in said
    )
