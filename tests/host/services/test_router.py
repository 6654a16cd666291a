"""dnsmasq and dhcpcd as units of systemd, on a whole machine: as on a router of one's own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND
from tests.host.services.service_passes import ServicePasses, over, until
from tests.host.services.test_systemd import main_pid, show, systemctl
from tests.lan.network import Host, host
from tests.namespace import Namespace
from tests.safety.router_scene import document

pytestmark = pytest.mark.systemd

_FILE = Path("/run/router.yaml")
# CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_TIME
_NEVER = 1 << 16 | 1 << 17 | 1 << 19 | 1 << 21 | 1 << 25
_LEASES = Path("/var/lib/holdfast/dnsmasq.leases")
_HOSTS = Path("/etc/hosts")
_DNSMASQ, _DHCPCD = "dnsmasq", "dhcpcd4-wan0"
ROUTER = {
    "Hostname/it": "{hostname: router.example.net, hostsEntry: true}",
    "Interface/lan": "{ifname: lan0, adminUp: true}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 192.168.1.1/24}",
    "IPv4DHCPServer/lan": "{listenInterfaces: [lan], dns: {upstreamSource: none}}",
    "IPv4DHCPScope/lan": "{server: lan, interface: lan, rangeStart: 192.168.1.100,"
    " rangeEnd: 192.168.1.199}",
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4DHCPAddress/wan": "{interface: wan}",
}


def holdfast(command: str, resources: dict[str, str], *options: str) -> tuple[int, str]:
    _FILE.write_text(document(resources))
    words = [COMMAND, command, str(_FILE), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def apply(resources: dict[str, str]) -> str:
    code, said = holdfast("apply", resources, "--yes", "--allow-mass-delete")
    assert code == 0, said
    return said


def changes(resources: dict[str, str]) -> str:
    """What a pass would do; empty where there is nothing to do."""
    code, said = holdfast("plan", resources, "--detailed-exitcode")
    assert code in (0, 2), said
    return said if code else ""


@contextmanager
def provider(at: Host) -> Iterator[None]:
    at.ip(f"addr add 203.0.113.1/24 dev {at.link}")
    options = (f"--interface={at.link}", "--dhcp-range=203.0.113.100,203.0.113.100,1h")
    silent = ("--conf-file=/dev/null", "--port=0", "--pid-file=", "--leasefile-ro")
    words = at.command("dnsmasq", "--keep-in-foreground", "--user=root", *options, *silent)
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.fixture
def client(machine: ServicePasses, tmp_path: Path) -> Iterator[Host]:
    """Somebody on the LAN of a router whose provider has one address to give."""
    del machine  # which it is
    names = Path("/etc/hostname").read_bytes(), _HOSTS.read_bytes() if _HOSTS.exists() else b""
    with (
        host(Namespace(), tmp_path, "c0", "lan0") as found,
        host(Namespace(), tmp_path, "isp0", "wan0") as isp,
        provider(isp),
    ):
        yield found
        apply({})
    Path("/etc/hostname").write_bytes(names[0])
    subprocess.run(["hostname", "-F", "/etc/hostname"], check=True)
    assert _HOSTS.read_bytes() == names[1]


def address(link: str) -> str:
    return Namespace().ip(f"-4 -br addr show dev {link}")


def test_a_router(client: Host) -> None:
    apply(ROUTER)
    until(lambda: "203.0.113.100/24" in address("wan0"), "a lease of the provider")
    until(lambda: changes(ROUTER) == "", "nothing more to do")
    pids = {name: main_pid(name) for name in (_DNSMASQ, _DHCPCD)}
    apply(ROUTER)
    assert pids == {name: main_pid(name) for name in pids}, "a second pass restarts nothing"

    assert client.dhcp(4)["new_ip_address"].startswith("192.168.1.1")
    assert Path(f"/proc/{pids[_DNSMASQ]}").stat().st_uid != 0
    assert _LEASES.read_text().count("192.168.1.") == 1
    said = Path("/run/holdfast/leases/wan0.4.lease").read_text()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert f"holdfast_boot={boot}" in said, "it sees the machine that the daemon sees"
    for pid in pids.values():
        state = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        assert state["NoNewPrivs"].strip() == "1"
        assert not int(state["CapBnd"], 16) & _NEVER, "what would make it root again"
    assert Namespace().run("getent", "hosts", "router.example.net").split()[0] == "127.0.1.1"

    for name, pid in pids.items():
        systemctl("restart", f"holdfast-{name}")
        assert main_pid(name) not in (0, pid)
    until(lambda: "203.0.113.100/24" in address("wan0"), "the address again")
    assert changes(ROUTER) == ""

    conf = Path("/etc/holdfast/dnsmasq.conf")
    right = conf.read_text()
    conf.write_text(right.replace("192.168.1.100", "192.168.1.150"))
    systemctl("restart", f"holdfast-{_DNSMASQ}")
    pid = main_pid(_DNSMASQ)
    apply(ROUTER)
    assert conf.read_text() == right
    assert main_pid(_DNSMASQ) != pid, "it had read the file that was wrong"
    assert changes(ROUTER) == ""

    for name in pids:
        systemctl("stop", f"holdfast-{name}")
        assert f"service {name}" in changes(ROUTER)
    apply(ROUTER)
    until(lambda: "203.0.113.100/24" in address("wan0"), "the address again")
    until(lambda: changes(ROUTER) == "", "nothing more to do")

    pids = {name: main_pid(name) for name in pids}
    apply({})
    for name, pid in pids.items():
        assert over(pid)
        assert show("LoadState", name) == "not-found"
    assert "203.0.113.100" not in address("wan0")
    assert "192.168.1.1" not in address("lan0")
    assert "router.example.net" not in _HOSTS.read_text()
    assert not Path("/etc/holdfast/dnsmasq.conf").exists()
