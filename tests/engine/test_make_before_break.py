"""A route that shall go stays while nothing that is declared to its destination could be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from holdfast.engine import make_before_break
from holdfast.engine.artifact import Key
from holdfast.engine.intent import BulkIntent, Desired, Intent
from holdfast.engine.kinds import route
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.route import Nexthop
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
