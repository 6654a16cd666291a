"""Fixtures every lane shares. No test runs in the machine's own network namespace."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest

from tests import lanes
from tests.namespace import Namespace, private_namespaces

# How long an example takes is up to the machine.
_PATIENT = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("tests", _PATIENT)
hypothesis.settings.load_profile("tests")
# `make soak` runs the tests marked `soak` under this; they must not set max_examples themselves.
hypothesis.settings.register_profile("soak", _PATIENT, max_examples=5_000)


@pytest.fixture
def netns() -> Iterator[Namespace]:
    """The test, and what it starts, in network and UTS namespaces of their own."""
    with private_namespaces() as namespace:
        yield namespace


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that others may walk through: those that pytest offers are closed to all but their owner,
    by every pytest that starts, and plugins run as nobody."""
    with TemporaryDirectory(prefix="holdfast-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def files_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as they are written, within this process."""
    monkeypatch.setattr("holdfast.runtime.startup.QUIET_S", 0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A `--root` directory."""
    return tmp_path / "root"


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "only what needs no namespace and no other program, and is over soon (`make check`)"
    parser.addoption("--check", action="store_true", help=words)


def pytest_configure(config: pytest.Config) -> None:
    # A shell has what it starts in the background ignore SIGINT, and all that is started by that
    # inherits it: commands that tests interrupt would go on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "uml: the user-mode-Linux lane runs this test too")
    config.addinivalue_line("markers", "systemd: the lane with systemd as PID 1 runs this test too")
    config.addinivalue_line("markers", "qemu: the lane under QEMU runs this test too")
    config.addinivalue_line("markers", "soak: `make soak` runs this test for longer")
    config.addinivalue_line("markers", "programs: it starts other programs, or asks the kernel")
    config.addinivalue_line("markers", "long: it takes seconds of processor time")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The Makefile finds the tests of a lane by their files."""
    if config.getoption("--check"):
        sys.addaudithook(_refuse_programs)
        left_out = [item for item in items if lanes.left_out_of_check(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    texts = cache(lambda path: path.read_text())
    for item in items:
        for mark in item.iter_markers():
            if mark.name in lanes.LANES and f"mark.{mark.name}" not in texts(item.path):
                raise pytest.UsageError(f"{item.nodeid}: its own file must say mark.{mark.name}")


def _refuse_programs(event: str, arguments: tuple[object, ...]) -> None:
    """A test of `make check` that starts a program or opens a netlink socket fails."""
    netlink = event == "socket.__new__" and arguments[1] == socket.AF_NETLINK
    if event == "subprocess.Popen" or netlink:
        pytest.fail(f"{event}: `make check` runs this test, and should not: mark it `programs`")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _judge(report, frozenset(mark.name for mark in item.iter_markers()))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _judge(report, frozenset())
    return report


def _judge(report: pytest.TestReport | pytest.CollectReport, markers: frozenset[str]) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    failure = lanes.verdict_on_skip(reason.removeprefix("Skipped: "), markers)
    if failure is not None:
        report.outcome = "failed"
        report.longrepr = failure
    elif isinstance(report.longrepr, tuple) and lanes.covered(reason.removeprefix("Skipped: ")):
        # Without a line, pytest says it once for all tests of a file.
        report.longrepr = (report.longrepr[0], None, report.longrepr[2])  # type: ignore[assignment]
