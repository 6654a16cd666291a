"""What was touched, and how it is looked at: single routes need no look at all of them."""

from __future__ import annotations

import pytest

from holdfast.agent.pending_hints import PendingHints
from holdfast.agent.watch.hint import Hint
from holdfast.engine.artifact import Key
from holdfast.engine.kinds.route import identify

ROUTE = Hint(
    "route",
    None,
    b"".join(identify({"destination": "198.51.100.0/24", "table": 254, "metric": 0})),
)
RULE = Hint("rule", Key("rule", "1: from all lookup 9"))
FILE = Hint("file", Key("file", "/etc/x"))


def gathered(*hints: Hint) -> PendingHints:
    found = PendingHints(overdue=7.0)
    for hint in hints:
        found.add(hint, 1.0)
    return found


def test_single_routes_are_looked_at_apart_from_the_rest() -> None:
    both = gathered(ROUTE, RULE, Hint("nft"), FILE)
    routes, rest = both.parts()
    assert (routes.routes, routes.touched.all_kinds) == ([ROUTE], frozenset())
    assert (rest.routes, rest.touched) == ([], both.touched)
    # Neither looks at all that was due by then: nothing is taken for done because of it.
    assert routes.overdue < 0
    assert rest.overdue < 0
    assert routes.since == rest.since == 1.0
    assert routes.told == rest.told == both.told


@pytest.mark.parametrize(
    "hints",
    [
        (ROUTE,),
        (RULE, FILE),
        (ROUTE, RULE, Hint("route")),  # all of them have to be looked at anyway
        (ROUTE, RULE, Hint("address", Key("address", "192.0.2.1/24 dev wan0"))),
        (ROUTE, RULE, Hint()),
    ],
)
def test_together_otherwise(hints: tuple[Hint, ...]) -> None:
    """As where a route is to be made over an address that was deleted with it."""
    one = gathered(*hints)
    assert one.parts() == [one]
    assert one.parts()[0].overdue == 7.0
