"""What shall go stays while what is declared in its place could not be made."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from holdfast.engine import make_before_break
from holdfast.engine.artifact import Key
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import route
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.route import Nexthop
from holdfast.engine.kinds.rule import rule
from holdfast.engine.plan import Operation, Verb
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from tests.engine.memory_host import MemoryHost, MemoryLedger
from tests.engine.memory_routes import pack_prefix

DEFAULT, OFFICE = pack_prefix("0.0.0.0/0"), pack_prefix("10.0.0.0/16")
LINKS = tuple(link(name, {"type": "bridge"}) for name in ("old", "new", "more"))
KEPT = "not tried, because what is declared to that destination could not be made"
All = Callable[[Sequence[Operation]], Sequence[Operation]]


def routes(dev: str, metric: int, *keys: bytes, table: int = route.MAIN_TABLE) -> BulkIntent:
    shared = route.template(4, table=table, metric=metric, nexthops=(Nexthop(dev=dev),))
    return BulkIntent("R/r", route.batch(shared, list(keys)), "f", (Key("link", dev),))


def run(
    host: MemoryHost, *wanted: BulkIntent, ready: All = lambda all_of_them: all_of_them
) -> Report:
    intents: list[Intent | BulkIntent] = [Intent("L/l", one, "f") for one in LINKS]
    intents += wanted
    policy = Policy(host.epoch, allow_mass_delete=True)
    work = Pass(
        Desired(tuple(intents)), host, MemoryLedger(), policy, nonce=lambda: "7", ready=ready
    )
    return work.run(lambda _plan: None)


def there(host: MemoryHost) -> set[str]:
    return {str(route.expand(one.shared, one.key).key) for one in host.routes}


@pytest.fixture
def host() -> MemoryHost:
    host = MemoryHost()
    assert run(host, routes("old", 0, DEFAULT, OFFICE)).converged
    return host


def fail(host: MemoryHost, *names: str) -> None:
    host.failing = {Key("route", name): "Network is unreachable" for name in names}


def test_the_old_one_stays_until_the_new_one_is_there(host: MemoryHost) -> None:
    fail(host, "0.0.0.0/0 metric 50")
    report = run(host, routes("new", 50, DEFAULT, OFFICE))
    assert there(host) == {"route 0.0.0.0/0", "route 10.0.0.0/16 metric 50"}
    assert [(str(failure.key), failure.error) for _, failure in report.failures][-1] == (
        "route 0.0.0.0/0",
        KEPT,
    )
    assert not report.converged
    host.failing = {}
    assert run(host, routes("new", 50, DEFAULT, OFFICE)).converged
    assert there(host) == {"route 0.0.0.0/0 metric 50", "route 10.0.0.0/16 metric 50"}


def test_one_that_is_not_tried_yet_is_not_there_either(host: MemoryHost) -> None:
    """As where it failed before, and has to wait for its time."""
    wanted = routes("new", 50, DEFAULT, OFFICE)
    run(host, wanted, ready=lambda all_: [op for op in all_ if op.verb is not Verb.CREATE])
    assert there(host) == {"route 0.0.0.0/0", "route 10.0.0.0/16"}


def test_nor_is_one_whose_link_could_not_be_made(host: MemoryHost) -> None:
    host.failing = {Key("link", "new"): "no"}
    host.objects.pop(Key("link", "new"))
    run(host, routes("new", 50, DEFAULT, OFFICE))
    assert there(host) == {"route 0.0.0.0/0", "route 10.0.0.0/16"}


def test_one_that_could_not_be_changed_is_none(host: MemoryHost) -> None:
    run(host, routes("old", 0, DEFAULT), routes("old", 7, DEFAULT))
    fail(host, "0.0.0.0/0")
    run(host, routes("new", 0, DEFAULT))
    assert there(host) == {"route 0.0.0.0/0", "route 0.0.0.0/0 metric 7"}


def test_another_that_is_declared_will_do(host: MemoryHost) -> None:
    """Else one that fails would keep those in force that another has taken the place of."""
    fail(host, "0.0.0.0/0 metric 90")
    run(host, routes("new", 50, DEFAULT), routes("more", 90, DEFAULT))
    assert there(host) == {"route 0.0.0.0/0 metric 50"}
    fail(host, "0.0.0.0/0 metric 90")
    run(host, routes("new", 50, DEFAULT), routes("more", 90, DEFAULT), routes("old", 3, OFFICE))
    assert there(host) == {"route 0.0.0.0/0 metric 50", "route 10.0.0.0/16 metric 3"}


@pytest.mark.parametrize(
    ("key", "table"), [(OFFICE, route.MAIN_TABLE), (DEFAULT, 100)], ids=["destination", "table"]
)
def test_one_to_elsewhere_is_none(key: bytes, table: int) -> None:
    host = MemoryHost()
    run(host, routes("old", 0, DEFAULT))
    name = "10.0.0.0/16 metric 50" if key == OFFICE else "0.0.0.0/0 table 100 metric 50"
    fail(host, name)
    run(host, routes("new", 50, key, table=table))
    assert there(host) == set()


def test_what_leads_to_one_destination_is_dealt_with_together() -> None:
    def at(metric: int, key: bytes = DEFAULT, table: int = 254) -> dict[bytes, set[bytes]]:
        return {route.scope(route.template(4, table=table, metric=metric)): {key}}

    assert make_before_break.concerned(at(0), at(50))
    assert not make_before_break.concerned(at(0), at(0))
    assert not make_before_break.concerned(at(0), at(50, OFFICE))
    assert not make_before_break.concerned(at(0), at(50, table=100))
    assert not make_before_break.concerned(at(0), {})


def address_on(dev: str, text: str) -> Intent:
    made = address(ipaddress.ip_interface(text), dev)
    return Intent(f"A/{text}", made, "f", requires=(Key("link", dev),))


def bridge(name: str) -> Intent:
    return Intent(f"L/{name}", link(name, {"type": "bridge"}), "f")


def port(name: str, master: str) -> Intent:
    made = link(name, {"type": "dummy", "master": master})
    return Intent(f"L/{name}", made, "f", requires=(Key("link", master),))


@dataclass
class Router:
    """What is declared changes from pass to pass; what is there and claimed stays."""

    host: MemoryHost = field(default_factory=MemoryHost)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    def apply(self, *wanted: Intent | BulkIntent) -> Report:
        policy = Policy(self.host.epoch, allow_mass_delete=True)
        work = Pass(Desired(wanted), self.host, self.ledger, policy, nonce=lambda: "7")
        return work.run(lambda _plan: None)

    def fail(self, key: str, *, obstructed: bool = False) -> None:
        kind, _, name = key.partition(" ")
        self.host.failing = {Key(kind, name): "no"}
        self.host.obstructed = obstructed

    def there(self, kind: str) -> set[str]:
        return {key.name for key, many in self.host.objects.items() if many and key.kind == kind}


def test_a_link_keeps_its_address_until_the_new_one_is_on_it() -> None:
    router = Router()
    assert router.apply(bridge("br0"), address_on("br0", "192.0.2.1/24")).converged
    router.fail("address 198.51.100.1/24 dev br0")
    report = router.apply(bridge("br0"), address_on("br0", "198.51.100.1/24"))
    assert router.there("address") == {"192.0.2.1/24 dev br0"}
    assert not report.converged
    router.host.failing = {}
    assert router.apply(bridge("br0"), address_on("br0", "198.51.100.1/24")).converged
    assert router.there("address") == {"198.51.100.1/24 dev br0"}


def test_so_it_does_where_the_change_of_the_link_failed() -> None:
    router = Router()
    router.apply(bridge("br0"), address_on("br0", "192.0.2.1/24"))
    router.fail("link br0")
    changed = Intent("L/br0", link("br0", {"type": "bridge", "mtu": 1400}), "f")
    router.apply(changed, address_on("br0", "198.51.100.1/24"))
    assert router.there("address") == {"192.0.2.1/24 dev br0"}


@pytest.mark.parametrize("other", ["2001:db8::1/64", "203.0.113.1/24"], ids=["family", "link"])
def test_an_address_for_something_else_is_none(other: str) -> None:
    router = Router()
    links = (bridge("br0"), bridge("br1"))
    router.apply(*links, address_on("br0", "192.0.2.1/24"))
    dev = "br0" if ":" in other else "br1"
    name = f"{other.partition('/')[0] if ':' in other else other} dev {dev}"
    router.fail(f"address {name}")
    router.apply(*links, address_on(dev, other))
    assert router.there("address") == set()


def test_a_link_stays_while_what_is_on_it_could_not_be_moved() -> None:
    router = Router()
    router.apply(bridge("br0"), port("p0", "br0"), address_on("br0", "192.0.2.1/24"))
    router.fail("link br1")
    wanted = (bridge("br1"), port("p0", "br1"), address_on("br1", "192.0.2.1/24"))
    gone = Intent("L/br0", link("br0", {}), "f", action=Action.DELETE)
    router.apply(*wanted, gone)
    assert router.there("link") == {"br0", "p0"}
    assert router.there("address") == {"192.0.2.1/24 dev br0"}
    router.host.failing = {}
    assert router.apply(*wanted, gone).converged
    assert router.there("link") == {"br1", "p0"}
    assert router.there("address") == {"192.0.2.1/24 dev br1"}


def test_so_does_a_bridge_without_an_address_that_still_has_its_port() -> None:
    router = Router()
    router.apply(bridge("br0"), port("p0", "br0"))
    router.fail("link p0")
    gone = Intent("L/br0", link("br0", {}), "f", action=Action.DELETE)
    router.apply(bridge("br1"), port("p0", "br1"), gone)
    assert router.there("link") == {"br0", "br1", "p0"}


def test_what_is_in_the_way_goes() -> None:
    """The same VLAN under another name: waiting for the new one would wait for ever."""
    router = Router()
    router.apply(bridge("br0"), address_on("br0", "192.0.2.1/24"))
    router.fail("link br1", obstructed=True)
    gone = Intent("L/br0", link("br0", {}), "f", action=Action.DELETE)
    router.apply(bridge("br1"), address_on("br1", "192.0.2.1/24"), gone)
    assert router.there("link") == set()
    assert router.there("address") == set()


def test_a_rule_stays_until_another_leads_to_its_table() -> None:
    router = Router()
    first, second = rule(4, 100, table=7), rule(4, 200, table=7)
    router.apply(Intent("R/r", first, "f"))
    router.fail(str(second.key))
    router.apply(Intent("R/r", second, "f"))
    assert router.there("rule") == {first.key.name}
    router.host.failing = {}
    assert router.apply(Intent("R/r", second, "f")).converged
    assert router.there("rule") == {second.key.name}
