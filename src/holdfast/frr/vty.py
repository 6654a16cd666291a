"""One lasting connection to a daemon of FRR, over the socket that vtysh uses.

A command goes out with a NUL behind it; the answer comes as text, three NULs and a status byte.
There is no banner and no prompt. A status of 0 says that the command was understood, and nothing
more: `no neighbor` of one that is absent, and an OSPFv3 area that was not changed, have it too. So
statuses only ever tell what failed, and what is there is read back.
"""

from __future__ import annotations

import array
import os
import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.frr.commands import Line, line
from holdfast.frr.monitor import Monitor

ANSWER_S = 10.0
_OK = 0
_END = b"\0\0\0"
_READ = 1 << 18
# Commands of a pipeline that are on their way at once: answers fill the other direction.
_AHEAD = 512
_STATUSES = {1: "it takes no such pipe", 2: "unknown command", 4: "command incomplete"}


class VtyError(DriverError):
    """A daemon that does not answer. What it did of the last command is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    line: Line
    status: int
    text: str

    @property
    def failed(self) -> bool:
        return self.status != _OK

    @property
    def words(self) -> str:
        """What FRR said, for people; never a secret."""
        said = self.line.hide(" ".join(self.text.split()))
        return said or _STATUSES.get(self.status, f"status {self.status}")


class Vty:
    """pipelined: commands are sent before those in front of them were answered. bgpd, ospfd and
    bfdd take that; mgmtd hangs."""

    def __init__(self, path: Path, *, pipelined: bool = True) -> None:
        self.daemon = path.name.removesuffix(".vty")
        self._path = path
        self._ahead = _AHEAD if pipelined else 1
        self._fds: list[int] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._sock.settimeout(ANSWER_S)
            self._sock.connect(str(path))
            self._sock.setblocking(False)
            self.ask("enable")
        except OSError as error:
            self.close()
            raise VtyError(self._dead(error.strerror or str(error)), error.errno or 0) from error
        except DriverError:
            self.close()
            raise

    def fileno(self) -> int:
        """Readable only once the daemon is gone: it says nothing unasked."""
        return self._sock.fileno()

    @property
    def is_gone(self) -> bool:
        """Whether the daemon has ended, without asking it anything."""
        if self._sock.fileno() < 0:
            return True
        try:
            return self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def ask(self, command: str | Line, timeout: float = ANSWER_S) -> Answer:
        return self.ask_all([command], timeout)[0]

    def show(self, command: str, timeout: float = ANSWER_S) -> str:
        """The text of a `show`. DriverError where it is not understood."""
        answer = self.ask(command, timeout)
        if answer.failed:
            raise DriverError(f"{self.daemon} says to `{answer.line}`: {answer.words}")
        return answer.text

    def ask_all(self, commands: Sequence[str | Line], timeout: float = ANSWER_S) -> list[Answer]:
        """The answers in order. timeout: for all of them. VtyError where not all came: the
        connection is closed then, as nobody knows how far the daemon got."""
        lines = [each if isinstance(each, Line) else line(each) for each in commands]
        try:
            return self._exchange(lines, time.monotonic() + timeout)
        except OSError as error:
            self.close()
            raise VtyError(self._dead(error.strerror or str(error)), error.errno or 0) from error
        except VtyError:
            self.close()
            raise

    def monitor(self) -> Monitor:
        """What the daemon logs from now on, over a descriptor that it hands back."""
        self.ask("terminal monitor")
        if not self._fds:
            raise DriverError(f"{self.daemon} gave no descriptor to `terminal monitor`")
        return Monitor(self.daemon, self._fds.pop())

    def close(self) -> None:
        self._sock.close()
        while self._fds:
            os.close(self._fds.pop())

    def _exchange(self, lines: Sequence[Line], deadline: float) -> list[Answer]:
        answers: list[Answer] = []
        waiting = b""
        sent = 0
        received = bytearray()
        while len(answers) < len(lines):
            if not waiting and sent - len(answers) <= self._ahead // 2 and sent < len(lines):
                until = min(len(lines), len(answers) + self._ahead)
                texts = (each.text.encode() + b"\0" for each in lines[sent:until])
                waiting, sent = b"".join(texts), until
            waiting = self._move(waiting, received, deadline)
            self._take(received, lines, answers)
        return answers

    def _move(self, waiting: bytes, received: bytearray, deadline: float) -> bytes:
        """Sends what the daemon takes and receives what is there; what is still to be sent."""
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | (select.POLLOUT if waiting else 0))
        ready = poll.poll(max(0.0, left) * 1000)
        if not ready:
            raise VtyError(self._dead("it does not answer in time"))
        events = ready[0][1]
        if events & select.POLLOUT:
            waiting = waiting[self._sock.send(waiting) :]
        if events & ~select.POLLOUT:
            data, ancillary, _, _ = self._sock.recvmsg(_READ, socket.CMSG_SPACE(4))
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    handed = array.array("i")
                    handed.frombytes(content[: len(content) - len(content) % handed.itemsize])
                    self._fds += handed
            if not data:
                raise VtyError(self._dead("it closed the connection"))
            received += data
        return waiting

    @staticmethod
    def _take(received: bytearray, lines: Sequence[Line], answers: list[Answer]) -> None:
        start = 0
        while len(answers) < len(lines):
            end = received.find(_END, start)
            if end < 0 or end + len(_END) >= len(received):
                break
            text = received[start:end].decode(errors="replace")
            status = received[end + len(_END)]
            answers.append(Answer(lines[len(answers)], status, text))
            start = end + len(_END) + 1
        del received[:start]

    def _dead(self, why: str) -> str:
        return (
            f"{self.daemon} of FRR cannot be asked over {self._path}: {why}; is FRR running?"
            " `systemctl restart frr` starts it"
        )
