"""FRR's daemons and their neighbours in private namespaces, started and ended by the tests.

Each instance has a folder of its own for sockets, pid files and frr.conf. To its daemons that
folder stands in the place of /run/frr and /etc/frr, in a mount namespace of theirs: FRR compiles
some paths in.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.lanes import needs, needs_programs

VERSIONS = ("8.4", "10.3")
_SUITES = {"8.4": "bookworm", "10.3": "trixie"}
_INSTALLED = Path("/usr/lib/frr")
_PLACES = 'mount --bind "$1" /run/frr; mount --bind "$1" /etc/frr; shift; exec "$@"'
_LONGEST_S = 60.0
_END_S = 10.0


def wait_until(what: str, met: Callable[[], object], longest: float = _LONGEST_S) -> None:
    until = time.monotonic() + longest
    while not met():
        if time.monotonic() > until:
            raise AssertionError(f"not within {longest:.0f} s: {what}")
        time.sleep(0.02)


@cache
def _installed_version() -> str:
    try:
        said = subprocess.run([_INSTALLED / "zebra", "--version"], capture_output=True, text=True)
    except OSError:
        return ""
    found = re.search(r"version (\d+\.\d+)", said.stdout)
    return found[1] if found else ""


@cache
def programs(version: str) -> tuple[Path, tuple[str, ...], str]:
    """The folder that FRR of a version is below, what its programs are started by, and why there is
    none."""
    if _installed_version() == version:
        return Path("/"), (), ""
    if platform.machine() != "x86_64":
        return Path("/"), (), f"FRR {version}, which tools/frr-folder knows for amd64"
    tool = Path(__file__).parents[2] / "tools/frr-folder"
    made = subprocess.run([tool, _SUITES[version]], capture_output=True, text=True)
    if made.returncode:
        return Path("/"), (), f"FRR {version}: {made.stderr.strip().splitlines()[-1]}"
    folder = Path(made.stdout.strip())
    libraries = folder / "usr/lib/x86_64-linux-gnu"
    loader = str(folder / "usr/lib64/ld-linux-x86-64.so.2")
    return folder, (loader, "--library-path", f"{libraries}:{libraries / 'frr'}"), ""


def needs_frr(version: str) -> None:
    __tracebackhide__ = True
    needs_programs("vtysh", "ip", "unshare", "nsenter")
    why_not = programs(version)[2]
    needs(not why_not, why_not)


class Elsewhere:
    """A network namespace beside the test's, for as long as a process of ours holds it."""

    def __init__(self) -> None:
        self._held = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        here = Path("/proc/self/ns/net").readlink()
        place = Path(f"/proc/{self._held.pid}/ns/net")
        wait_until("another namespace", lambda: place.readlink() != here)
        self.enter = ("nsenter", f"--net={place}")
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *command: str) -> str:
        return _run(*self.enter, *command)

    def veth(self, here: str, there: str, *addresses: tuple[str, str]) -> None:
        """A pair of links from the test's namespace to this one, up, with addresses on each end."""
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        _run("ip", "link", "set", "dev", there, "netns", str(self._held.pid))
        for ours, theirs in addresses:
            v6 = ("nodad",) if ":" in ours else ()
            _run("ip", "addr", "add", ours, "dev", here, *v6)
            self.run("ip", "addr", "add", theirs, "dev", there, *v6)
        _run("ip", "link", "set", "dev", here, "up")
        self.run("ip", "link", "set", "dev", there, "up")

    def close(self) -> None:
        end(self._held)


