"""Programs of the operator's, started so that nothing of them outlives its time: see `launch`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.config.trusted_file import program
from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.host import confined_launch
from holdfast.host.process import PATH

# `nobody` of Debian: owns nothing and belongs to no group of the system.
USER = GROUP = 65534
# Enough for an interpreter and its threads. A fork bomb meets it at once.
MOST_PROCESSES = 64
MOST_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Command:
    """What starts it, by the process that makes this alone."""

    argv: tuple[str, ...]
    descriptors: tuple[int, ...]  # which it is to be given


def objection(executable: Path) -> str:
    """Why this file is not run; empty where it may be."""
    try:
        with program(executable):
            return ""
    except Refused as refused:
        return str(refused)


@contextmanager
def command(executable: Path, timeout: float, environment: Mapping[str, str]) -> Iterator[Command]:
    """Raises Refused where it is not run."""
    limits = (USER, GROUP, MOST_PROCESSES, MOST_MEMORY, max(1, int(timeout) + 1))
    with program(executable) as found, _variables({**environment, "PATH": PATH}) as variables:
        given = (found.file, found.folder, variables)
        numbers = map(str, (os.getpid(), *limits, *given))
        argv = (sys.executable, "-ISE", confined_launch.__file__, *numbers, str(found.path))
        yield Command(argv, given)


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[int]:
    """A file in memory: they hold secrets, and the words of a command are there for all to read."""
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise Refused(f"{name!r} cannot be a variable: it is empty, or has = or NUL in it")
    text = "\0".join(f"{name}={value}" for name, value in environment.items())
    descriptor = os.memfd_create("variables")
    try:
        os.write(descriptor, text.encode(errors="surrogateescape"))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
