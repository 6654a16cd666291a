"""A router with an object of every kind, a candidate that changes all of it, and what there is."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from holdfast.engine.drivers import Drivers
from holdfast.engine.kinds import KINDS
from holdfast.paths import Paths
from holdfast.runtime.confirm import trial as confirm
from holdfast.state.ledger import Ledger
from tests.cli.conftest import HEAD, Holdfast
from tests.namespace import Namespace

LONG_S = 60.0

T = TypeVar("T")

BEFORE = (
    "net Interface wan {ifname: wan0, adminUp: true, mtu: 1500}",
    "net Interface lan {ifname: lan0, type: bridge, adminUp: true}",
    "net Interface over {ifname: over0, type: vxlan, vxlan: {id: 7, remote: 192.0.2.77}}",
    "net IPv4StaticAddress wan {interface: wan, address: 192.0.2.1/24}",
    "net IPv4StaticAddress lan {interface: lan, address: 10.1.0.1/16}",
    "net IPv6StaticAddress lan {interface: lan, address: '2001:db8:1::1/64'}",
    "net IPv4Route a {destination: 10.7.0.0/16, gateway: 192.0.2.254}",
    "net IPv4Route b {destination: 10.8.0.0/16, gateway: 192.0.2.254}",
    "net IPv6Route a {destination: '2001:db8:7::/48', gateway: '2001:db8:1::fe'}",
    "net RoutingRule a {priority: 1000, from: 10.9.0.0/16, table: 100}",
    'net Neighbour a {interface: wan, address: 192.0.2.9, mac: "02:00:5e:10:00:09"}',
    'system Sysctl a {key: net.ipv4.ip_forward, value: "1", persistent: true}',
    'system Sysctl b {key: net.ipv4.conf.wan0.rp_filter, value: "2"}',
    "system Hostname a {hostname: router03, hostsEntry: true}",
    "system NTPClient a {provider: systemd-timesyncd, servers: [192.0.2.123]}",
    "net IPv4DHCPServer a {listenInterfaces: [lan], dns: {enabled: false}}",
    "firewall Zone wan {interfaces: [wan]}",
    "firewall Zone home {interfaces: [lan]}",
    "firewall FirewallPolicy a {input: {default: accept}}",
)
AFTER = (
    "net Interface wan {ifname: wan0, adminUp: true, mtu: 1400, alias: uplink}",
    "net Interface lan {ifname: lan0, type: bridge, adminUp: true, mtu: 1400}",
    "net Interface over {ifname: over0, type: vxlan, vxlan: {id: 8, remote: 192.0.2.77}}",
    "net Interface more {ifname: more0, type: bridge, adminUp: true}",
    "net IPv4StaticAddress wan {interface: wan, address: 192.0.2.2/24}",
    "net IPv4StaticAddress lan {interface: lan, address: 10.1.0.1/24}",
    "net IPv4StaticAddress more {interface: more, address: 10.2.0.1/24}",
    "net IPv4Route a {destination: 10.7.0.0/16, gateway: 192.0.2.253}",
    "net IPv4Route c {destination: 10.6.0.0/16, gateway: 192.0.2.254}",
    "net RoutingRule a {priority: 1001, from: 10.9.0.0/16, table: 100}",
    'net Neighbour a {interface: wan, address: 192.0.2.9, mac: "02:00:5e:10:00:0a"}',
    'system Sysctl a {key: net.ipv4.ip_forward, value: "0", persistent: true}',
    'system Sysctl c {key: net.ipv4.conf.wan0.log_martians, value: "1"}',
    "system Hostname a {hostname: router04, hostsEntry: true}",
    "system NTPClient a {provider: systemd-timesyncd, servers: [192.0.2.124]}",
    "net IPv4DHCPServer a {listenInterfaces: [lan], dns: {enabled: true}}",
    "firewall Zone wan {interfaces: [wan]}",
    "firewall Zone home {interfaces: [lan]}",
    "firewall FirewallPolicy a {input: {default: accept}, forward: {default: accept}}",
    "net IPv4SourceNAT a {outboundInterface: wan, sourceCIDRs: [10.1.0.0/16],"
    " translation: {type: address, address: 192.0.2.2}}",
)
SETTINGS = ("ipv4/ip_forward", "ipv4/conf/wan0/rp_filter", "ipv4/conf/wan0/log_martians")


def document(resources: tuple[str, ...], head: str = HEAD) -> str:
    lines = [head.rstrip("\n") if resources else f"{head.rstrip()} []"]
    for resource in resources:
        group, kind, name, spec = resource.split(" ", 3)
        lines.append(f"    - apiVersion: {group}.holdfast.dev/v1alpha1\n      kind: {kind}")
        lines.append(f"      metadata: {{name: {name}}}\n      spec: {spec}")
    return "\n".join(lines) + "\n"


@contextmanager
def router(holdfast: Holdfast, netns: Namespace) -> Iterator[None]:
    """As BEFORE says, and something foreign beside it."""
    # Addresses are tentative for a second otherwise, and then no longer as they were.
    for links in ("all", "default"):
        Path("/proc/sys/net/ipv6/conf", links, "accept_dad").write_text("0")
    netns.veth("wan0", "isp0")
    netns.ip("addr add 198.51.100.1/24 dev wan0")
    netns.ip("route add 10.99.0.0/16 via 198.51.100.254 proto static")
    etc = holdfast.root / "etc"
    etc.mkdir(parents=True)
    (etc / "hosts").write_text("127.0.0.1 localhost\n")
    (etc / "hostname").write_text("before\n")
    netns.run("hostname", "before")
    (holdfast.folder / "router.yaml").write_text(document(BEFORE))
    (holdfast.folder / "candidate.yaml").write_text(document(AFTER))
    holdfast.set_up("apply", "router.yaml", "--yes")
    try:
        yield
    finally:
        for pid in keepers(holdfast.root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if waiting(holdfast.root):
            holdfast.run("rollback")
        (holdfast.folder / "none.yaml").write_text(document(()))
        holdfast.set_up("apply", "none.yaml", "--yes", "--allow-mass-delete")


def state(holdfast: Holdfast, netns: Namespace) -> dict[str, Any]:
    """All that a revert has to bring back, in the words of other programs where there are any."""
    return {
        "links": [_link(one) for one in netns.ip_json("-d link show")],
        "addresses": {one["ifname"]: _addresses(one) for one in netns.ip_json("addr show")},
        "routes": [_sorted(netns.ip_json(f"{v} route show table all")) for v in ("-4", "-6")],
        "rules": [_sorted(netns.ip_json(f"{v} rule show")) for v in ("-4", "-6")],
        "neighbours": _sorted(netns.ip_json("neigh show nud permanent")),
        "tables": netns.run("nft", "list", "ruleset"),
        "settings": [Path("/proc/sys/net", one).read_text() for one in SETTINGS],
        "hostname": socket.gethostname(),
        "files": files(holdfast.root),
        "services": services(holdfast.root),
        "claims": claims(holdfast),
    }


def settled(look: Callable[[], T]) -> T:
    """What is seen, once it stays so."""
    last: T | None = None

    def same() -> bool:
        nonlocal last
        try:
            before, last = last, look()
        except (OSError, ValueError):  # a file or a process that was there a moment ago
            last = None
        return last is not None and last == before

    until(same, "nothing changes any more")
    assert last is not None
    return last


def _link(one: dict[str, Any]) -> dict[str, Any]:
    passing = ("ifindex", "link_index", "operstate", "promiscuity", "flags")
    kept = {name: value for name, value in one.items() if name not in passing}
    kept["up"] = "UP" in one["flags"]
    data = kept.get("linkinfo", {}).get("info_data", {})
    # Timers of a bridge count down; its ports and identity are in the other members.
    kept["linkinfo"] = {
        name: value for name, value in data.items() if "timer" not in name and "gc" not in name
    }
    return kept


def _addresses(one: dict[str, Any]) -> list[str]:
    lasting = (a for a in one["addr_info"] if a.get("scope") != "link")
    found = ({k: v for k, v in a.items() if "life_time" not in k} for a in lasting)
    return sorted(json.dumps(a, sort_keys=True) for a in found)


def _sorted(entries: list[Any]) -> list[str]:
    # The kernel makes these for link-local addresses, whenever a link comes up.
    lasting = [e for e in entries if not str(e.get("dst", "")).startswith(("fe80", "ff00"))]
    return sorted(json.dumps(entry, sort_keys=True) for entry in lasting)


def files(root: Path) -> dict[str, tuple[str, bytes]]:
    """Below /etc, links by where they lead: what Holdfast keeps for itself is in /run and /var."""
    found = {}
    for path in sorted(root.glob("etc/**/*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = "link", os.fsencode(path.readlink())
        elif path.is_file():
            mode = oct(path.stat().st_mode)
            found[str(path.relative_to(root))] = mode, path.read_bytes()
    return found


def services(root: Path) -> dict[str, Any]:
    """What runs, by its definition; the mark is another one where it was made anew."""
    found = {}
    for path in sorted(root.glob("run/holdfast/services/*.json")):
        said = json.loads(path.read_bytes())
        pid = json.loads(path.with_suffix(".process").read_bytes())["process"][0]
        os.kill(pid, 0)
        found[path.stem] = {k: v for k, v in said.items() if k not in ("mark", "digest")}
    return found


def claims(holdfast: Holdfast) -> dict[str, Any]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        found = ledger.claims()
    shown = {}
    for key, claim in found.items():
        # What tells an object from another of its name is that of the object there is now.
        passing = {*KINDS[key.kind].pins, "listing", "writer"} - {"type"}
        fields = {name: v for name, v in claim.fields.items() if name not in passing}
        shown[str(key)] = replace(claim, fields=fields)
    return shown


def until(holds: Callable[[], bool], what: str, limit: float = LONG_S) -> None:
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end, f"not within {limit:g} s: {what}"
        time.sleep(0.05)


def waiting(root: Path) -> bool:
    with Ledger.read(Paths(root)) as ledger:
        return ledger.waiting() is not None


def overdue(root: Path) -> bool:
    with Ledger.read(Paths(root)) as ledger:
        found = ledger.waiting()
    return found is not None and bool(confirm.overdue(found))


def asked(root: Path) -> bool:
    """Does somebody ask for what waits to be confirmed, or did so until he was killed?"""
    return (root / "run/holdfast/confirm-asked.json").exists()


def keepers(root: Path) -> list[int]:
    """Processes that keep a deadline for this root."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                words = (place / "cmdline").read_bytes().split(b"\0")
                if (
                    b"holdfast.runtime.confirm.deadline_process" in words
                    and str(root).encode() in words
                ):
                    found.append(int(place.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def kill(pids: list[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(is_alive, pids)), "they ended")


def apply_and_hang_up(holdfast: Holdfast, file: str, within: str) -> None:
    """In a session of its own, whose terminal is closed once the way back is stored."""
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = holdfast.arguments("apply", file, "--yes", "--confirm-within", within)
        os.chdir(holdfast.folder)
        os.execve(arguments[0], arguments, holdfast.environment())  # noqa: S606 (as meant)
    until(lambda: waiting(holdfast.root), "the way back is stored")
    os.close(terminal)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def killed_at_stage(number: int, work: Callable[[], object]) -> None:
    """In a process that is killed when it is about to make its changes number `number`."""
    pid = os.fork()
    if pid == 0:
        real, made = Drivers.apply, itertools.count()

        def apply(host: Drivers, *arguments: Any) -> Any:
            if next(made) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(host, *arguments)

        Drivers.apply = apply  # type: ignore[assignment,method-assign]  # it ends here
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os._exit(int(bool(work())))
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"it ended by itself, with {os.WEXITSTATUS(status)}"
