"""Forked children: to hold, to write, and to be killed at any moment."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


def in_child(work: Callable[[], None]) -> int:
    """Forks a child that does the work and nothing else of the test; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
