"""Commands shown and run, the way somebody at a shell would."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.terminal import Style
from holdfast.dataclass import dataclass, field

# Far longer than any step takes; what hangs shall not hang the demo.
_LIMIT_S = 25


@dataclass(slots=True)
class Shell:
    folder: Path
    style: Style
    failures: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def title(self, text: str) -> None:
        self.say("")
        self.say(self.style(f"── {text} ", "bold", "cyan"))

    def run(self, command: str, expect: int = 0) -> str:
        """Shows a command, runs it, shows what it says; its exit code must be the one expected."""
        self.say("")
        self.say(f"{self.style('$', 'bold')} {self.style(command, 'bold')}")
        done = self._run(shlex.split(command))
        said = done.stdout + done.stderr
        for line in said.splitlines():
            self.say(f"  {line}")
        if done.returncode != expect:
            self.failures.append(f"`{command}` ended with {done.returncode}, not {expect}")
        return said

    def write(self, name: str, text: str) -> None:
        """Edits a file, and shows how."""
        path = self.folder / name
        before = path.read_text().splitlines() if path.exists() else []
        path.write_text(text)
        self.say("")
        self.say(self.style(f"{name}{', edited' if before else ''}:", "bold"))
        for line in _difference(before, text.splitlines()):
            look = {"+": "green", "-": "red"}.get(line[0]) if before else None
            self.say(f"  {self.style(line, look) if look else line}")

    def check(self, what: str, holds: bool) -> None:
        """An outcome the demo promises."""
        if holds:
            self.say(f"  {self.style('✓', 'bold', 'green')} {what}")
        else:
            self.say(f"  {self.style('✗', 'bold', 'red')} {what}")
            self.failures.append(what)

    def ip(self, command: str) -> Any:
        """What `ip` says, for a check; not shown."""
        done = self._run(["ip", "-j", *shlex.split(command)])
        return json.loads(done.stdout or "[]") if done.returncode == 0 else []

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        if words[0] == "holdfast":
            words = [sys.executable, "-P", "-m", "holdfast", *words[1:]]
        environment["CLICOLOR_FORCE" if self.style.colour else "NO_COLOR"] = "1"
        return subprocess.run(  # noqa: S603 (the demo's own words)
            words,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )


def _difference(before: list[str], after: list[str]) -> list[str]:
    if not before:
        return after
    import difflib

    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
