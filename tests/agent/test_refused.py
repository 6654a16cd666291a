"""A file that is valid and would do harm is not applied; the one before it stays in force."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_interface
from pathlib import Path

import pytest

from holdfast.engine.kinds.address import address
from holdfast.engine.plan import Operation, Plan, Verb
from holdfast.paths import Paths
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.runtime import operators, sources
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.lanes import needs_programs
from tests.namespace import Namespace
from tests.resources.parts import mask, part
from tests.safety.router_scene import document, load

# With an address that stays: that of the operator is not the last one of its link.
LINK = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/other": "{interface: wan, address: 198.51.100.1/24}",
}
ADDRESS = {**LINK, "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}"}
REFUSED = 4
RULES = {f"RoutingRule/r{n}": f"{{priority: {100 + n}, fwmark: 7, table: 100}}" for n in range(20)}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    return root / "router.yaml"


def put(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


@contextmanager
def logged_in(connection: str) -> Iterator[None]:
    """Somebody's shell, as sshd starts it."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={**os.environ, "SSH_CONNECTION": connection},
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def command(root: Path, *words: str) -> tuple[int, str]:
    argv = [sys.executable, "-m", "holdfast", "--root", str(root), *words]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_way_in_of_an_operator_is_not_cut(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        with logged_in("192.0.2.9 50000 192.0.2.1 22"):
            put(file, document({**LINK, "RoutingRule/r": "{priority: 9, fwmark: 7, table: 100}"}))
            daemon.wait_for("is not applied: this would cut the connection from 192.0.2.9")
            assert "192.0.2.1/24" in netns.ip("addr show dev wan0")
            assert "fwmark" not in netns.ip("rule show")
            # A plan says what an apply would.
            code, said = command(root, "apply", "--yes")
            assert (code, "if that is meant, say --allow-lockout" in said) == (REFUSED, True)
            for words, expected in (
                (("plan",), 0),
                (("apply", "--dry-run"), REFUSED),
                (("plan", "-o", "json"), 0),
            ):
                code, shown = command(root, *words)
                assert code == expected
                assert said.removeprefix("holdfast: ").strip() in shown
                assert "192.0.2.1/24" in shown
            assert "refused" not in command(root, "plan", "--allow-lockout")[1]
            # What was in force before still is, and is held to; and who was to be cut off is not
            # forgotten while the address is away, when everything is looked at.
            netns.ip("addr del 192.0.2.1/24 dev wan0")
            daemon.signal(signal.SIGHUP)
            until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "repaired")
        # Once nobody would be cut off, it is applied.
        put(file, file.read_text() + "# again\n")
        until(lambda: "192.0.2.1/24" not in netns.ip("addr show dev wan0"), "the address is gone")
        until(lambda: "fwmark" in netns.ip("rule show"), "the rule")


def test_a_rule_that_cuts_an_operator_off(file: Path, root: Path, netns: Namespace) -> None:
    """Whoever is logged in, by the way that the answers to each of them take."""
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        with logged_in("192.0.2.9 50000 192.0.2.1 22"), logged_in("192.0.2.7 50000 192.0.2.1 22"):
            for cuts in ("from: 192.0.2.1/32", "to: 192.0.2.7/32"):
                rule = f"{{priority: 9, {cuts}, action: prohibit}}"
                put(file, document({**ADDRESS, "RoutingRule/r": rule}))
                daemon.wait_for("is not applied: this would cut the connection from 192.0.2.7")
            assert "prohibit" not in netns.ip("rule show")
            rule = "{priority: 9, to: 192.0.2.8/32, action: prohibit}"
            put(file, document({**ADDRESS, "RoutingRule/r": rule}))
            until(lambda: "prohibit" in netns.ip("rule show"), "the rule")


def test_who_was_to_be_cut_off_is_not_forgotten(netns: Namespace) -> None:
    """While the address that they are known by is away: somebody deleted it, and a pass over
    everything comes before the one that repairs it."""
    netns.veth("wan0", "far0", "192.0.2.1/24")
    gone = address(ip_interface("192.0.2.1/24"), "wan0")
    plan = Plan((Operation(Verb.DELETE, gone, (), "no longer declared"),))
    refused, other = load(document(LINK))[0], load(document({}))[0]
    guard = operators.Lockouts()
    with logged_in("192.0.2.9 50000 192.0.2.1 22"):
        reason = guard.cut(plan, refused, NOTHING_KNOWN, "")
        assert "192.0.2.1 is no address of this host then" in reason
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        assert guard.cut(plan, refused, NOTHING_KNOWN, "") == reason
        assert guard.cut(plan, other, NOTHING_KNOWN, "") == ""
    assert guard.cut(plan, refused, NOTHING_KNOWN, "") == ""


POLICY = """\
    - apiVersion: config.holdfast.dev/v1alpha1
      kind: DynamicOverridePolicy
      metadata: {name: ci}
      spec:
        allow:
          - source: Owner/ci
            operations: [mask]
            targets:
              - {apiVersion: net.holdfast.dev/v1alpha1, kind: IPv4StaticAddress, name: wan}
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {name: ci}
      spec: {source: Owner/ci}
"""


