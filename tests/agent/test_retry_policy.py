"""What failed is tried again further and further apart; nothing else waits for it."""

from __future__ import annotations

import math

from holdfast.agent.backoff import Backoff
from holdfast.agent.fights import Fights
from holdfast.agent.retry_policy import MANY, RetryPolicy, name_of
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.kinds import route
from holdfast.engine.plan import Operation, Verb

LINK = Artifact(Key("link", "br0"), {"type": "bridge"})
ADDRESS = Artifact(Key("address", "192.0.2.1/24 dev br0"), {})
RULE = Artifact(Key("rule", "1: from all lookup 9"), {})
SHARED = route.template(4, metric=7)


def keys(count: int) -> list[bytes]:
    return [route.pack_key((10 << 24 | n << 8).to_bytes(4, "big"), 24) for n in range(count)]


def create(subject: Artifact, *requires: Key) -> Operation:
    return Operation(Verb.CREATE, subject, ("Some/owner",), "missing", requires=requires)


def batch(count: int) -> Operation:
    return Operation(Verb.CREATE, route.batch(SHARED, keys(count)), ("RouteList/all",), "missing")


def patience() -> RetryPolicy:
    def middle(low: float, high: float) -> float:
        return (low + high) / 2

    return RetryPolicy(Backoff(middle), Fights(middle))


def failed(operation: Operation, *which: Key) -> Result:
    return Result(operation, 0, tuple(Failure(key, "no") for key in which))


def test_longer_each_time_and_the_others_go_on() -> None:
    one, now = patience(), 0.0
    link, address, rule = create(LINK), create(ADDRESS, LINK.key), create(RULE)
    delays = []
    for _ in range(12):
        assert list(one.ready([link, address, rule], now)) == [link, address, rule]
        one.hear([failed(link, LINK.key), Result(rule, 1)], now, now)
        # What needs it waits too.
        assert list(one.ready([link, address, rule], now)) == [rule]
        due = one.next_due()
        assert due is not None
        delays.append(due - now)
        assert one.overdue(due).all_kinds == {"link"}
        now = due
    assert delays[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(delays) == 60.0
    assert one.troubles() == ["create-failed link br0 for Some/owner: no"]
    one.hear([Result(link, 1)], now, now)
    assert not one.troubles()
    assert one.next_due() is None


def test_only_what_is_new_is_news() -> None:
    one, link = patience(), create(LINK)
    assert one.hear([failed(link, LINK.key)], 0, 0) == {LINK.key}
    assert one.hear([failed(link, LINK.key)], 1, 1) == set()
    other = Result(link, 0, (Failure(LINK.key, "never"),))
    assert one.hear([other], 2, 2) == {LINK.key}


def test_a_hint_about_it_or_another_configuration() -> None:
    one, link = patience(), create(LINK)
    for _ in range(5):
        one.hear([failed(link, LINK.key)], 0, 0)
    one.backoff.reset([LINK.key])
    assert list(one.ready([link], 0)) == [link]
    assert one.hear([failed(link, LINK.key)], 0, 0) == set(), "the same again is no news"
    assert not list(one.ready([link], 0.1))
    assert list(one.ready([link], 1)) == [link], "and waits no longer than the first time"
    one.backoff.reset([LINK.key])
    one.hear([], -math.inf, 0)
    assert one.next_due() is None, "nothing is left to be tried for its own sake"
    one.hear([failed(link, LINK.key)], 0, 0)
    one.backoff.clear()
    assert list(one.ready([link], 0)) == [link]


def test_single_routes_of_a_batch() -> None:
    one, all_ = patience(), batch(5)
    third = route.expand(SHARED, keys(5)[2]).key
    one.hear([Result(all_, 4, (Failure(third, "no"),))], 0, 0)
    (left,) = one.ready([all_], 0)
    assert left.count == 4
    assert keys(5)[2] not in left.subject.keys  # type: ignore[union-attr]
    assert list(one.ready([all_], 1)) == [all_]
    assert one.overdue_routes(1) == [route.scope(SHARED) + keys(5)[2]]


def test_thousands_that_fail_alike_wait_as_one() -> None:
    one, all_ = patience(), batch(MANY + 1)
    one.hear([failed(all_, *(route.expand(SHARED, key).key for key in keys(MANY + 1)))], 0, 0)
    assert not one.ready([all_], 0)
    assert len(one.troubles()) == 1
    assert one.overdue(1).kinds == {"route"}


def test_what_is_no_longer_asked_for_is_not_waited_for() -> None:
    one = patience()
    one.hear([failed(create(LINK), LINK.key)], 0, 0)
    one.hear([], 10, 10)
    assert one.next_due() is None


def test_done_and_still_to_do_backs_off_too() -> None:
    one, link, rule = patience(), create(LINK), create(RULE)
    assert not one.still_to_do([link], [Result(link, 1)], 0)
    assert not one.ready([link], 0)
    assert one.still_to_do([rule], [], 0)


def test_names_of_routes() -> None:
    for shared in (SHARED, route.template(4), route.template(4, table=9)):
        key = keys(1)[0]
        assert name_of(route.expand(shared, key).key) == route.scope(shared) + key
    six = route.template(6)
    key = route.pack_key(bytes(16), 0)
    assert name_of(route.expand(six, key).key) == route.scope(six) + key


def test_what_builds_on_something_that_changed_is_tried_at_once() -> None:
    one, now = patience(), 0.0
    operation = batch(1)
    key = route.batch(SHARED, keys(1)).artifact(keys(1)[0]).key
    link = create(LINK)
    for _ in range(10):
        one.hear([failed(operation, key), failed(link, LINK.key)], now, now)
    assert not list(one.ready([operation, link], now))
    one.hurry({"rule", "nft"})
    assert not list(one.ready([operation, link], now))
    one.hurry({"address"})
    assert list(one.ready([operation, link], now)) == [operation]
