"""A provider's access concentrator in namespaces of its own: pppoe-server, and pppd behind it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lanes import covered_elsewhere, needs_programs
from tests.wan.isp import wait_for

_AF_PPPOX = 24
# pppd takes a pseudo terminal for each session, and its secrets from /etc/ppp. The concentrator
# itself keeps a lock below /run.
_HOLD = """
mount --make-rprivate / && mkdir -p /dev/pts && mount -t devpts none /dev/pts &&
mount -t tmpfs none /etc/ppp && mount -t tmpfs none /run && ip link set lo up && echo &&
exec sleep 900
"""


def needs_pppoe() -> None:
    __tracebackhide__ = True
    try:
        socket.socket(_AF_PPPOX, socket.SOCK_STREAM, 0).close()
    except OSError:
        covered_elsewhere("uml", "this kernel has no PPPoE")
    needs_programs("pppd", "pppoe-server")


@dataclass(slots=True)
class Concentrator:
    folder: Path
    holder: int  # the process whose namespaces are the provider's
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, *command: str, text: str = "") -> str:
        inside = ["nsenter", "-t", str(self.holder), "-n", "-m", "--"]
        done = subprocess.run(
            [*inside, *command], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout} {done.stderr}"
        return done.stdout

    def know(self, password: str, user: str = "*") -> None:
        """One customer, or with `*` the one password of all.

        pppd compares the name as it would print it, which is another one where it has quotes.
        """
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        lines = f'{user} * "{quoted}" *\n'
        for name in ("chap-secrets", "pap-secrets"):
            self.run("sh", "-c", f"umask 077; cat >/etc/ppp/{name}", text=lines)

    def serve(
        self, name: str = "ac1", net: str = "10.9.1", auth: str = "chap", service: str = ""
    ) -> None:
        """Gives out NET.10 and on, and the name servers NET.53 and NET.54."""
        options = self.folder / f"{name}.options"
        options.write_text(
            f"require-{auth}\nlcp-echo-interval 20\nms-dns {net}.53\nms-dns {net}.54\n"
            f"logfile {self.folder}/{name}.log\n"
        )
        command = [
            "nsenter", "-t", str(self.holder), "-n", "-m", "--",
            "pppoe-server", "-F", "-I", "isp0", "-C", name, "-L", f"{net}.1", "-R", f"{net}.10",
            "-N", "4", "-O", str(options), "-o", str(100 * len(self.servers)),
        ]  # fmt: skip
        if service:
            command += ["-S", service]
        self.servers.append(subprocess.Popen(command))

    def said(self, name: str = "ac1") -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def hang_up(self) -> None:
        """Ends all sessions, as an outage would: by their processes."""
        for pid in self.run("cat", *self._pid_files()).split():
            self.run("kill", pid)

    def _pid_files(self) -> list[str]:
        found = self.run("find", "/run", "-name", "ppp*.pid").split()
        assert found
        return found


@contextmanager
def concentrator(folder: Path) -> Iterator[Concentrator]:
    """Called in the router's namespace, which it gives the link `wan0`."""
    folder.mkdir()
    held = ["unshare", "--net", "--mount", "sh", "-c", _HOLD]
    with subprocess.Popen(held, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        made = Concentrator(folder, holder.pid)
        try:
            pair = ["ip", "link", "add", "wan0", "type", "veth", "peer", "name", "isp0"]
            subprocess.run([*pair, "netns", str(holder.pid)], check=True)
            made.run("ip", "link", "set", "isp0", "up")
            yield made
        finally:
            for server in made.servers:
                server.terminate()
                server.wait(timeout=60)
            # The sessions' processes are not children of ours; without their link they end.
            wait_for(lambda: not _inside(holder.pid), "the end of the provider's processes")
            holder.kill()


def _inside(holder: int) -> list[str]:
    """Processes in a namespace besides the one that holds it."""
    found = subprocess.run(
        ["pgrep", "--ns", str(holder), "--nslist", "net"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    return [pid for pid in found if pid != str(holder)]
