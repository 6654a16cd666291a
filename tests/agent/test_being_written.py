"""A file that is being written is not taken for the whole: what the router has, it keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

GOOD = {
    "Interface/lan": "{ifname: lan0}",
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 10.0.0.1/24}",
    "IPv4SourceNAT/out": "{outboundInterface: wan, sourceCIDRs: [10.0.0.0/24],"
    " translation: {type: interfaceAddress}}",
    "IPv4Route/default": "{destination: default, gateway: 192.0.2.254, interface: wan}",
    "RouteList/list": "{gateway: 192.0.2.253, interface: wan, file: routes}",
}
ROUTES = "".join(f"10.{number}.0.0/16\n" for number in range(20, 24))
REFUSED = 4


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    netns.veth("lan0", "far1")
    (root / "routes").write_text(ROUTES)
    path = root / "router.yaml"
    path.write_text(document(GOOD))
    return path


def command(root: Path, *words: str) -> tuple[int, str]:
    argv = [sys.executable, "-m", "holdfast", "--root", str(root), *words]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@contextmanager
def running(root: Path, file: Path) -> Iterator[Daemon]:
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start: ")
        daemon.wait_for("converged")
        yield daemon


@contextmanager
def nothing_vanishes() -> Iterator[None]:
    """By what the kernel tells of everything that is deleted meanwhile."""
    commands = (["ip", "monitor", "address", "route"], ["nft", "monitor", "destroy"])
    with TemporaryFile("w+") as out:
        watching = [subprocess.Popen(["stdbuf", "-oL", *words], stdout=out) for words in commands]
        try:
            yield
        finally:
            for one in watching:
                one.terminate()
                one.wait()
        out.seek(0)
        gone = [line for line in out if line.lower().startswith("delete")]
    assert [line for line in gone if "fe80::" not in line and "ff00::" not in line] == []


def appended(path: Path, text: str, pause: float) -> None:
    """Opened and closed for each line, as `echo ... >>` does."""
    path.write_text("")
    for line in text.splitlines(keepends=True):
        with path.open("a") as stream:
            stream.write(line)
        time.sleep(pause)


def kept_open(path: Path, text: str, pause: float) -> None:
    with path.open("w") as stream:
        for line in text.splitlines(keepends=True):
            stream.write(line)
            stream.flush()
            time.sleep(pause)


def rewritten(path: Path, text: str, pause: float) -> None:
    """Cut to nothing and written in two halves, each by a process of its own."""
    half = len(text) // 2
    path.write_text(text[: text.rindex("\n", 0, half) + 1])
    time.sleep(pause)
    path.write_text(text)


def renamed(path: Path, text: str, pause: float) -> None:
    fresh = path.with_name("fresh")
    appended(fresh, text, pause / 4)
    fresh.rename(path)


WAYS = (appended, kept_open, rewritten, renamed)


def _routed(netns: Namespace, destination: str, *, there: bool = True) -> None:
    until(lambda: (destination in netns.ip("route show")) is there, f"{destination}: {there}")


def more(count: int) -> dict[str, str]:
    """The good one, and some routes more."""
    route = "{{destination: 10.9.{0}.0/24, gateway: 192.0.2.254, interface: wan}}"
    return {**GOOD, **{f"IPv4Route/r{number}": route.format(number) for number in range(count)}}


def test_nothing_of_the_good_one_vanishes(file: Path, root: Path, netns: Namespace) -> None:
    """However the file, and a list that it names, are written line by line."""
    routes, lines = root / "routes", ROUTES
    with running(root, file), nothing_vanishes():
        for count, write in enumerate(WAYS):
            write(file, document(more(count + 1)), 0.03)
            _routed(netns, f"10.9.{count}.0/24")
            lines += f"10.{50 + count}.0.0/16\n"
            write(routes, lines, 0.06)
            _routed(netns, f"10.{50 + count}.0.0/16")
        assert netns.ip("route show").count("via 192.0.2.25") == 5 + 2 * len(WAYS)


def test_who_appends_with_pauses_is_waited_for(file: Path, root: Path, netns: Namespace) -> None:
    """A resource is valid before its last line is there, and says something else."""
    lines = (
        "    - apiVersion: net.holdfast.dev/v1alpha1",
        "      kind: IPv4Route",
        "      metadata: {name: slow}",
        "      spec:",
        "        interface: wan",
        "        gateway: 192.0.2.254",
        "        destination: 10.77.0.0/16",
        "        metric: 7",
    )
    with (
        running(root, file) as daemon,
        TemporaryFile("w+") as out,
        subprocess.Popen(["stdbuf", "-oL", "ip", "monitor", "route"], stdout=out) as monitor,
    ):
        for line in lines:
            with file.open("a") as stream:
                stream.write(f"{line}\n")
            time.sleep(0.6)
        _routed(netns, "10.77.0.0/16")
        until(lambda: os.fstat(out.fileno()).st_size > 0, "what the monitor says of it")
        monitor.terminate()
        monitor.wait()
        out.seek(0)
        told = [line for line in out if line.startswith("10.77.0.0/16")]
        assert told and all("metric 7" in line for line in told), told
        assert daemon.end() == 0


def test_a_slow_writer_does_not_take_the_firewall_down(file: Path, root: Path) -> None:
    """What was written so far is quiet, valid and smaller: the guard weighs what would go."""
    text = document(GOOD)
    with running(root, file) as daemon, nothing_vanishes():
        half = text[: text.index("    - apiVersion", text.index("address: 192.0.2.1/24"))]
        file.write_text(half)
        daemon.wait_for("router.yaml is not applied: the router would be without IPv4 on lan0")
        daemon.wait_for("`holdfast apply` does it if that is meant")
        status = command(root, "status")[1]
        assert "NAT (nft ip holdfast_nat) and the IPv4 way out (route 0.0.0.0/0)" in status
        with file.open("a") as stream:
            stream.write(text.removeprefix(half))
        until(lambda: "would be without" not in command(root, "status")[1], "no trouble is left")


def test_the_operator_means_it(file: Path, root: Path, netns: Namespace) -> None:
    with running(root, file) as daemon:
        smaller = {name: spec for name, spec in GOOD.items() if "NAT" not in name}
        renamed(file, document(smaller), 0)
        daemon.wait_for("is not applied: the router would be without NAT (nft ip holdfast_nat)")
        netns.ip("addr del 10.0.0.1/24 dev lan0")
        until(lambda: "10.0.0.1/24" in netns.ip("addr show dev lan0"), "the one before is held to")
        # Nor does it pass because somebody else took away what it would delete.
        netns.run("nft", "delete", "table", "ip", "holdfast_nat")
        until(lambda: "holdfast_nat" in netns.run("nft", "list", "tables"), "NAT is back")
        assert daemon.end() == 0
    # Nor does anything else that nobody asked for.
    code, said = command(root, "reconcile", "--once", str(file))
    assert (code, "would be without NAT" in said) == (REFUSED, True), said
    # It is so after a restart, too.
    with serve(root, file) as daemon:
        daemon.wait_for("is not applied: the router would be without NAT (nft ip holdfast_nat)")
        netns.ip("addr del 10.0.0.1/24 dev lan0")
        until(lambda: "10.0.0.1/24" in netns.ip("addr show dev lan0"), "the one before is held to")
        assert "holdfast_nat" in netns.run("nft", "list", "tables")
        code, said = command(root, "apply", "--yes")
        assert (code, "1 deleted" in said) == (0, True), said
        assert "holdfast_nat" not in netns.run("nft", "list", "tables")
        assert daemon.end() == 0
    # What was applied is not asked for again.
    with serve(root, file) as daemon:
        until(lambda: command(root, "status")[0] == 0, "healthy")
        assert "not applied" not in daemon.said()


def test_renumbering_asks_nobody(file: Path, root: Path, netns: Namespace) -> None:
    with running(root, file):
        renumbered = document(GOOD).replace("10.0.0.1/24", "10.7.0.1/24")
        renamed(file, renumbered, 0)
        until(lambda: "10.0.0.1/24" not in netns.ip("addr show dev lan0"), "renumbered")
        assert "10.7.0.1/24" in netns.ip("addr show dev lan0")


def test_a_file_that_somebody_has_open(file: Path, root: Path, netns: Namespace) -> None:
    """It waits for as long as that lasts, and says so; who applies it is told of the doubt."""
    with running(root, file) as daemon:
        with file.open("w") as stream:
            stream.write(document(more(1)))
            stream.flush()
            daemon.signal(signal.SIGHUP)
            daemon.wait_for("router.yaml is being written (`fuser -v")
            assert "10.9.0.0/24" not in netns.ip("route show")
            netns.ip("addr del 10.0.0.1/24 dev lan0")
            until(lambda: "10.0.0.1/24" in netns.ip("addr show dev lan0"), "repaired")
            # What is new harms nobody.
            assert command(root, "apply", "--yes")[0] == 0
            assert "10.9.0.0/24" in netns.ip("route show")
        with file.open("w") as stream:
            stream.write(document(GOOD))
            stream.flush()
            code, said = command(root, "apply", "--yes")
            assert (code, "is open for writing, so it may not be whole" in said) == (REFUSED, True)
            assert "10.9.0.0/24" in netns.ip("route show")
        until(lambda: "10.9.0.0/24" not in netns.ip("route show"), "it was closed")
        until(lambda: "being written" not in command(root, "status")[1], "no trouble is left")


def test_apply_of_a_file_that_somebody_has_open(file: Path, root: Path) -> None:
    """Without a daemon."""
    assert command(root, "apply", str(file), "--yes")[0] == 0
    with file.open("a") as stream:
        stream.write("# and so on\n")
        stream.flush()
        assert command(root, "apply", str(file), "--yes")[0] == 0
        file.write_text(document({n: s for n, s in GOOD.items() if n != "RouteList/list"}))
        code, said = command(root, "apply", str(file), "--yes")
        assert (code, "try again once it is closed" in said) == (REFUSED, True), said
    assert command(root, "apply", str(file), "--yes")[0] == 0


def test_a_daemon_that_starts_in_the_middle(file: Path, root: Path, netns: Namespace) -> None:
    """What the ledger knows is in force until the file is left alone."""
    with running(root, file) as daemon:
        assert daemon.end() == 0
    text = document(more(1))
    with nothing_vanishes(), file.open("w") as stream:
        stream.write(text[: text.index("    - apiVersion", text.index("address: 192.0.2.1/24"))])
        stream.flush()
        with serve(root, file) as daemon:
            daemon.wait_for("is being written: generation")
            netns.ip("neigh show")
            stream.write(text.removeprefix(file.read_text()))
            stream.close()
            until(lambda: "10.9.0.0/24" in netns.ip("route show"), "the new one")


def test_a_file_renamed_into_place_is_taken_at_once(
    file: Path, root: Path, netns: Namespace
) -> None:
    """It needs no quiet; what is written in place does, and more of it where something goes."""
    late = "router.yaml was written a moment ago, and something would be deleted for it"
    with running(root, file) as daemon:
        for count in (1, 0, 1):
            renamed(file, document(more(count)), 0)
            _routed(netns, "10.9.0.0/24", there=bool(count))
        assert late not in daemon.said()
        file.write_text(document(GOOD))
        _routed(netns, "10.9.0.0/24", there=False)
        assert late in daemon.said()