class Frr:
    """One instance of FRR: `zebra`, `bgpd`, and the like, and what vtysh says of them."""

    def __init__(self, version: str, folder: Path, where: Elsewhere | None = None) -> None:
        self.version = version
        self.folder = folder
        self.where = where
        self._base, self._loader, _ = programs(version)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vtysh.conf").touch()
        (folder / "frr.conf").touch()
        for place in (folder, *folder.iterdir()):
            shutil.chown(place, "frr", "frr")  # zebra refuses to run as a user outside its groups

    @property
    def is_10(self) -> bool:
        return not self.version.startswith("8.")

    def pid(self, daemon: str) -> int:
        return self._running[daemon].pid

    def start(self, *daemons: str) -> None:
        """zebra, before it mgmtd where this version has one, and these."""
        first = ("mgmtd", "zebra") if self.is_10 else ("zebra",)
        wanted = list(dict.fromkeys((*first, *daemons)))
        for daemon in wanted:
            if daemon not in self._running:
                self._start(daemon)

    def _start(self, daemon: str) -> None:
        run = str(self.folder)
        options = ["--vty_socket", run, "-i", f"{run}/{daemon}.pid", "-P", "0", "-u", "frr"]
        options += ["-g", "frr", "--log", f"file:{run}/{daemon}.log", "-z", f"{run}/zserv.api"]
        (self.folder / f"{daemon}.vty").unlink(missing_ok=True)
        said = (self.folder / f"{daemon}.out").open("ab")
        with said:
            self._running[daemon] = subprocess.Popen(
                [*self._prefix(), *self._program(f"usr/lib/frr/{daemon}"), *options],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        wait_until(f"{daemon} of FRR {self.version} answers", lambda: self._answers(daemon))

    def _prefix(self) -> list[str]:
        Path("/run/frr").mkdir(exist_ok=True)  # of the package; a boot takes it away
        enter = self.where.enter if self.where else ()
        return [*enter, "unshare", "--mount", "sh", "-ec", _PLACES, "sh", str(self.folder)]

    def _program(self, path: str) -> list[str]:
        return [*self._loader, str(self._base / path)]

    def _answers(self, daemon: str) -> bool:
        process = self._running[daemon]
        if process.poll() is not None:
            said = (self.folder / f"{daemon}.out").read_text(errors="replace")
            raise AssertionError(f"{daemon} ended with {process.returncode}: {said[-2000:]}")
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.connect(str(self.folder / f"{daemon}.vty"))
                sock.sendall(b"show version\0")
                return bool(sock.recv(1))
            except OSError:
                return False

    def kill(self, *daemons: str) -> None:
        for daemon in daemons or tuple(self._running):
            process = self._running.pop(daemon)
            process.kill()
            process.wait()

    def close(self) -> None:
        for daemon in reversed(list(self._running)):
            end(self._running.pop(daemon))

    def vtysh(self, *commands: str) -> str:
        words = [word for command in commands for word in ("-c", command)]
        return self._vtysh(*words)

    def configure(self, text: str) -> None:
        """As somebody does it by hand."""
        file = self.folder / "by-hand.conf"
        file.write_text(text)
        self._vtysh("-f", str(file))

    def load(self, text: str) -> None:
        """frr.conf, as watchfrr loads it once the daemons answer."""
        (self.folder / "frr.conf").write_text(text)
        self._vtysh("-b")

    def shown(self, command: str) -> Any:
        return json.loads(self.vtysh(command))

    def vtysh_command(self) -> list[str]:
        """What vtysh is started by, for programs that start it themselves."""
        vtysh = self._program("usr/bin/vtysh")
        return [*self._prefix(), *vtysh, "--vty_socket", str(self.folder)]

    def _vtysh(self, *words: str) -> str:
        return _run(*self.vtysh_command(), *words)


class Bird:
    """BIRD in another namespace, as a neighbour."""

    def __init__(self, folder: Path, where: Elsewhere, config: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._where = where
        self._control = folder / "bird.ctl"
        file = folder / "bird.conf"
        file.write_text(config)
        with (folder / "bird.out").open("wb") as said:
            program = shutil.which("bird", path=f"{os.environ['PATH']}:/usr/sbin") or "bird"
            self._process = subprocess.Popen(
                [*where.enter, program, "-f", "-c", str(file), "-s", str(self._control)],
                stdout=said,
                stderr=said,
            )
        wait_until("BIRD answers", self._control.exists)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str) -> str:
        """The answer to a command of birdc."""
        said = b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_LONGEST_S)
            sock.connect(str(self._control))
            while not said.endswith(b"\n"):
                said += sock.recv(1 << 16)
            said = b""
            sock.sendall(command.encode() + b"\n")
            while not re.search(rb"^\d{4} .*\n\Z|^\d{4}\n\Z", said[-200:], re.MULTILINE):
                said += sock.recv(1 << 20)
        return said.decode(errors="replace")

    def is_up(self, protocol: str) -> bool:
        return "Established" in self.ask(f"show protocols {protocol}")

    def count(self, protocol: str) -> int:
        """Routes learnt of a neighbour."""
        found = re.search(r"(\d+) of \d+ routes", self.ask(f"show route protocol {protocol} count"))
        return int(found[1]) if found else 0

    def close(self) -> None:
        end(self._process)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        raise AssertionError(f"{' '.join(command[-3:])}: {said[-2000:]}")
    return done.stdout


class Ground:
    """Everything that one test or benchmark starts; ended together."""

    def __init__(self, version: str, folder: Path, ending: ExitStack) -> None:
        self.version = version
        self._folder = folder
        self._ending = ending
        self._count = 0

    def _fresh(self, name: str) -> Path:
        self._count += 1
        return self._folder / f"{name}{self._count}"

    def elsewhere(self) -> Elsewhere:
        made = Elsewhere()
        self._ending.callback(made.close)
        return made

    def frr(self, *daemons: str, where: Elsewhere | None = None) -> Frr:
        made = Frr(self.version, self._fresh("frr"), where)
        self._ending.callback(made.close)
        made.start(*daemons)
        return made

    def bird(self, where: Elsewhere, config: str) -> Bird:
        needs_programs("bird")
        made = Bird(self._fresh("bird"), where, config)
        self._ending.callback(made.close)
        return made


@contextmanager
def ground(version: str, folder: Path) -> Iterator[Ground]:
    """folder: a short path; that of a socket holds 107 bytes at most."""
    with ExitStack() as ending:
        yield Ground(version, folder, ending)


def bird_config(
    protocols: Sequence[str], router_id: str = "192.0.2.2", keep_routes: bool = True
) -> str:
    learn = "import all; export none;" if keep_routes else "import none; export none;"
    head = f"router id {router_id};\nprotocol device {{}}\n"
    return head + "\n".join(one.replace("LEARN", learn) for one in protocols) + "\n"


def bird_bgp(name: str, options: str, families: Sequence[str] = ("ipv4",)) -> str:
    """A protocol of BIRD that tries again at once."""
    channels = " ".join(f"{family} {{ LEARN }};" for family in families)
    return (
        f"protocol bgp {name} {{ {options} {channels} connect delay time 1; connect retry time 1;"
        " error wait time 1,1; }"
    )
