"""The command line where a daemon runs: the same words, through its socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.agent.two_providers import until
from tests.cli.conftest import ADMITTING, WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace, private_namespaces

ROUTER = (WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
COMMANDS = (
    ("status",),
    ("status", "-o", "json"),
    ("status", "-o", "yaml"),
    ("plan",),
    ("plan", "-o", "json"),
    ("plan", "-o", "yaml"),
    ("plan", "--detailed-exitcode"),
    ("explain", "wan0"),
    ("explain", "10.1.0.0/16", "-o", "json"),
    ("explain", "IPv4Route/a"),
    ("explain", "IPv4Route/a", "-o", "yaml"),
    ("explain", "10.9.0.0/16"),
    ("explain", "10.9.0.0/16", "-o", "json"),
    ("explain", "Nope/nope"),
    ("apply", "--dry-run"),
    ("apply",),
    ("apply", "--yes"),
    ("apply", "--yes", "-o", "json"),
    ("dynamic", "list"),
    ("dynamic", "list", "-o", "json"),
    ("dynamic", "describe", "Owner/nobody"),
    ("dynamic", "render"),
    ("dynamic", "diff"),
    ("dynamic", "withdraw", "Owner/nobody"),
    ("confirm",),
    ("generations",),
    ("generations", "-o", "yaml"),
    ("generations", "show", "1"),
    ("generations", "show", "1", "-o", "json"),
    ("generations", "show", "99"),
    ("generations", "show", "99999999999999999999"),
    ("generations", "diff", "1"),
    ("generations", "diff", "1", "99"),
    ("generations", "diff", "1", "-o", "json"),
    ("rollback", "--yes"),
    ("rollback", "--to", "99", "--yes"),
    ("rollback", "--to", "1"),
    ("plugin", "list"),
    ("plugin", "list", "-o", "json"),
    ("plugin", "run", "nope"),
    ("action", "list"),
    ("action", "list", "-o", "yaml"),
    ("action", "journal"),
    ("action", "show", "nope"),
    ("action", "approve", "nope"),
    ("action", "execute"),
    ("action", "execute", "nope"),
    ("action", "rollback", "nope"),
    ("events", "-o", "json"),
    ("events", "--kind", "created"),
    ("events", "--after", "100000"),
    ("events", "--after", "99999999999999999999"),
    ("events", "--last", "99999999999999999999"),
)


@pytest.mark.usefixtures("wan")
def test_the_same_with_a_daemon_as_without(holdfast: Holdfast) -> None:
    file = holdfast.root / "etc/holdfast/router.yaml"
    file.parent.mkdir(parents=True)
    holdfast.declare(*ROUTER).rename(file)
    holdfast.ok("apply", "--yes")
    with daemon(holdfast, file) as running:
        through = [holdfast.run(*words) for words in COMMANDS]
        assert running.end() == 0
    for words, done in zip(COMMANDS, through, strict=True):
        alone = holdfast.run(*words)
        if words[0] == "status" and len(words) > 1:
            assert done.code == alone.code == 0
            assert _untimed(done.out) == _untimed(alone.out), words
            continue
        assert (done.code, _untimed(done.out), done.err) == (
            alone.code,
            _untimed(alone.out),
            alone.err,
        ), words


def _untimed(text: str) -> list[str]:
    """Without the lines that say when."""
    return [line for line in text.splitlines() if "time" not in line and "last pass" not in line]


def test_apply_takes_what_was_just_written(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file):
        holdfast.declare(*ROUTER, route("b", "10.2.0.0/16"))
        done = holdfast.ok("apply", "--yes", "router.yaml")
        assert "Converged: 4 artifacts as declared." in done.out
        assert wan.ip_json("route show 10.2.0.0/16")
        assert "4 resources: 4 Healthy." in holdfast.ok("status").out
        file.write_text(file.read_text().replace("wan0", ""))
        done = holdfast.run("apply", "--yes")
        assert done.code == 3
        assert "router.yaml:" in done.err
        assert "the configuration is invalid (1 problem); nothing was touched" in done.err
        assert "is invalid: the last good one stays in force" in holdfast.ok("top").out


@pytest.mark.usefixtures("wan")
def test_status_says_what_the_daemon_meets_besides(holdfast: Holdfast) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file) as served:
        file.write_text("kind: Nonsense\n")
        served.wait_for("the last good one stays in force")
        done = holdfast.run("status")
        assert done.code == 0
        assert "is invalid: the last good one stays in force" in done.err


def test_another_file_is_not_applied(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file) as running:
        holdfast.declare(WAN, WAN_ADDRESS, file="other.yaml")
        done = holdfast.run("apply", "--yes", "other.yaml")
        assert done.code == 4
        assert f"a daemon (process {running.process.pid}) keeps this host as {file}" in done.err
        assert wan.ip_json("route show 10.1.0.0/16")
        # A look at it is allowed.
        assert "1 to delete" in holdfast.ok("plan", "other.yaml").out


@pytest.mark.usefixtures("wan")
def test_a_daemon_in_another_namespace_is_not_asked(holdfast: Holdfast) -> None:
    file = holdfast.declare(WAN, WAN_ADDRESS)
    with daemon(holdfast, file), private_namespaces():
        done = holdfast.run("status", "router.yaml")
        assert done.code == 1
        assert "no link wan0" in done.out or "Pending" in done.out or "Drifted" in done.out


@pytest.mark.usefixtures("wan")
def test_parts_are_handed_in_and_withdrawn(holdfast: Holdfast) -> None:
    file = holdfast.declare(ADMITTING, WAN, WAN_ADDRESS)
    part = holdfast.folder / "part.yaml"
    part.write_text(
        """\
