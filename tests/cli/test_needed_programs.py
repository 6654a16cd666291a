"""Programs that a file needs and the machine lacks: `plan` and `apply` say so before anything is
changed; what was applied before is repaired and gone back to all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host import programs
from tests.agent.two_providers import until
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace

SERVER = ("IPv4DHCPServer", "lan", "{listenInterfaces: [wan]}")
PLUGIN = """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: inventory}
      spec: {executable: /opt/inventory}
"""
LACKED = ("/usr/sbin/dnsmasq", "/usr/sbin/pppd")


@pytest.fixture(autouse=True)
def wan(netns: Namespace) -> None:
    netns.veth("wan0", "isp0")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without these programs, for commands that run in a fork."""

    class Without(type(Path())):  # type: ignore[misc]  # the class of this platform's paths
        def exists(self, **_more: bool) -> bool:
            return str(self) not in LACKED and super().exists()

    monkeypatch.setattr(programs, "Path", Without)


def declare(holdfast: Holdfast, *resources: tuple[str, str, str]) -> Path:
    (holdfast.folder / "secret").write_text("hunter2\n")
    (holdfast.folder / "secret").chmod(0o600)
    return holdfast.declare(WAN, WAN_ADDRESS, *resources)


def with_plugin(holdfast: Holdfast) -> Path:
    file = declare(holdfast)
    file.write_text(file.read_text() + PLUGIN)
    return file


def install(holdfast: Holdfast) -> Path:
    program = holdfast.root / "opt" / "inventory"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("apply", "--yes"),
        ("apply", "--dry-run"),
        ("apply", "--yes", "--confirm-within", "5m"),
        ("reconcile", "--once"),
    ],
    ids=" ".join,
)
def test_all_of_them_are_told_before_anything_changes(
    holdfast: Holdfast, netns: Namespace, words: tuple[str, ...]
) -> None:
    pppoe = ("PPPoEInterface", "isp", "{interface: wan, username: me, passwordFile: secret}")
    declare(holdfast, SERVER, pppoe)
    code, said = holdfast.forked(*words, "router.yaml")
    assert code == 3, said
    lines = said.splitlines()
    assert any(
        line.startswith("router.yaml:14:7: ")
        and line.endswith("no /usr/sbin/dnsmasq: install the Debian package dnsmasq-base")
        for line in lines
    ), said
    assert any(
        line.startswith("router.yaml:18:7: ")
        and line.endswith("no /usr/sbin/pppd: install the Debian package ppp")
        for line in lines
    ), said
    assert "the configuration is invalid (2 problems); nothing was touched" in said
    assert "192.0.2.1" not in netns.ip("addr")
    assert holdfast.run("ledger", "show").out == "The ledger is empty.\n"


def test_a_plan_that_was_stored_is_not_carried_out_without(
    holdfast: Holdfast, netns: Namespace
) -> None:
    file = with_plugin(holdfast)
    program = install(holdfast)
    holdfast.ok("plan", str(file), "--out", "stored")
    program.unlink()
    done = holdfast.run("apply", "stored")
    assert (done.code, "there is no program" in done.err) == (3, True), done.err
    assert "192.0.2.1" not in netns.ip("addr")


def test_what_is_in_force_is_repaired_all_the_same(holdfast: Holdfast, netns: Namespace) -> None:
    """The package was removed since; the route to where packages come from must not stay away."""
    file = with_plugin(holdfast)
    program = install(holdfast)
    holdfast.ok("apply", str(file), "--yes")
    program.unlink()
    netns.ip("addr flush dev wan0")
    planned = holdfast.ok("plan", str(file))
    assert "warning: " in planned.err
    assert f"there is no program {program}" in planned.err
    assert "192.0.2.1/24" in planned.out
    holdfast.ok("apply", str(file), "--yes")
    assert "192.0.2.1" in netns.ip("addr")


def test_going_back_is_never_refused_for_it(holdfast: Holdfast, netns: Namespace) -> None:
    file = with_plugin(holdfast)
    program = install(holdfast)
    holdfast.ok("apply", str(file), "--yes")
    declare(holdfast, route("later", "10.0.0.0/8"))
    holdfast.ok("apply", str(file), "--yes")
    program.unlink()
    back = holdfast.run("rollback", "--yes")
    assert "10.0.0.0/8" not in netns.ip("route"), back.err
    assert "is as in generation 1 again" in back.err
    assert "Plugin" in file.read_text()


def test_a_trial_is_taken_back_without_the_programs_of_before(
    holdfast: Holdfast, netns: Namespace
) -> None:
    file = with_plugin(holdfast)
    program = install(holdfast)
    holdfast.ok("apply", str(file), "--yes")
    other = holdfast.declare(WAN, file="other.yaml")
    tried = holdfast.run("apply", str(other), "--yes", "--confirm-within", "5m")
    assert "192.0.2.1" not in netns.ip("addr"), tried.err
    program.unlink()
    holdfast.ok("rollback", "--yes")
    assert "192.0.2.1" in netns.ip("addr")


def test_a_daemon_takes_the_file_and_does_what_can_be_done(
    holdfast: Holdfast, netns: Namespace
) -> None:
    file = declare(holdfast)
    with daemon(holdfast, file):
        with_plugin(holdfast)
        file.write_text(file.read_text().replace("192.0.2.1/24", "192.0.2.9/24"))
        until(lambda: "192.0.2.9" in netns.ip("addr"), "the daemon takes it")
        planned = holdfast.run("plan", str(file))
        assert planned.code == 0, planned.err
        assert f"there is no program {holdfast.root}/opt/inventory" in planned.err
        assert holdfast.run("apply", str(file), "--yes").code != 3
        netns.ip("addr flush dev wan0")
        until(lambda: "192.0.2.9" in netns.ip("addr"), "it repairs")