def test_a_plan_says_what_is_wrong_with_a_part(file: Path, root: Path) -> None:
    file.write_text(document(ADDRESS) + POLICY)
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        with logged_in("192.0.2.9 50000 192.0.2.1 22"):
            given = part(
                "Owner/ci", masks=(mask("IPv4StaticAddress", "wan"),), observed=time.time()
            )
            with Ledger.open(Paths(root), command="test", wait=20) as ledger:
                sources.put(ledger, given)
            daemon.wait_for("what other sources contribute is not applied: this would cut")
            assert "This plan is refused: this would cut" in command(root, "plan")[1]


def test_a_plan_says_what_is_wrong_with_the_file(file: Path, root: Path) -> None:
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        put(file, document({"Interface/wan": "{ifname: wan0, mtu: many}"}))
        daemon.wait_for("the last good one stays in force")
        beside = command(root, "plan")
        assert daemon.end() == 0
    assert beside == command(root, "plan", str(file))
    assert "mtu" in beside[1]


def test_a_file_that_would_delete_most_of_it(file: Path, root: Path, netns: Namespace) -> None:
    file.write_text(document({**ADDRESS, **RULES}))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        put(file, document(ADDRESS))
        daemon.wait_for("is not applied: 20 of")
        netns.ip("rule del priority 105")
        until(lambda: netns.ip("rule show").count("fwmark 0x7") == 20, "repaired")
        put(file, document({**ADDRESS, **dict(list(RULES.items())[:15])}))
        until(lambda: netns.ip("rule show").count("fwmark 0x7") == 15, "a few at a time")
        assert daemon.end() == 0


def test_a_mistyped_interface_leaves_the_one_before_in_force(
    file: Path, root: Path, netns: Namespace
) -> None:
    text = document(ADDRESS)
    file.write_text(text)
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        typed = text.replace("ifname: wan0", "ifname: wna0")
        put(file, typed.replace("192.0.2.1/24", "192.0.2.2/24"))
        daemon.wait_for("is not applied: link wna0 is declared")
        assert "did you mean 'wan0'" in daemon.said()
        assert "192.0.2.1/24" in netns.ip("addr show dev wan0")
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "it is held to still")
        assert daemon.end() == 0


def test_a_mistyped_interface_under_another_name(file: Path, root: Path, netns: Namespace) -> None:
    """With all that refers to it renamed, too."""
    file.write_text(document(ADDRESS))
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        renamed = {
            "Interface/home": "{ifname: wna0}",
            "IPv4StaticAddress/home": "{interface: home, address: 192.0.2.2/24}",
            "IPv4StaticAddress/spare": "{interface: home, address: 198.51.100.2/24}",
        }
        put(file, document(renamed))
        daemon.wait_for("is not applied: link wna0 is declared")
        assert "/home would leave wan0 for it" in daemon.said().replace(" and 1 more", "")
        assert "did you mean 'wan0'" in daemon.said()
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "it is held to still")
        assert daemon.end() == 0


DOCS = Path(__file__).parents[2] / "docs"


def first_file() -> str:
    """The one that the guide for beginners begins with."""
    told = (DOCS / "getting-started.md").read_text()
    return told.partition("```yaml\n")[2].partition("```")[0]


@pytest.mark.parametrize(
    ("text", "name", "typed"),
    [
        (first_file(), "wan0", "wna0"),
        ((DOCS / "examples/home.yaml").read_text(), "eth1", "etn1"),
    ],
    ids=["first", "home"],
)
def test_a_mistyped_interface_that_nothing_is_deleted_for(
    root: Path, netns: Namespace, text: str, name: str, typed: str
) -> None:
    """Saved while the daemon runs, and there when it starts anew."""
    needs_programs("dnsmasq", "dhcpcd")
    root.mkdir()
    for number, link in enumerate(("wan0", "eth0", "eth1")):
        netns.veth(link, f"far{number}")
    file = root / "router.yaml"
    file.write_text(text)

    def state() -> tuple[str, ...]:
        routes = netns.ip("route show proto 72")
        return netns.run("nft", "list", "ruleset"), routes, *_addresses(netns, name)

    try:
        with serve(root, file) as daemon:
            daemon.wait_for("because of the start")
            daemon.rest()
            before = state()
            put(file, text.replace(f"ifname: {name}", f"ifname: {typed}"))
            daemon.wait_for(f"is not applied: link {typed} is declared")
            assert f" would leave {name} for it; did you mean '{name}'" in daemon.said()
            daemon.rest()
            assert state() == before
            assert daemon.end() == 0
        with serve(root, file) as daemon:
            daemon.wait_for(f"is not applied: link {typed} is declared")
            daemon.rest()
            assert state() == before
            # Meant: applied, and not weighed again when it is in force.
            code, said = command(root, "apply", "--yes", "--allow-mass-delete")
            assert code == 0, said
            assert daemon.end() == 0
        with serve(root, file) as daemon:
            daemon.wait_for(f"link {typed} is not there yet")
            daemon.rest()
            assert "is not applied" not in daemon.said()
            assert daemon.end() == 0
    finally:
        code, said = command(root, "cleanup", str(file), "--yes")
        assert code == 0, said


def _addresses(netns: Namespace, link: str) -> list[str]:
    (shown,) = netns.ip_json(f"-4 addr show dev {link}")
    return [one["local"] for one in shown["addr_info"]]
