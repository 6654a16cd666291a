"""Two Holdfasts in one network namespace, and a Holdfast that lost its ledger.

A tag proves *a* Holdfast. What another installation made is named and left alone, whether a process
of it runs or not, until somebody says whose it is.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import run
from holdfast.engine.artifact import Key
from holdfast.host import namespace_holder
from holdfast.paths import Paths
from holdfast.state import installation
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.child import in_child
from tests.cli.conftest import Done, Holdfast
from tests.namespace import Namespace, private_namespaces
from tests.safety.router_scene import document

ONE = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/wan": "{interface: wan, address: 2001:db8:1::1/64}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv4Route/two": "{destination: 10.2.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv6Route/one": "{destination: 2001:db8:a::/48, gateway: 2001:db8:1::fe, interface: wan}",
    "RoutingRule/one": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "Neighbour/one": "{interface: wan, address: 192.0.2.9, mac: 02:00:00:00:00:09}",
    "IPv4SourceNAT/out": "{outboundInterface: wan, sourceCIDRs: [10.1.0.0/16],"
    " translation: {type: interfaceAddress}}",
}
OTHER = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/nine": "{interface: wan, address: 198.51.100.1/24}",
    "IPv4Route/nine": "{destination: 10.9.0.0/16, gateway: 198.51.100.254, interface: wan}",
}
_SHOWN = (
    "-4 route show table all", "-6 route show table all", "-4 rule show", "-6 rule show",
    "neigh show nud permanent", "addr show wan0",
)  # fmt: skip


def kernel(namespace: Namespace) -> list[str]:
    shown = [line for command in _SHOWN for line in namespace.ip(command).splitlines()]
    passing = ("fe80:", "_lft", "proto kernel")
    lasting = [line.strip() for line in shown if not any(word in line for word in passing)]
    return [*lasting, namespace.run("nft", "list", "tables")]


def without(*names: str) -> dict[str, str]:
    return {name: spec for name, spec in ONE.items() if name not in names}


def place() -> Path:
    return namespace_holder.FOLDER / str(Path("/proc/self/ns/net").stat().st_ino)


def make(tmp_path: Path, name: str, resources: dict[str, str], tag: int = 72) -> Holdfast:
    made = Holdfast(tmp_path / name, tmp_path / name / "root")
    made.root.mkdir(parents=True)
    declare(made, resources, tag)
    return made


def declare(holdfast: Holdfast, resources: dict[str, str], tag: int = 72) -> None:
    text = document(resources)
    if tag != 72:
        text = text.replace("spec:\n", f"spec:\n  ownership: {{tag: {tag}}}\n", 1)
    (holdfast.folder / "router.yaml").write_text(text)


def apply(holdfast: Holdfast, *options: str) -> Done:
    return holdfast.run("apply", "router.yaml", "--yes", *options)


def plan(holdfast: Holdfast) -> dict[str, Any]:
    found: dict[str, Any] = holdfast.run("plan", "router.yaml", "-o", "json").json
    return found


def recoverable(holdfast: Holdfast) -> set[str]:
    said = holdfast.ok("adopt", "--recover", "--candidates", "router.yaml", "-o", "json").json
    return {f"{one['artifact']['kind']} {one['artifact']['name']}" for one in said["recoverable"]}


@pytest.fixture
def wire() -> Iterator[Namespace]:
    with private_namespaces() as namespace:
        Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
        namespace.veth("wan0", "isp0")
        yield namespace


@pytest.fixture
def one(wire: Namespace, tmp_path: Path) -> Holdfast:  # noqa: ARG001 (where it is applied)
    """The installation that made the router."""
    made = make(tmp_path, "one", ONE)
    made.set_up("apply", "router.yaml", "--yes")
    return made


@pytest.fixture
def other(tmp_path: Path) -> Holdfast:
    return make(tmp_path, "other", OTHER)


TAGGED = {
    "address 192.0.2.1/24 dev wan0",
    "address 2001:db8:1::1 dev wan0",
    "neighbour 192.0.2.9 dev wan0",
    "rule 1000: from 192.0.2.0/24 lookup 100",
    "nft ip holdfast_nat",
    "route 10.1.0.0/16",
    "route 10.2.0.0/16",
    "route 2001:db8:a::/48",
}


def test_another_root_deletes_nothing(wire: Namespace, one: Holdfast, other: Holdfast) -> None:
    before = kernel(wire)
    for options in ((), ("--allow-mass-delete",)):
        done = apply(other, *options)
        assert done.code == 4, done
        assert "held by the Holdfast installation at" in done.err
        assert str(one.root) in done.err and "adopt --recover" in done.err
    for words in (("adopt", "--apply", "router.yaml"), ("cleanup", "router.yaml", "--yes")):
        done = other.run(*words)
        assert done.code == (4 if words[0] == "adopt" else 0), done
    declare(other, ONE)
    assert plan(other)["summary"]["delete"] == 0
    assert apply(other).code == 0, "all that is declared is there, if of the other's making"
    assert kernel(wire) == before
    assert recoverable(other) == TAGGED
    assert "nothing to do" in one.ok("plan", "router.yaml").out


def test_a_first_apply_where_nobody_holds_the_namespace(
    wire: Namespace, one: Holdfast, other: Holdfast
) -> None:
    """As an older Holdfast leaves it: what carries the tag stays, and what is missing is made."""
    place().unlink()
    before = kernel(wire)
    done = apply(other, "--allow-mass-delete")
    assert done.code == 0, done
    assert "Carries the mark of a Holdfast, is not in this ledger" in done.out
    made = [line for line in kernel(wire) if line not in before]
    assert [line.split()[0] for line in made] == ["10.9.0.0/16", "inet"]
    assert not [line for line in before if line not in kernel(wire)]
    declare(other, {"Interface/wan": ONE["Interface/wan"]})
    assert apply(other, "--allow-mass-delete").code == 0, "not even what it made itself"
    assert wire.ip_json("route show 10.9.0.0/16")
    wire.ip("route del 10.1.0.0/16")
    assert apply(one).code == 4, "it is the other's now"


def test_a_lost_ledger(wire: Namespace, one: Holdfast) -> None:
    before = kernel(wire)
    shutil.rmtree(Paths(one.root).state_dir)
    declare(one, without("IPv4Route/two"))
    for _ in range(2):
        done = apply(one, "--allow-mass-delete")
        assert done.code in (0, 1), done
        assert "Traceback" not in done.err
        assert kernel(wire) == before
    wire.ip("route del 10.1.0.0/16")
    apply(one)
    assert kernel(wire) == before, "what is missing is made all the same"
    assert recoverable(one) == TAGGED
    assert kernel(wire) == before
    done = one.ok("adopt", "--recover", "--apply", "router.yaml")
    assert "Recovered: 8 objects; the host was not touched." in done.out
    assert kernel(wire) == before
    assert recoverable(one) == set()
    # A table is known by what it is made of, and is not written again.
    assert [
        (one["action"], one["artifact"]["name"])
        for one in plan(one)["operations"]
        if one["action"] != "keep"
    ] == [("delete", "10.2.0.0/16")]
    assert apply(one).code == 0
    assert len(wire.ip_json("-4 route show proto 72")) == 1
    assert "nothing to do" in one.ok("plan", "router.yaml").out


def routes(namespace: Namespace) -> list[Any]:
    return [
        found
        for family in (4, 6)
        for found in namespace.ip_json(f"-{family} route show table all proto 72")
    ]


def test_routes_that_are_taken_back_and_not_declared(wire: Namespace, one: Holdfast) -> None:
    """The first pass without the ledger wrote none of them, and notes their tables all the same."""
    shutil.rmtree(Paths(one.root).state_dir)
    wire.ip("neigh del 192.0.2.9 dev wan0")
    assert apply(one).code == 0
    one.ok("adopt", "--recover", "--apply", "router.yaml")
    assert len(routes(wire)) == 3
    declare(one, without(*(name for name in ONE if "Route/" in name)))
    done = apply(one, "--allow-mass-delete")
    assert done.code == 0, done
    assert routes(wire) == []


def test_routes_of_another_in_tables_of_its_own(
    wire: Namespace, one: Holdfast, other: Holdfast
) -> None:
    """Whoever takes a namespace over looks for routes where the other one wrote them."""
    declare(one, ONE | {"IPv4Route/two": f"{ONE['IPv4Route/two'][:-1]}, table: 1000}}"})
    one.set_up("apply", "router.yaml", "--yes")
    assert len(wire.ip_json("-4 route show table 1000 proto 72")) == 1
    with Ledger.open(Paths(other.root), command="test") as ledger:
        ledger.remember("routes", frozenset({"254"}))
    other.ok("adopt", "--recover", "--apply", "router.yaml")
    assert apply(other, "--allow-mass-delete").code == 0
    assert [found["dst"] for found in routes(wire)] == ["10.9.0.0/16"]


@pytest.mark.usefixtures("wire")
def test_files_and_blocks_are_found_by_their_marks(tmp_path: Path) -> None:
    """After a lost ledger: those that are declared, and those that are not any more."""
    declared = {
        "Sysctl/forward": "{key: net.ipv4.ip_forward, value: '1', persistent: true}",
        "Hostname/name": "{hostname: router07}",
    }
    one = make(tmp_path, "one", declared)
    assert apply(one).code == 0
    written = one.root / "etc/sysctl.d/90-holdfast-forward.conf"
    assert written.exists()
    shutil.rmtree(Paths(one.root).state_dir)
    declare(one, {})
    assert apply(one, "--allow-mass-delete").code == 0
    assert written.exists()
    assert "file /etc/sysctl.d/90-holdfast-forward.conf" in recoverable(one)
    one.ok("adopt", "--recover", "--apply", "router.yaml")
    assert apply(one, "--allow-mass-delete").code == 0
    assert not written.exists()


def test_a_daemon_is_not_robbed(wire: Namespace, one: Holdfast, other: Holdfast) -> None:
    before = kernel(wire)
    with serve(one.root, one.folder / "router.yaml") as daemon:
        daemon.wait_for("resources")
        daemon.rest()
        assert apply(other).code == 4
        done = other.run("adopt", "--recover", "--apply", "router.yaml")
        assert done.code == 4, done
        assert "is at work in this network namespace" in done.err
        assert kernel(wire) == before
        assert daemon.end() == 0
    other.ok("adopt", "--recover", "--apply", "router.yaml")
    assert kernel(wire) == before
    done = apply(one)
    assert (done.code, str(other.root) in done.err) == (0, False), "nothing to do, nothing said"
    wire.ip("route del 10.1.0.0/16")
    done = apply(one)
    assert (done.code, str(other.root) in done.err) == (4, True), done
    assert apply(other, "--allow-mass-delete").code == 0
    assert [route["dst"] for route in wire.ip_json("-4 route show proto 72")] == ["10.9.0.0/16"]


def test_a_daemon_is_not_robbed_where_the_file_is_lost(
    wire: Namespace, one: Holdfast, other: Holdfast
) -> None:
    """Whoever cleans up below /run, once and again, gives nothing away. (Only this namespace's
    file: the folder is that of all tests that run at the same time.)"""
    before = kernel(wire)
    with serve(one.root, one.folder / "router.yaml") as daemon:
        daemon.wait_for("resources")
        daemon.rest()
        for _ in range(2):
            place().unlink()
            done = apply(other)
            assert done.code == 4, done
            assert f"held by the Holdfast installation at {str(one.root)[:40]}" in done.err
            place().unlink(missing_ok=True)
            done = other.run("adopt", "--recover", "--apply", "router.yaml")
            assert done.code == 4, done
            assert "is at work in this network namespace" in done.err
            assert kernel(wire) == before
            assert not place().exists()
            wire.ip("route del 10.1.0.0/16")
            until(lambda: kernel(wire) == before, "it was put back")
            until(place().exists, "the file was written anew")
            assert json.loads(place().read_text())["root"] == str(one.root)
        assert daemon.end() == 0
    place().unlink()
    assert apply(one).code == 0, "by its ledger"
    assert json.loads(place().read_text())["root"] == str(one.root)
    assert apply(other).code == 4


@pytest.mark.usefixtures("one")
def test_a_daemon_of_another_root_changes_nothing(wire: Namespace, other: Holdfast) -> None:
    before = kernel(wire)
    with serve(other.root, other.folder / "router.yaml") as daemon:
        daemon.wait_for("held by the Holdfast installation at")
        assert kernel(wire) == before


def _killed(holdfast: Holdfast, spot: str, *words: str) -> None:
    """The command, ended where it is about to do something."""

    def work() -> None:
        os.chdir(holdfast.folder)
        for module in (namespace_holder, installation):
            if hasattr(module, spot):
                setattr(module, spot, lambda *_a, **_k: os._exit(9))
        os._exit(run(holdfast.arguments(*words)[1:]))

    status = os.waitpid(in_child(work), 0)[1]
    assert os.waitstatus_to_exitcode(status) == 9


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("spot", ["_put", "write_own_namespace"])
def test_a_takeover_that_is_killed(wire: Namespace, other: Holdfast, spot: str) -> None:
    before = kernel(wire)
    _killed(other, spot, "adopt", "--recover", "--apply", "router.yaml")
    assert kernel(wire) == before
    done = apply(other, "--allow-mass-delete")
    assert done.code == (4 if spot == "_put" else 0), done
    assert not [line for line in before if line not in kernel(wire)], "nothing is deleted"
    other.ok("adopt", "--recover", "--apply", "router.yaml")
    assert apply(other, "--allow-mass-delete").code == 0
    assert [route["dst"] for route in wire.ip_json("-4 route show proto 72")] == ["10.9.0.0/16"]


@pytest.mark.parametrize("spot", ["_put", "write_own_namespace"])
def test_a_first_apply_that_is_killed(wire: Namespace, tmp_path: Path, spot: str) -> None:
    """It has touched nothing yet, and the next one goes on."""
    one = make(tmp_path, "one", ONE)
    before = kernel(wire)
    _killed(one, spot, "apply", "router.yaml", "--yes")
    assert kernel(wire) == before
    assert apply(one).code == 0
    declare(one, without("IPv4Route/two"))
    assert apply(one).code == 0
    assert len(wire.ip_json("-4 route show proto 72")) == 1


def test_a_copy_of_a_ledger_is_another_installation(
    wire: Namespace, one: Holdfast, other: Holdfast
) -> None:
    exported = other.folder / "ledger.json"
    exported.write_text(one.ok("ledger", "export").out)
    other.ok("ledger", "import", str(exported))
    before = kernel(wire)
    done = apply(other, "--allow-mass-delete")
    assert done.code == 4, done
    assert "of whose ledger this one is a copy" in done.err
    assert kernel(wire) == before


def test_a_ledger_that_is_restored(wire: Namespace, one: Holdfast) -> None:
    exported = one.folder / "ledger.json"
    exported.write_text(one.ok("ledger", "export").out)
    shutil.rmtree(Paths(one.root).state_dir)
    one.ok("ledger", "import", str(exported))
    declare(one, without("IPv4Route/two"))
    assert apply(one).code == 0
    assert len(wire.ip_json("-4 route show proto 72")) == 1


def _edit(holdfast: Holdfast, *statements: str) -> None:
    with sqlite3.connect(Paths(holdfast.root).ledger) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_an_upgrade_takes_the_namespace_by_itself(wire: Namespace, one: Holdfast) -> None:
    """A ledger of before has no identity, and nobody holds the namespace."""
    _edit(one, "DELETE FROM notes WHERE name IN ('installation', 'namespace')")
    place().unlink()
    assert "nothing to do" in one.ok("plan", "router.yaml").out
    assert apply(one).code == 0
    assert json.loads(place().read_text())["root"] == str(one.root)
    declare(one, without("IPv4Route/two"))
    assert apply(one).code == 0
    assert len(wire.ip_json("-4 route show proto 72")) == 1


def test_after_a_boot_there_is_no_ceremony(one: Holdfast) -> None:
    _edit(
        one,
        "UPDATE claims SET epoch = 'another-boot/1' WHERE epoch != ''",
        "UPDATE notes SET value = json_set(value, '$.epoch', 'another-boot/1')"
        " WHERE name = 'namespace'",
    )
    with private_namespaces() as booted:
        booted.veth("wan0", "isp0")
        assert apply(one).code == 0
        declare(one, without("IPv4Route/two"))
        assert apply(one).code == 0
        assert len(booted.ip_json("-4 route show proto 72")) == 1


def test_cleanup_gives_the_namespace_up(one: Holdfast, other: Holdfast) -> None:
    assert place().exists()
    one.ok("cleanup", "router.yaml", "--yes")
    assert not place().exists()
    assert apply(other).code == 0
    assert json.loads(place().read_text())["root"] == str(other.root)


@pytest.mark.usefixtures("one")
def test_a_namespace_that_is_gone_holds_nobody_up(other: Holdfast) -> None:
    """The kernel gives its inode to the next one."""
    said = json.loads(place().read_text())
    place().write_text(json.dumps(said | {"epoch": said["epoch"] + "0"}))
    assert apply(other).code == 0
    assert json.loads(place().read_text())["root"] == str(other.root)


def test_status_names_the_holder(one: Holdfast, other: Holdfast) -> None:
    said = one.run("status", "router.yaml", "-o", "json").json["namespace"]
    assert (said["holder"]["root"], said["ours"]) == (str(one.root), True)
    said = other.run("status", "router.yaml", "-o", "json").json["namespace"]
    assert (said["holder"]["root"], said["ours"]) == (str(one.root), False)
    assert "held by the Holdfast installation at" in other.run("status", "router.yaml").err


def test_where_run_cannot_be_written(
    wire: Namespace, other: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the user namespace of a normal user: nobody holds it, and a tag still is no proof."""
    monkeypatch.setattr(namespace_holder, "FOLDER", Path("/proc/holdfast/namespaces"))
    one = make(tmp_path, "one", ONE)
    one.set_up("apply", "router.yaml", "--yes")
    declare(one, without("IPv4Route/two"))
    one.set_up("apply", "router.yaml", "--yes")
    assert len(wire.ip_json("-4 route show proto 72")) == 1
    other.set_up("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert len(wire.ip_json("-4 route show proto 72")) == 2


def test_what_is_made_before_recovery_is_claimed(wire: Namespace, one: Holdfast) -> None:
    """What a pass has made itself is its own; what was there, and is as declared, is not."""
    shutil.rmtree(Paths(one.root).state_dir)
    wire.ip("neigh del 192.0.2.9 dev wan0")
    apply(one)
    claimed = {str(key) for key in _claims(one)}
    assert "neighbour 192.0.2.9 dev wan0" in claimed
    assert not claimed & (TAGGED - {"neighbour 192.0.2.9 dev wan0"})


def _claims(holdfast: Holdfast) -> list[Key]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return list(ledger.claims())
