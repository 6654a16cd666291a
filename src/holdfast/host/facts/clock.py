"""Times that files keep across passes: since which boot, and how long after it.

The wall clock jumps when it is first set, which on a router is after the first lease. Programs
without access to the boot clock (a shell script) can read /proc/uptime.
"""

from __future__ import annotations

from pathlib import Path


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def uptime() -> float:
    """In seconds."""
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
