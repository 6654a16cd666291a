"""The real command, run as a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TextIO, cast

import pytest

from holdfast.cli.main import run
from holdfast.resources import registry
from tests import command_server
from tests.child import in_child
from tests.namespace import Namespace
from tests.resources.parts import admitting

COMMAND = str(Path(sys.executable).parent / "holdfast")
HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
"""
_NOTICES = (
    "waiting for the daemon to answer",
    "waiting for another process to let go of the ledger",
)
WAN = ("Interface", "wan", "{ifname: wan0, adminUp: true, mtu: 1500}")
_KIND, _, _ALLOWED = admitting()
ADMITTING = (_KIND, "ci", json.dumps(_ALLOWED))  # Owner/ci may declare anything
WAN_ADDRESS = ("IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.1/24}")


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def _piped(text: str) -> IO[bytes]:
    """A pipe that holds the text and that nobody writes to any more."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as stream:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, max(65536, len(text.encode())))
        stream.write(text.encode())
    return os.fdopen(reader, "rb")


def without_notices(err: str) -> str:
    """Without what is said after a second of waiting: whether it takes that long is up to the
    machine."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if line.rstrip("\n") not in _NOTICES)


@dataclass(frozen=True, slots=True)
class Holdfast:
    """`holdfast --root ROOT`, in a folder with a configuration of its own."""

    folder: Path
    root: Path

    def arguments(self, *words: str) -> list[str]:
        return [COMMAND, "--root", str(self.root), *words]

    def environment(self, **more: str) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if "COLOR" not in k and "HOLDFAST" not in k}
        return plain | more

    def run(self, *words: str, stdin: str = "", **environment: str) -> Done:
        """In a process that is forked from one that has imported Holdfast."""
        with ExitStack() as stack:
            given = stack.enter_context(_piped(stdin))
            out, err = (stack.enter_context(TemporaryFile("w+")) for _ in range(2))
            code = command_server.run(
                self.arguments(*words)[1:],
                self.folder,
                self.environment(**environment),
                (given, out, err),
            )
            out.seek(0)
            err.seek(0)
            return Done(code, out.read(), without_notices(err.read()))

    def start_and_wait(self, *words: str, **environment: str) -> Done:
        """As users run it, interpreter and all."""
        done = subprocess.run(
            self.arguments(*words),
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        return Done(done.returncode, done.stdout, without_notices(done.stderr))

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Not waited for: whoever starts it ends it."""
        return subprocess.Popen(
            self.arguments(*words),
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ok(self, *words: str) -> Done:
        done = self.run(*words)
        assert done.code == 0, f"{words}: {done.code}\n{done.out}{done.err}"
        return done

    def set_up(self, *words: str) -> None:
        """As `ok`, for what only leads up to a test or clears up after it: in a fork of the test,
        because an interpreter takes several times as long to start as a pass takes."""
        code, said = self.forked(*words)
        assert code == 0, f"{words}: {code}\n{said}"

    def forked(self, *words: str) -> tuple[int, str]:
        """In a fork of the test; its exit code, and all that it said."""
        with TemporaryFile("w+") as said:
            pid = in_child(lambda: self._run_here(words, said))
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            said.seek(0)
            return code, said.read()

    def _run_here(self, words: tuple[str, ...], said: IO[str]) -> None:
        os.chdir(self.folder)
        environment = self.environment()
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        sys.stdout = sys.stderr = cast(TextIO, said)
        code = run(self.arguments(*words)[1:])
        said.flush()
        os._exit(code)

    def declare(self, *resources: tuple[str, str, str], file: str = "router.yaml") -> Path:
        """Writes a Router of resources given as kind, name and spec."""
        path = self.folder / file
        path.write_text(HEAD.rstrip("\n") + (" []\n" if not resources else "\n"))
        with path.open("a") as stream:
            for kind, name, spec in resources:
                stream.write(
                    f"    - apiVersion: {registry.api_versions(kind)[0]}\n"
                    f"      kind: {kind}\n"
                    f"      metadata: {{name: {name}}}\n"
                    f"      spec: {spec}\n"
                )
        return path


def route(name: str, destination: str, gateway: str = "192.0.2.254") -> tuple[str, str, str]:
    spec = f"{{destination: {destination}, gateway: {gateway}, interface: wan}}"
    return "IPv4Route", name, spec


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.fixture
def wan(netns: Namespace) -> Namespace:
    """A namespace with a NIC to configure: wan0."""
    netns.ip("link add wan0 type veth peer name isp0")
    netns.ip("link set isp0 up")
    return netns
