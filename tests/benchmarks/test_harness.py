"""The benchmarks' own machinery. What they measure is not tested here: machines differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import harness, routes
from benchmarks.harness import Result, Run
from tests.namespace import Namespace

_PROJECT = Path(__file__).parents[2]


def test_the_last_line_is_the_result() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "cli-start", "--repeat", "1"],
        cwd=_PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == {"name", "ours_s", "peers_s", "ratio", "rss_mb"}
    assert result["name"] == "cli-start"
    assert result["ours_s"] > 0
    assert result["rss_mb"] > 1
    (peer,) = result["peers_s"]
    assert result["ratio"][peer] == pytest.approx(
        result["ours_s"] / result["peers_s"][peer], rel=0.05
    )


def test_contenders_run_in_turn_and_the_median_counts() -> None:
    order: list[str] = []
    own, other = iter([9.0, 1.0, 2.0]), iter([4.0, 4.0, 100.0])

    def ours() -> Run:
        order.append("ours")
        return Run(next(own), 30)

    def peer() -> Run:
        order.append("peer")
        return Run(next(other))

    result = harness.compare("it", 3, ours, {"peer": peer}, bars={"peer": 1.0})
    assert order == ["ours", "peer"] * 3
    assert result.as_json() == {
        "name": "it",
        "ours_s": 2.0,
        "peers_s": {"peer": 4.0},
        "ratio": {"peer": 0.5},
        "rss_mb": 30,
    }


def test_the_table_says_which_bars_are_missed() -> None:
    result = Result(
        "it", Run(2.0, 2048), {"slow": 4.0, "fast": 1.0}, {"slow": 1, "fast": 1}, {}, 1024
    )
    lines = command.table([result]).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["met", "MISSED", "MISSED"]


def test_a_program_that_fails_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="exited with 3: out of luck"):
        harness.timed(["sh", "-c", "echo out of luck; exit 3"])


def test_memory_is_the_most_the_process_held() -> None:
    """Asked by a process of its own, as benchmarks are run: the kernel counts the asking one too,
    and a worker that has run thousands of tests is larger than what is measured here."""
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, sys.executable, "-c", "b'x' * (200 << 20)"],
        cwd=_PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 200 < float(measured.stdout) < 260


_MEASURE = "import sys; from benchmarks import harness; print(harness.timed(sys.argv[1:]).rss_mb)"


@pytest.mark.usefixtures("netns")
def test_every_route_asked_for_is_counted() -> None:
    with harness.router(address=True) as namespace:
        before = routes.count_in_kernel()
        routes.fill_foreign(300, 99, skip=10)
        assert routes.count_in_kernel() - before == 300
        shown = namespace.ip_json("route show proto 99")
    assert {route["dst"] for route in shown} == set(routes.destinations(300, skip=10))


def test_the_link_and_its_routes_are_gone_afterwards(netns: Namespace) -> None:
    with harness.router(address=False):
        pass
    assert [link["ifname"] for link in netns.ip_json("link show")] == ["lo"]