apiVersion: config.holdfast.dev/v1alpha1
kind: DynamicConfigPart
metadata: {name: ci}
spec:
  source: Owner/ci
  generation: 1
  observedAt: 2026-01-01T00:00:00Z
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: extra}
      spec: {destination: 10.7.0.0/16, gateway: 192.0.2.254, interface: wan}
"""
    )
    with daemon(holdfast, file):
        assert "Owner/ci#1 is stored" in holdfast.ok("dynamic", "put", "part.yaml").out
        assert "Owner/ci" in holdfast.ok("dynamic", "list").out
        assert "+ IPv4Route/extra source=Owner/ci" in holdfast.ok("dynamic", "diff").out
        done = holdfast.run("dynamic", "put", "part.yaml")
        assert done.code == 3
        assert "1 is not above 1, which Owner/ci handed in before" in done.err
        assert "Owner/ci#1 is withdrawn" in holdfast.ok("dynamic", "withdraw", "Owner/ci").out
        assert "no dynamic config changes" in holdfast.ok("dynamic", "diff").out


@pytest.mark.usefixtures("wan")
def test_a_daemon_that_is_killed_in_the_middle(holdfast: Holdfast) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file) as running:
        os.kill(running.process.pid, signal.SIGSTOP)
        process = subprocess.Popen(
            holdfast.arguments("apply", "--yes"),
            cwd=holdfast.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # It waits for the answer of a daemon that hangs.
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting for the daemon to answer\n"
        assert process.poll() is None
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "nothing was touched: the daemon ended before it answered" in err
    # The next one finds its socket, and nobody behind it.
    assert "3 resources: 3 Healthy." in holdfast.ok("status", "router.yaml").out


def test_followed_events_go_on_with_the_next_daemon(holdfast: Holdfast, wan: Namespace) -> None:
    file = holdfast.declare(*ROUTER)
    out = holdfast.folder / "followed"
    with daemon(holdfast, file) as first:
        with out.open("wb") as stream:
            process = subprocess.Popen(
                holdfast.arguments("events", "-f", "-o", "json"), stdout=stream, stderr=stream
            )
        try:
            until(lambda: '"sequence": 1,' in out.read_text(), "the first event")
            assert first.end() == 0
            with daemon(holdfast, file):
                wan.ip("route del 10.1.0.0/16")
                until(
                    lambda: "10.1.0.0/16" in out.read_text().rpartition("repaired")[2], "a repair"
                )
        finally:
            process.terminate()
            process.wait()
    lines = [json.loads(line) for line in out.read_text().splitlines() if line.startswith("{")]
    numbers = [line["sequence"] for line in lines]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.usefixtures("wan")
def test_many_commands_at_once(holdfast: Holdfast) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file):
        codes: list[int] = []
        words = (("status",), ("apply", "--yes"), ("plan",), ("events",))
        threads = [
            threading.Thread(target=lambda w=w: codes.append(holdfast.run(*w).code))
            for w in words * 3
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == [0] * len(threads)


@pytest.mark.usefixtures("wan")
def test_events_of_the_ledger_where_no_daemon_runs(holdfast: Holdfast) -> None:
    holdfast.declare(*ROUTER)
    holdfast.ok("apply", "router.yaml", "--yes")
    every = holdfast.ok("events", "-o", "json").json["events"]
    assert [one["sequence"] for one in every] == list(range(1, len(every) + 1))
    assert holdfast.ok("events", "--after", "1", "-o", "json").json["events"] == every[1:]
    assert holdfast.ok("events", "--last", "1", "-o", "json").json["events"] == every[-1:]
    found = holdfast.ok("events", "--resource", "IPv4Route/a", "-o", "json").json["events"]
    assert [one["subject"] for one in found] == ["route 10.1.0.0/16"]
    line = holdfast.ok("events", "--resource", "IPv4Route/a").out
    assert "created    route 10.1.0.0/16" in line
    assert holdfast.ok("events", "--kind", "fight").err == "there are no such events\n"
    out = holdfast.folder / "followed"
    with out.open("wb") as stream:
        process = subprocess.Popen(
            holdfast.arguments("events", "-f", "--kind", "deleted"), stdout=stream, stderr=stream
        )
    try:
        holdfast.declare(WAN, WAN_ADDRESS)
        holdfast.ok("apply", "router.yaml", "--yes")
        until(lambda: "deleted" in out.read_text(), "the event")
    finally:
        process.terminate()
        process.wait()


@pytest.mark.usefixtures("wan")
def test_a_folder_that_holds_no_socket(holdfast: Holdfast) -> None:
    holdfast.declare(*ROUTER)
    folder = holdfast.root / "run/holdfast"
    folder.mkdir(parents=True)
    (folder / "holdfast.sock").write_text("no socket")
    assert holdfast.run("status", "router.yaml").code == 1
    Path(folder / "holdfast.sock").unlink()
