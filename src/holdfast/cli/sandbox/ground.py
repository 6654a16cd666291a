"""The throwaway world: links where the file expects some, a provider behind those that lead to
one, an empty network behind the others."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterable, Sequence
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from holdfast.cli import namespaces
from holdfast.cli.sandbox import dhcp6, pppoe
from holdfast.cli.sandbox.roles import Nic
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError

UPSTREAM, CLIENTS = "upstream", "clients"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NETWORKS = Path("/run/netns")  # where `ip netns` keeps its names


@dataclass(frozen=True, slots=True)
class Uplink:
    nic: Nic
    far: str  # its other end, in the network of the provider
    gateway: str  # of the provider, in a network for benchmarks that nobody routes (RFC 2544)
    gateway6: str


@dataclass(frozen=True, slots=True)
class Lan:
    nic: Nic
    far: str  # where a client would be plugged in


@dataclass(frozen=True, slots=True)
class SandboxNetwork:
    uplinks: tuple[Uplink, ...]
    lans: tuple[Lan, ...]
    served: bool  # a provider that answers DHCP and DNS was found
    undialled: str = ""  # why nobody answers PPPoE, where somebody should


def lay(nics: Iterable[Nic], scratch: Path) -> SandboxNetwork:
    """In namespaces of our own already, with /run our own too."""
    namespaces.mount("tmpfs", "/run")
    run("ip", "link", "set", "lo", "up")
    for network in (UPSTREAM, CLIENTS):
        run("ip", "netns", "add", network)
        inside(network, "ip", "link", "set", "lo", "up")
    ipv6 = _has_ipv6()
    uplinks: list[Uplink] = []
    lans: list[Lan] = []
    for number, nic in enumerate(nics):
        far = f"far{number}"
        network = UPSTREAM if nic.uplink else CLIENTS
        # Both are named after a word of their own: a link may be called -x, and far0 too.
        peer = ("peer", "name", far, "netns", network)
        run("ip", "link", "add", "name", nic.ifname, "type", "veth", *peer)
        inside(network, "ip", "link", "set", far, "up")
        run("ip", "link", "set", "dev", nic.ifname, "up")
        for address in nic.far_ends:
            inside(network, "ip", "address", "add", address, "dev", far, "nodad")
        if nic.uplink:
            uplink = Uplink(nic, far, f"198.18.{number}.1", f"2001:db8:ffff:{number:x}::1")
            inside(network, "ip", "address", "add", f"{uplink.gateway}/24", "dev", far)
            if ipv6:
                address = f"{uplink.gateway6}/64"
                inside(network, "ip", "address", "add", address, "dev", far, "nodad")
            uplinks.append(uplink)
        else:
            lans.append(Lan(nic, far))
    served = _serve(uplinks, scratch, ipv6=ipv6)
    return SandboxNetwork(tuple(uplinks), tuple(lans), served, _serve_pppoe(uplinks, scratch))


def _has_ipv6() -> bool:
    """Not with ipv6.disable=1 on the kernel command line. Where it is a module, asking loads it."""
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    except OSError:
        return False
    return True


def _serve(uplinks: Sequence[Uplink], scratch: Path, *, ipv6: bool) -> bool:
    """dnsmasq as a provider: addresses by DHCP and advertisement, and an answer to every name. What
    DHCPv6 lends comes from a server of our own."""
    program = shutil.which("dnsmasq", path=_PATH)
    if program is None or not uplinks:
        return False
    lines = [
        # No group: the user namespace of a normal user has none to change to.
        "no-resolv", "no-hosts", "bind-dynamic", "user=root", "group=",
        "dhcp-authoritative", "interface=ppp*",
        f"pid-file={scratch}/provider.pid", f"dhcp-leasefile={scratch}/provider.leases",
        f"address=/#/{uplinks[0].gateway}",
    ]  # fmt: skip
    for uplink in uplinks:
        base = uplink.gateway.rpartition(".")[0]
        lines += [
            f"interface={uplink.far}",
            f"dhcp-range={base}.100,{base}.199,255.255.255.0,1h",
        ]
        if ipv6:
            lines += ["enable-ra", f"dhcp-range=::,constructor:{uplink.far},ra-only,64,1h"]
    config = scratch / "provider.conf"
    config.write_text("\n".join(lines) + "\n")
    inside(UPSTREAM, program, f"--conf-file={config}")
    if ipv6:
        _serve6(uplinks)
    return True


def _serve6(uplinks: Sequence[Uplink]) -> None:
    dhcp6.serve(
        [_link6(number, uplink) for number, uplink in enumerate(uplinks)],
        lambda: namespaces.join_network(place(UPSTREAM)),
        lambda prefix, client, ifname: run(
            "ip", "-6", "route", "replace", str(prefix), "via", client, "dev", ifname
        ),
    )


def _serve_pppoe(uplinks: Sequence[Uplink], scratch: Path) -> str:
    """Why it cannot be, "" where it can or nobody asks for it."""
    wanted = [
        (uplink, concentrator) for uplink in uplinks for concentrator in uplink.nic.concentrators
    ]
    lacking = pppoe.lacking(_PATH) if wanted else ""
    for number, (uplink, concentrator) in enumerate(wanted if not lacking else ()):
        base = uplink.gateway.rpartition(".")[0]
        folder = scratch / f"concentrator{number}"
        folder.mkdir()
        _start(
            UPSTREAM, folder / "log", *pppoe.command(concentrator, number, uplink.far, base, folder)
        )
    return lacking


def _link6(number: int, uplink: Uplink) -> dhcp6.Link:
    pool = IPv6Network((0x20010DB8_8000 + 16 * number << 80, 44))
    return dhcp6.Link(uplink.far, IPv6Address(uplink.gateway6), pool)


def run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 (no shell; names were checked when the file was read)
        command, capture_output=True, text=True, check=False, env={"PATH": _PATH}
    )
    if done.returncode != 0:
        raise HoldfastError(f"{' '.join(command)}: {done.stderr.strip()}")


def _start(network: str, log: Path, *command: str) -> None:
    """It runs on by itself, until the namespace of our processes ends."""
    words = ("ip", "netns", "exec", network, *command)
    with log.open("wb") as out:
        subprocess.Popen(  # noqa: S603 (as above)
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={"PATH": _PATH}
        )


def inside(network: str, *command: str) -> None:
    run("ip", "netns", "exec", network, *command)


def place(network: str) -> Path:
    return _NETWORKS / network
