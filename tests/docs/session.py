"""The shell that a reader of a page would sit at."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

# Far longer than any example takes; what waits for an answer shall not hang the tests.
_LIMIT_S = 300.0


class Session:
    """One bash, fed line by line, so that `cd`, variables and a shell started within last.

    What a command prints, on either stream, is read up to a mark printed after it.
    """

    def __init__(self, folder: Path) -> None:
        plain = {k: v for k, v in os.environ.items() if "COLOR" not in k and "HOLDFAST" not in k}
        path = f"{Path(sys.executable).parent}:{plain.get('PATH', '')}"
        self._mark = f"mark-{secrets.token_hex(8)}"
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=plain | {"PATH": path, "SHELL": "/bin/bash", "LC_ALL": "C.UTF-8", "TERM": "dumb"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What an example left in the background goes too; the group is the session's own.
        with suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()
        for stream in (self._bash.stdin, self._bash.stdout):
            if stream is not None:
                stream.close()

    def run(self, command: str) -> tuple[str, int]:
        """What a command printed, and its exit code, which the next command finds in `$?`."""
        assert self._bash.stdin is not None
        mark = f"code=$?; printf '\\n%s %s\\n' {self._mark} $code; (exit $code)"
        self._bash.stdin.write(f"{command}\n{mark}\n".encode())
        self._bash.stdin.flush()
        said, _, code = self._read(command).rpartition(f"\n{self._mark} ")
        return said.removesuffix("\n"), int(code)

    def write(self, name: str, text: str, *, append: bool = False) -> None:
        """A file, where the shell stands."""
        into = ">>" if append else ">"
        said, code = self.run(f"cat {into} {name} <<'{self._mark}'\n{text}{self._mark}")
        assert code == 0, said

    def _read(self, command: str) -> str:
        assert self._bash.stdout is not None
        descriptor, said = self._bash.stdout.fileno(), b""
        deadline = time.monotonic() + _LIMIT_S
        while True:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(descriptor, 65536) if ready else b""
            said += piece
            text = said.decode(errors="replace")
            if f"\n{self._mark} " in text and text.endswith("\n"):
                return text
            if not piece:
                why = "took too long" if not ready else "ended the shell"
                raise AssertionError(f"`{command}` {why}; it had said:\n{text}")
