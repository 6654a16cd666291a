"""What 100 000 changes to routes of another program cost whoever listens to the kernel.

Seconds of processor time of the watch alone, not of the passes. The kernel drops what cannot be
about anything of ours before it is told; the peer is `ip monitor route`, which prints it all.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

from benchmarks.harness import TIMEOUT_S, Result, Run, compare, router
from holdfast.agent.watch.netlink import NetlinkWatch
from tests.agent.watch.changes import TURN

COUNT = 100_000
_RATE = 20_000
_TAG = 72


def run(repeat: int) -> Result:
    replaced = _ours("replace").seconds
    return compare(
        "watch-storm",
        repeat,
        lambda: _ours("add"),
        {"ip monitor": _monitor},
        bars={"ip monitor": 0.1},
        notes={"replaces": f"{replaced / COUNT * 1e6:.1f} us each, which are not dropped"},
    )


def _command(how: str) -> list[str]:
    program = [sys.executable, "-m", "tests.agent.watch.changes"]
    return [*program, how, str(COUNT // TURN), str(_RATE)]


def _ours(how: str) -> Run:
    async def listen() -> float:
        watch = NetlinkWatch(lambda _hint: None, _TAG, frozenset)
        used = time.process_time()
        storm = await asyncio.create_subprocess_exec(*_command(how), stdout=subprocess.DEVNULL)
        if await storm.wait() or watch.counts.lost:
            raise RuntimeError("the changes were not made, or not all heard")
        watch.close()
        return time.process_time() - used

    with router(address=True):
        return Run(asyncio.run(listen()))


def _monitor() -> Run:
    with router(address=True):
        monitor = subprocess.Popen(["ip", "monitor", "route"], stdout=subprocess.DEVNULL)
        subprocess.run(_command("add"), check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
        os.kill(monitor.pid, signal.SIGTERM)
        _, status, usage = os.wait4(monitor.pid, 0)
        monitor.returncode = os.waitstatus_to_exitcode(status)
    return Run(usage.ru_utime + usage.ru_stime)
