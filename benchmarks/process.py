"""What a process took so far."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Seconds of a core, of the process itself."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_mb(pid: int, *, most: bool = False) -> float:
    """What it holds in memory now, or held at most."""
    name = "VmHWM:" if most else "VmRSS:"
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(name)[2].split()[0]) / 1024
