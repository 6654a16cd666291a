"""What a test says when it cannot run here. `make test` runs every lane.

The host lane runs on the machine's own kernel; the uml lane runs the tests marked `uml` under
user-mode Linux, whose kernel has the link types that the machine's own may lack; the systemd lane
runs the tests marked `systemd` on a machine in a folder whose PID 1 is systemd; the qemu lane runs
those marked `qemu` under QEMU, on a kernel that has WireGuard as well.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.namespace import Namespace

# Where `make check` looks for tests. The packages that the first three folders are of are pure.
PURE = ("config", "engine", "resources")
CHECKED = (
    *PURE, "host", "runtime", "state",
    "test_characters.py", "test_dataclass.py", "test_diff.py", "test_long_texts.py",
    "agent/test_before.py", "agent/test_configuration.py", "agent/test_fights.py",
    "agent/test_judgement.py", "agent/test_on_behalf.py", "agent/test_own_changes.py",
    "agent/test_pass_schedule.py", "agent/test_pending_hints.py", "agent/test_plugin_schedule.py",
    "agent/test_retry_policy.py", "agent/web/test_metrics_reference.py",
    "api/test_authority.py", "api/test_refusals.py", "api/test_relay.py", "api/test_server.py",
    "cli/test_daemon_wait.py", "cli/test_output.py",
    "cli/test_render.py", "cli/test_selector.py", "cli/test_terminal.py", "cli/test_trial_dhcp6.py",
    "docs/test_links.py", "docs/test_tables.py", "tools/test_lock.py", "wan/test_pppoe_secret.py",
)  # fmt: skip
LANES = ("host", "uml", "systemd", "qemu")
COVERED = "covered by the {} lane"


def current() -> str:
    return os.environ.get("HOLDFAST_LANE", "host")


def under_ci() -> bool:
    return os.environ.get("CI") == "true"


def needs(condition: object, what: str) -> None:
    """Skip, in one line, a test whose machine lacks something. Under CI=true that is a failure."""
    __tracebackhide__ = True  # so that pytest names the test's line, not this one
    if not condition:
        pytest.skip(f"needs {what}")


def needs_programs(*programs: str) -> None:
    """Skip a test of programs that this machine's distribution may not offer."""
    __tracebackhide__ = True
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lacking = [program for program in programs if shutil.which(program, path=path) is None]
    needs(not lacking, f"{', '.join(lacking)}, which tools/debian-packages test would install")


def covered_elsewhere(lane: str, reason: str) -> None:
    """Skip a test that cannot run in this lane because the named one runs it.

    The test must be marked with that lane's name, or the lane would not run it.
    """
    __tracebackhide__ = True
    if lane not in LANES:
        raise ValueError(f"no lane {lane!r}; there are {', '.join(LANES)}")
    if lane == current():
        pytest.fail(f"the {lane} lane is the one that must run this, and cannot: {reason}")
    pytest.skip(f"{COVERED.format(lane)}: {reason}")


def needs_link_type(namespace: Namespace, kind: str) -> None:
    """Leave a test of a link type that this kernel does not know to the lane that has it."""
    __tracebackhide__ = True
    try:
        # A type that is known complains of something else, or makes the link.
        namespace.ip(f"link add probe type {kind}")
    except AssertionError as error:
        if "Unknown device type" in str(error):
            lane = "qemu" if kind == "wireguard" else "uml"
            covered_elsewhere(lane, f"this kernel has no {kind} links")
    else:
        namespace.ip("link del probe")


def left_out_of_check(item: pytest.Item) -> bool:
    """Does a test need a namespace or other programs, or much time? `make test` runs it."""
    marks = {mark.name for mark in item.iter_markers()}
    return "netns" in getattr(item, "fixturenames", ()) or bool(
        marks & {"programs", "long", *LANES}
    )


def covered(reason: str) -> bool:
    """Is it a skip of `covered_elsewhere`?"""
    return any(reason.startswith(COVERED.format(lane)) for lane in LANES)


def verdict_on_skip(reason: str, markers: frozenset[str]) -> str | None:
    """Why a skip is a failure; None where it may stand."""
    for lane in LANES:
        if reason.startswith(COVERED.format(lane)):
            if lane in markers or lane == "host":
                return None
            return f"{reason}; but the {lane} lane runs only tests marked `{lane}`"
    if under_ci():
        return f"skipped under CI=true, and no lane covers it: {reason}"
    return None
