"""Which tables are looked at for routes of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Never

import pytest

from holdfast.engine.driver import Scope
from holdfast.engine.kinds.route import Nexthop, batch, destination, pack_key, template
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.netlink.routes.driver import RouteDriver
from holdfast.host.netlink.socket import NetlinkSocket
from tests.namespace import Namespace


@pytest.fixture
def driver(netns: Namespace) -> Iterator[RouteDriver]:
    netns.veth("wan", "far", "192.0.2.1/24", "2001:db8::1/64")
    for table in (100, 70_000):
        netns.ip(f"route add 10.0.0.0/8 via 192.0.2.2 proto 72 table {table}")
        netns.ip(f"-6 route add fd00::/8 via 2001:db8::2 proto 72 table {table}")
    sock = NetlinkSocket()
    yield RouteDriver(sock, 72)
    sock.close()


def tables_seen(driver: RouteDriver, scope: Scope) -> set[tuple[int, str]]:
    seen = driver.observe(scope).bulk["route"]
    found = [seen.unpack(body) for body in seen.own]
    return {(shared.table, destination(key)) for shared, key in found}


def test_where_nobody_remembers_all_tables_are_read(driver: RouteDriver) -> None:
    both = {(table, prefix) for table in (100, 70_000) for prefix in ("10.0.0.0/8", "fd00::/8")}
    assert tables_seen(driver, Scope()) == both


def test_of_remembered_tables_no_other_is_read(driver: RouteDriver) -> None:
    scope = Scope(remembered={"routes": frozenset({"100", "200"})})
    assert tables_seen(driver, scope) == {(100, "10.0.0.0/8"), (100, "fd00::/8")}


def test_what_is_no_table_is_not_known(driver: RouteDriver) -> None:
    for damaged in ("25<", "0", "4294967296", "²"):
        scope = Scope(remembered={"routes": frozenset({"100", damaged})})
        assert {table for table, _ in tables_seen(driver, scope)} == {100, 70_000}
        assert driver.to_remember([], frozenset({damaged})) == frozenset({"100", "70000"})


def test_what_a_look_at_all_tables_found_is_remembered(driver: RouteDriver) -> None:
    """Also where nothing is done about it: a route that is kept for now may have to go later."""
    keys = [pack_key(bytes((10, 0, 0, 0)), 8)]
    planned = [Operation(Verb.CREATE, batch(template(4, table=5), keys), (), "")]
    assert driver.to_remember(planned, None) is None  # it is left open before the first look
    driver.observe(Scope())
    assert driver.to_remember(planned, None) == frozenset({"5", "100", "70000"})
    assert driver.to_remember(planned, frozenset({"7"})) == frozenset({"5", "7"})
    driver.observe(Scope(remembered={"routes": frozenset({"7"})}))
    assert driver.to_remember(planned, None) is None


def test_a_look_that_failed_is_not_remembered(
    driver: RouteDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did not come to would never be looked for again."""

    def failing(*_asked: object, **_more: object) -> Never:
        raise DriverError("interrupted")

    monkeypatch.setattr("holdfast.host.netlink.routes.driver.dump_runs", failing)
    with pytest.raises(DriverError):
        driver.observe(Scope())
    assert driver.to_remember([], None) is None


def test_many_tables_are_read_at_once(driver: RouteDriver) -> None:
    scope = Scope(remembered={"routes": frozenset(map(str, range(1000, 1100)))})
    assert {table for table, _ in tables_seen(driver, scope)} == {100, 70_000}


def test_exact_means_neither_more_nor_less_nor_otherwise(netns: Namespace) -> None:
    netns.veth("wan", "far", "192.0.2.1/24")
    shared = template(4, nexthops=(Nexthop("192.0.2.2", "wan"),))
    keys = [pack_key(bytes((10, number, 0, 0)), 16) for number in range(3)]
    wanted = Scope(batches=(batch(shared, keys),))
    sock = NetlinkSocket()
    driver = RouteDriver(sock, 72)

    def exact() -> bool:
        return driver.observe(wanted).bulk["route"].exact

    assert not exact()
    for number in range(3):
        netns.ip(f"route add 10.{number}.0.0/16 via 192.0.2.2 proto 72")
    assert exact()
    netns.ip("route add 10.3.0.0/16 via 192.0.2.2 proto 72")
    assert not exact()
    netns.ip("route del 10.2.0.0/16")
    assert not exact()
    netns.ip("route del 10.3.0.0/16")
    netns.ip("route add 10.2.0.0/16 via 192.0.2.3 proto 72")
    assert not exact()
    netns.ip("route change 10.2.0.0/16 via 192.0.2.2 proto 72")
    netns.ip("-6 route add fd00::/8 dev wan proto 72")
    assert not exact()
    netns.ip("-6 route del fd00::/8 dev wan")
    assert exact()
    assert len(driver.observe(wanted).bulk["route"].own) == 3
    sock.close()
