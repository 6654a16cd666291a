"""`apply` tells what becomes of its operations as they are carried out."""

from __future__ import annotations

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Failure, Result
from holdfast.engine.plan import Operation, Verb
from holdfast.render import outcomes
from holdfast.render.style import Style
from tests.agent.daemon import serve
from tests.cli.conftest import WAN, WAN_ADDRESS, Done, Holdfast, route
from tests.namespace import Namespace

LIST = (
    "RouteList",
    "list",
    "{gateway: 192.0.2.254, interface: wan, routes: [10.1.0.0/16, 10.2.0.0/16, 10.3.0.0/16]}",
)
TOLD = """\
  updated link wan0
  created address 192.0.2.1/24 dev wan0
  created route 10.1.0.0/16 via 192.0.2.254 dev wan0 and 2 more
"""


@pytest.mark.usefixtures("wan")
def test_operations_are_told_and_the_document_is_one(holdfast: Holdfast) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert done.err == TOLD
    assert done.out.startswith("Applied: 4 created, 1 updated.\n")
    again = holdfast.ok("apply", "router.yaml", "--yes")
    assert again.err == ""
    holdfast.declare(WAN, WAN_ADDRESS)
    document = holdfast.ok("apply", "router.yaml", "--yes", "-o", "json")
    assert document.json["applied"] == {"delete": 3}
    assert document.err == ""


def test_what_failed_says_why(holdfast: Holdfast, wan: Namespace) -> None:
    wan.ip("link set wan0 up")
    unreachable = ("IPv4Route", "far", "{destination: 10.9.0.0/16, gateway: 203.0.113.1}")
    holdfast.declare(
        WAN, WAN_ADDRESS, (*unreachable[:2], unreachable[2][:-1] + ", interface: wan}")
    )
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 1
    assert "  failed to create route 10.9.0.0/16 via 203.0.113.1 dev wan0: " in done.err
    _told_once(done)


def _told_once(done: Done) -> None:
    """As it happens in the kernel's words, however many rounds there are, and in the end with what
    is to be done about it."""
    assert done.err.count("failed to create") == 1
    assert done.err.endswith("(ENETUNREACH): Nexthop has invalid gateway\n")
    assert done.out.count("nothing on wan0 leads to 203.0.113.1: give it an address") == 1


def test_what_failed_is_told_once_by_a_daemon_too(holdfast: Holdfast, wan: Namespace) -> None:
    wan.ip("link set wan0 up")
    wan.ip("link set lo up")
    file = holdfast.declare(WAN, WAN_ADDRESS, route("far", "10.9.0.0/16", "203.0.113.1"))
    holdfast.root.mkdir(exist_ok=True)
    with serve(holdfast.root, file) as running:
        running.wait_for("create-failed")
        _told_once(holdfast.run("apply", "--yes"))


def test_many_alike_are_a_few_lines() -> None:
    def result(number: int, error: str = "") -> Result:
        key = Key("sysctl", f"net.x.{number}")
        operation = Operation(Verb.CREATE, Artifact(key, {"value": "1"}), (), "")
        failures = (Failure(key, error),) if error else ()
        return Result(operation, 0 if error else 1, failures)

    told = list(outcomes.of([*map(result, range(5000)), result(7, "no"), result(8, "no")]))
    lines = [outcomes.line(one, Style(colour=False)) for one in told]
    assert lines == [
        "  created sysctl net.x.0 = 1",
        "  created sysctl net.x.1 = 1",
        "  created sysctl net.x.2 = 1",
        "  created sysctl net.x.3 = 1 and 4 996 more",
        "  failed to create sysctl net.x.7 = 1: no",
        "  failed to create sysctl net.x.8 = 1: no",
    ]
