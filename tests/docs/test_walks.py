"""The walks through the code in docs/architecture.md: each step is called, and in that order."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs import markdown
from tests.namespace import Namespace

_PAGE = markdown.ROOT / "docs" / "architecture.md"
_STEP = re.compile(r"^\d+\. \[`(?P<module>[^`]+)`\]\((?P<target>[^)]+)\) `(?P<function>[^`]+)`: ")
_APPLY = "One route, from `apply` to the kernel and back"
_DAEMON = "The same route in the daemon"
_ROUTER = """
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: walk}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: office}
      spec: {destination: 10.20.0.0/16, gateway: 192.0.2.253}
"""


@pytest.fixture
def router(netns: Namespace, tmp_path: Path) -> Path:
    netns.veth("wan0", "isp0", "192.0.2.1/24")
    file = tmp_path / "router.yaml"
    file.write_text(_ROUTER)
    return file


@pytest.mark.parametrize("heading", [_APPLY, _DAEMON])
def test_the_links_of_a_walk(heading: str) -> None:
    steps = _steps(heading)
    source = markdown.ROOT / "src" / "holdfast"
    assert [step["target"] for step in steps] == [f"../src/holdfast/{s['module']}" for s in steps]
    assert [step["module"] for step in steps if not (source / step["module"]).is_file()] == []
    assert f" walk has {len({step['module'] for step in steps})} modules" in _text(heading)


def test_the_walk_of_an_apply(router: Path, tmp_path: Path) -> None:
    output = tmp_path / "calls"
    command = [*_traced(output, tmp_path), "apply", str(router), "--yes"]
    done = subprocess.run(command, cwd=markdown.ROOT, capture_output=True, text=True, check=False)
    assert "Converged: 1 artifact as declared." in done.stdout, done.stderr
    _assert_called(_APPLY, output)


def test_the_walk_of_the_daemon(netns: Namespace, router: Path, tmp_path: Path) -> None:
    output, log = tmp_path / "calls", tmp_path / "log"
    command = [*_traced(output, tmp_path), "serve", str(router)]
    with log.open("w") as stream:
        daemon = subprocess.Popen(command, cwd=markdown.ROOT, stderr=stream)
    try:
        _wait_for(log, "; converged")
        time.sleep(0.5)  # until it waits again
        daemon.send_signal(signal.SIGUSR1)
        netns.ip("route del 10.20.0.0/16")
        _wait_for(log, "pass in .* because of route: 1 created; converged")
        time.sleep(0.5)
        daemon.terminate()
        assert daemon.wait(60) == 0
    finally:
        daemon.kill()
        daemon.wait()
    _assert_called(_DAEMON, output)


def _text(heading: str) -> str:
    _, _, rest = _PAGE.read_text().partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def _steps(heading: str) -> list[re.Match[str]]:
    numbered = [line for line in _text(heading).splitlines() if re.match(r"\d+\. ", line)]
    found = [step for line in numbered if (step := _STEP.match(line))]
    assert len(found) == len(numbered) > 0
    return found


def _traced(output: Path, folder: Path) -> list[str]:
    run = [sys.executable, "-m", "tests.docs.traced", str(output)]
    return [*run, "--root", str(folder / "root")]


def _wait_for(log: Path, pattern: str) -> None:
    deadline = time.monotonic() + 60
    while not re.search(pattern, log.read_text()):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def _assert_called(heading: str, output: Path) -> None:
    calls = {call: number for number, call in enumerate(output.read_text().splitlines())}
    steps = [f"{step['module']} {step['function']}" for step in _steps(heading)]
    assert [step for step in steps if step not in calls] == []
    assert steps == sorted(steps, key=calls.__getitem__)
