"""`apply` and `reconcile --once`: from a file to the kernel, and what is said about it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.paths import Paths
from holdfast.state import database
from holdfast.state.ledger import Ledger
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.namespace import Namespace


def test_what_is_declared_is_in_the_kernel_and_said_to_be(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert done.out == "Applied: 2 created, 1 updated.\nConverged: 3 artifacts as declared.\n"
    (seen,) = wan.ip_json("route show proto 72")
    assert (seen["dst"], seen["gateway"]) == ("10.1.0.0/16", "192.0.2.254")


def test_a_second_pass_changes_nothing_and_records_no_event(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    before = _events(holdfast)
    done = holdfast.ok("reconcile", "--once", "router.yaml")
    assert done.out == "Converged: 3 artifacts as declared.\n"
    assert _events(holdfast) == before
    assert [kind for kind, _ in before] == ["updated", "created", "created"]
    assert wan.ip_json("route show proto 72")


def test_the_installed_file_is_the_default(holdfast: Holdfast, wan: Namespace) -> None:
    installed = Paths(holdfast.root).config
    installed.parent.mkdir(parents=True)
    holdfast.declare(WAN).rename(installed)
    holdfast.ok("apply", "--yes")
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_the_configuration_may_come_through_a_pipe(holdfast: Holdfast, wan: Namespace) -> None:
    text = holdfast.declare(WAN).read_text()
    done = holdfast.run("apply", "/dev/stdin", "--yes", stdin=text)
    assert done.code == 0, done.err
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_json_report(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    report = holdfast.ok("apply", "router.yaml", "--yes", "-o", "json").json
    assert report["outcome"] == "converged"
    assert report["applied"] == {"update": 1, "create": 2}
    assert report["as_declared"] == 3
    assert [entry["action"] for entry in report["results"]] == ["update", "create", "create"]
    assert report["left"] == []
    assert wan.ip_json("route show proto 72")


def test_what_failed_is_told_in_the_kernels_words_and_the_rest_goes_on(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(
        WAN, WAN_ADDRESS, route("bad", "10.1.0.0/16", "203.0.113.1"), route("good", "10.2.0.0/16")
    )
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 1
    assert "create route 10.1.0.0/16: Network is unreachable" in done.out
    assert "Nexthop has invalid gateway" in done.out
    assert "nothing on wan0 leads to 203.0.113.1: give it an address in the network" in done.out
    assert "or say `onlink: true`" in done.out
    assert "      IPv4Route/bad (router.yaml:14:7)\n" in done.out
    assert done.out.endswith("Not converged: 1 still to do; 3 artifacts as declared.\n")
    assert [seen["dst"] for seen in wan.ip_json("route show proto 72")] == ["10.2.0.0/16"]


def test_pending_is_said_and_is_no_failure(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, ("Interface", "dmz", "{ifname: dmz0, adminUp: true}"))
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert "Interface/dmz (router.yaml:10:7): link dmz0 is not there yet" in done.out
    assert "Converged: 1 artifact as declared; 1 resource pending." in done.out
    assert wan.ip_json("link show dev wan0")[0]["mtu"] == 1500


def test_a_conflict_leaves_what_is_there_alone(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("route add 10.1.0.0/16 via 192.0.2.253 proto static")
    before = wan.ip("route show")
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 1
    assert "nexthops  via 192.0.2.253 dev wan0 → via 192.0.2.254 dev wan0" in done.out
    assert "Not converged: 1 conflict" in done.out
    assert wan.ip("route show") == before


def test_dry_run_changes_neither_kernel_nor_ledger(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    for words in (("apply", "--dry-run"), ("reconcile", "--once", "--dry-run")):
        done = holdfast.ok(*words, "router.yaml")
        assert "Plan: 1 to create, 1 to update." in done.out
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]
    assert not Paths(holdfast.root).ledger.exists()


def test_an_empty_file_does_not_remove_everything(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    before = wan.ip("route show")
    holdfast.declare()
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 4
    assert "say --allow-mass-delete" in done.err
    assert holdfast.run("apply", "router.yaml", "--dry-run").code == 4
    assert wan.ip("route show") == before
    with Ledger.read(Paths(holdfast.root)) as ledger:
        assert len(ledger.generations()) == 1, "a refused pass is no generation"
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert not wan.ip_json("route show proto 72")


def test_an_invalid_file_touches_nothing(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, ("IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.999/24}"))
    done = holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 3
    assert done.err.startswith("router.yaml:13:")
    assert "nothing was touched" in done.err
    assert "UP" not in wan.ip_json("link show dev wan0")[0]["flags"]
    assert not Paths(holdfast.root).ledger.exists()


def test_nobody_to_ask(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    done = holdfast.run("apply", "router.yaml")
    assert (done.code, done.out) == (4, "")
    assert "add --yes" in done.err
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]
    holdfast.ok("apply", "router.yaml", "--yes")
    # Nothing to be asked about.
    assert "Converged: 2 artifacts as declared." in holdfast.ok("apply", "router.yaml").out


def test_on_a_terminal_it_shows_the_plan_and_takes_only_yes(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    code, said = _at_terminal(holdfast, "y\n", "apply", "router.yaml")
    assert code == 4
    assert "address 192.0.2.1/24 dev wan0" in said
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]
    code, said = _at_terminal(holdfast, "yes\n", "apply", "router.yaml")
    assert code == 0, said
    assert "Converged:" in said
    assert wan.ip_json("addr show dev wan0")[0]["addr_info"]


def test_what_changes_while_somebody_reads_the_plan_is_not_applied(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    code, said = _at_terminal(
        holdfast,
        "yes\n",
        "apply",
        "router.yaml",
        meanwhile=lambda: wan.ip("link set wan0 mtu 1400"),
    )
    assert code == 4
    assert "the host changed while the plan was being read" in said
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]


def test_the_second_process_waits_or_says_who_holds_the_ledger(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN)
    with Ledger.open(Paths(holdfast.root), command="holdfast test", wait=0) as ledger:
        done = holdfast.run("apply", "router.yaml", "--yes", "--wait", "0.2")
        assert done.code == 5
        assert f"process {os.getpid()} (`holdfast test`)" in done.err
        assert holdfast.ok("plan", "router.yaml").out, "reading needs no lock"
        waiting = subprocess.Popen(
            holdfast.arguments("apply", "router.yaml", "--yes"),
            cwd=holdfast.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "waiting for another process to let go of the ledger\n"
        assert waiting.poll() is None
        ledger.close()
    assert waiting.communicate(timeout=60)[1] == "  updated link wan0\n"
    assert waiting.returncode == 0
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_a_disk_that_takes_long_is_nobody_who_holds_the_ledger(
    holdfast: Holdfast,
    wan: Namespace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = holdfast.declare(WAN)
    opened = database.open_writer

    def slow(path: Path) -> database.Database:
        time.sleep(1.5)
        return opened(path)

    monkeypatch.setattr(database, "open_writer", slow)
    assert main.run(["--root", str(holdfast.root), "apply", str(file), "--yes"]) == 0
    assert capfd.readouterr().err == "  updated link wan0\n"
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_two_at_once_end_up_as_declared(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
    both = [
        subprocess.Popen(
            holdfast.arguments("apply", "router.yaml", "--yes"),
            cwd=holdfast.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("Applied:" in out for out, _ in said) == 1
    assert len(wan.ip_json("route show proto 72")) == 1


def test_interrupted_in_the_middle_the_next_pass_finishes(
    holdfast: Holdfast, wan: Namespace
) -> None:
    count = 100_000
    lines = (f"10.{i >> 14}.{i >> 6 & 255}.{(i & 63) * 4}/30\n" for i in range(count))
    (holdfast.folder / "routes.txt").write_text("".join(lines))
    spec = "{gateway: 192.0.2.254, interface: wan, file: routes.txt}"
    holdfast.declare(WAN, WAN_ADDRESS, ("RouteList", "many", spec))
    process = subprocess.Popen(
        holdfast.arguments("apply", "router.yaml", "--yes"),
        cwd=holdfast.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not _has_routes():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted; if something was half done, the next pass resolves it" in said
    assert "Traceback" not in said
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert "Converged: 100 002 artifacts as declared." in done.out
    assert len(wan.ip("route show proto 72").splitlines()) == count


def test_a_kill_during_the_wait_for_the_ledger_is_quiet(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    with Ledger.open(Paths(holdfast.root), command="holdfast test", wait=0):
        process = subprocess.Popen(
            holdfast.arguments("apply", "router.yaml", "--yes"),
            cwd=holdfast.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting for another process to let go of the ledger\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert wan.ip_json("link show dev wan0")


def _events(holdfast: Holdfast) -> list[tuple[str, str]]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return [(event.kind, event.subject) for event in ledger.events()]


def _has_routes() -> bool:
    with Path("/proc/self/net/route").open() as table:
        # The first lines name the connected network; the routes behind a gateway follow.
        return table.read(8192).count("\n") > 10


def _at_terminal(
    holdfast: Holdfast, answer: str, *words: str, meanwhile: Callable[[], object] = lambda: None
) -> tuple[int, str]:
    """Runs a command with a terminal, answers its question, and gives all that it said."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        holdfast.arguments(*words),
        cwd=holdfast.folder,
        env=holdfast.environment(NO_COLOR="1"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = ""
    while "taken for one: " not in said and (piece := _read(ours)):
        said += piece
    meanwhile()
    os.write(ours, answer.encode())
    while piece := _read(ours):
        said += piece
    os.close(ours)
    return process.wait(timeout=60), said


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode()
    except OSError:  # the other end was closed
        return ""
