"""A provider in namespaces of its own: Kea for DHCP of both families, radvd for advertisements.

Kea keeps its files below /run and /var/lib, so those are empty folders in memory there. It has one
of everything to give: out of a pool, a question asked twice gets another answer each time.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lanes import needs_programs

NEAR, FAR = "wan0", "isp0"  # the router's end, the provider's
# A copy of Kea: AppArmor knows the one in /usr/sbin by its path, and lets it read no file of ours.
_HOLD = (
    "mount -t tmpfs none /run && mount -t tmpfs none /var/lib && mkdir /run/kea /var/lib/kea"
    " && cp /usr/sbin/kea-dhcp4 /usr/sbin/kea-dhcp6 /run"
)
_STARTED = {"kea-dhcp4": "DHCP4_STARTED", "kea-dhcp6": "DHCP6_STARTED"}


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 90) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds:g} s")


def dhcp4(lifetime: int) -> dict[str, Any]:
    options = {
        "routers": "203.0.113.1",
        "domain-name-servers": "203.0.113.53, 203.0.113.54",
        "domain-name": "isp.example",
        "ntp-servers": "203.0.113.123",
    }
    subnet = {
        "id": 1,
        "subnet": "203.0.113.0/24",
        "pools": [{"pool": "203.0.113.100 - 203.0.113.100"}],
        "option-data": [{"name": name, "data": data} for name, data in options.items()],
    }
    interfaces = {"interfaces": [FAR], "dhcp-socket-type": "raw"}
    return {"Dhcp4": {"interfaces-config": interfaces, "subnet4": [subnet], **_times(lifetime)}}


def dhcp6(lifetime: int, prefixes: str, delegated: int) -> dict[str, Any]:
    options = {
        "dns-servers": "2001:db8:ffff::53",
        "domain-search": "isp.example",
        "sntp-servers": "2001:db8:ffff::123",
    }
    network, _, length = prefixes.partition("/")
    subnet = {
        "id": 1,
        "subnet": "2001:db8:ffff::/64",
        "interface": FAR,
        "pools": [{"pool": "2001:db8:ffff::100-2001:db8:ffff::100"}],
        "pd-pools": [{"prefix": network, "prefix-len": int(length), "delegated-len": delegated}],
        "option-data": [{"name": name, "data": data} for name, data in options.items()],
    }
    times = {"preferred-lifetime": lifetime, **_times(lifetime)}
    return {"Dhcp6": {"interfaces-config": {"interfaces": [FAR]}, "subnet6": [subnet], **times}}


def _times(lifetime: int) -> dict[str, Any]:
    return {
        "valid-lifetime": lifetime,
        "renew-timer": lifetime // 3,
        "rebind-timer": lifetime // 2,
        "lease-database": {"type": "memfile", "persist": False},
    }


_RADVD = """\
interface isp0 {
  AdvSendAdvert on; AdvManagedFlag on; AdvOtherConfigFlag on;
  MinRtrAdvInterval 3; MaxRtrAdvInterval 4;
  prefix 2001:db8:ffff::/64 { AdvAutonomous off; };
};
"""


@dataclass(slots=True)
class Provider:
    folder: Path
    holder: int  # the process whose namespaces are the provider's
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, *command: str) -> None:
        subprocess.run([*self._inside, *command], check=True)

    @property
    def _inside(self) -> list[str]:
        return ["nsenter", "-t", str(self.holder), "-n", "-m"]

    def start(self, program: str, *arguments: str) -> None:
        log = self.folder / f"{program}.log"
        log.unlink(missing_ok=True)
        with log.open("wb") as out:
            command = [*self._inside, f"/run/{program}" if program in _STARTED else program]
            command += arguments
            self.servers[program] = subprocess.Popen(command, stdout=out, stderr=out)
        wanted = _STARTED.get(program, "")
        wait_for(lambda: wanted in log.read_text(), f"{program} runs")

    def stop(self, program: str) -> None:
        server = self.servers.pop(program)
        server.terminate()
        server.wait(timeout=60)

    def serve4(self, lifetime: int = 600) -> None:
        self._serve("kea-dhcp4", dhcp4(lifetime))

    def serve6(
        self, lifetime: int = 600, prefixes: str = "2001:db8:1000::/60", delegated: int = 60
    ) -> None:
        self._serve("kea-dhcp6", dhcp6(lifetime, prefixes, delegated))

    def _serve(self, program: str, config: dict[str, Any]) -> None:
        if program in self.servers:
            self.stop(program)
        wait_for(self._carrier, "the provider's end is up")
        path = self.folder / f"{program}.json"
        path.write_text(json.dumps(config))
        self.start(program, "-c", str(path))

    def _carrier(self) -> bool:
        command = [*self._inside, "ip", "-br", "link", "show", FAR]
        return b"LOWER_UP" in subprocess.run(command, capture_output=True, check=True).stdout

    def advertise(self) -> None:
        path = self.folder / "radvd.conf"
        path.write_text(_RADVD)
        self.start("radvd", "-n", "-C", str(path), "-p", "/run/radvd.pid")


@contextmanager
def provider(folder: Path) -> Iterator[Provider]:
    """Called in the router's namespace, which it gives the link `wan0`."""
    needs_programs("kea-dhcp4", "kea-dhcp6", "radvd", "dhcpcd")
    folder.mkdir()
    held = ["unshare", "--net", "--mount", "sh", "-c", f"{_HOLD} && echo && exec sleep 600"]
    with subprocess.Popen(held, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        made = Provider(folder, holder.pid)
        try:
            _connect(made)
            yield made
        finally:
            for name in list(made.servers):
                made.stop(name)
            holder.send_signal(signal.SIGKILL)


def _connect(made: Provider) -> None:
    for command in (
        f"link add {NEAR} type veth peer name {FAR} netns {made.holder}",
        f"link set {NEAR} up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    # Kea binds to link-local addresses when it starts, which it cannot while they are checked.
    made.run("sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{FAR}/accept_dad")
    for command in (
        "link set lo up",
        f"link set {FAR} up",
        f"addr add 203.0.113.1/24 dev {FAR}",
        f"addr add 2001:db8:ffff::1/64 dev {FAR} nodad",
    ):
        made.run("ip", *command.split())
