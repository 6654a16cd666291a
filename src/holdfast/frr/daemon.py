"""One daemon of FRR: how it is read, and how it is told, over one lasting connection."""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import DriverError
from holdfast.frr import running_config
from holdfast.frr.commands import Line
from holdfast.frr.lines import BATCH, BATCH_END, Step
from holdfast.frr.running_config import RunningConfig
from holdfast.frr.vty import Answer, Vty

# `vtysh -b` loads frr.conf 0.15 s after a daemon that was started anew begins to answer.
SETTLES_S = 1.0
# What was read so long ago is of the same moment: a look, and what is done on it.
_MOMENT_S = 0.05
_APPLY_S = 300.0
_READ_S = 30.0
_VERSION = re.compile(r"^frr version (\S+)", re.MULTILINE)
_PEER = struct.Struct("iII")


class Daemon:
    def __init__(self, folder: Path, name: str, settles: float = SETTLES_S) -> None:
        self._path = folder / f"{name}.vty"
        self._name = name
        self._settles = settles
        self._vty: Vty | None = None
        self._read_at = 0.0
        self._text = ""
        self._config = RunningConfig()

    @property
    def exists(self) -> bool:
        """Whether there is a socket, which also one that was killed leaves."""
        return self._path.exists()

    @property
    def version(self) -> str:
        """Of the daemon that was read last."""
        found = _VERSION.search(self._text, 0, 200)
        return found[1] if found else ""

    @property
    def text(self) -> str:
        return self._text

    def read(self, *, anew: bool = True) -> RunningConfig:
        """Its running configuration. DriverError where that is not known, or not whole yet.

        anew: not what was read a moment ago.
        """
        vty = self.connection()
        if not anew and time.monotonic() - self._read_at < _MOMENT_S:
            return self._config
        text = vty.show("write terminal", _READ_S)
        if not text.rstrip().endswith(("!", "end", "exit")) or "frr version" not in text[:200]:
            raise DriverError(f"{self._name} told its configuration only in part")
        if text != self._text:
            self._config = running_config.parse(text)
            self._text = text
        self._read_at = time.monotonic()
        return self._config

    def connection(self) -> Vty:
        if self._vty is not None and self._vty.is_gone:
            self.close()
        if self._vty is None and not self.exists:
            raise DriverError(
                f"{self._name} cannot be asked: there is no {self._path}; is FRR running?"
                f" `{self._name}=yes` in /etc/frr/daemons and `systemctl restart frr` start it"
            )
        if self._vty is None:
            self._vty = Vty(self._path)
        young = self._settles - age(self._vty.fileno()) if self._settles else 0.0
        if young > 0:
            raise DriverError(
                f"{self._name} was started less than {self._settles:g} s ago: whether it has read"
                " frr.conf is not known yet"
            )
        return self._vty

    def tell(self, steps: Sequence[Step]) -> list[Answer]:
        """The answers to the steps, in order. Where a path cannot be entered, no line below it is
        sent, and each has the answer to that."""
        vty = self.connection()
        answers: list[Answer] = []
        inside: tuple[str, ...] | None = None
        refused: Answer | None = None
        start = 0
        self._read_at = 0.0
        try:
            while start < len(steps):
                path = steps[start].path
                end = start
                while end < len(steps) and steps[end].path == path:
                    end += 1
                if path != inside:
                    refused = _enter(vty, inside, path)
                    inside = path
                told = [step.line for step in steps[start:end]]
                if refused is None:
                    answers += vty.ask_all(told, _APPLY_S)
                else:
                    said = f"{refused.line}: {refused.words}"
                    answers += [Answer(each, refused.status, said) for each in told]
                start = end
        finally:
            if self._vty is not None and not vty.is_gone:
                _leave(vty, inside)
        return answers

    def close(self) -> None:
        if self._vty is not None:
            self._vty.close()
            self._vty = None
        self._read_at = 0.0


def _enter(vty: Vty, inside: tuple[str, ...] | None, path: tuple[str, ...]) -> Answer | None:
    """None where it is inside now."""
    _leave(vty, inside)
    for head in ("configure terminal", *path):
        answer = vty.ask(head)
        if answer.failed:
            return answer
    return None


def _leave(vty: Vty, inside: tuple[str, ...] | None) -> None:
    if inside is None:
        return
    leave: list[str | Line] = [BATCH_END] if inside == BATCH else []
    vty.ask_all([*leave, "end"], _APPLY_S)


def age(descriptor: int) -> float:
    """How long ago the process at the other end was started."""
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        pid, _, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return float("inf")  # of another container: what it has read nobody can tell from here
    ticks = int(stat.rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
