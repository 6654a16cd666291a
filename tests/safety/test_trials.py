"""Random trials over random state of others: whatever is reverted, however, all is as it was."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import confirm_scene as trials
from tests.cli import others_scene as scene
from tests.cli.conftest import Holdfast
from tests.cli.test_put_back import ALLOW, same
from tests.namespace import Namespace

Resource = tuple[str, str, str]
_OURS = ("192.0.2.1", "192.0.2.2", "10.1.0.1")
_PROTOCOLS = ("static", "bird", "zebra", "dhcp", "boot")


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


def before() -> list[Resource]:
    return [
        ("Interface", "wan", "{ifname: wan0, adminUp: true, mtu: 1500}"),
        ("Interface", "lan", "{ifname: lan0, type: bridge, adminUp: true}"),
        ("Interface", "pair", "{ifname: pair0, type: veth, veth: {peer: pair1}, adminUp: true}"),
        ("IPv4StaticAddress", "wan", "{interface: wan, address: 192.0.2.1/24}"),
        ("IPv4StaticAddress", "wan2", "{interface: wan, address: 192.0.2.2/24}"),
        ("IPv6StaticAddress", "wan", "{interface: wan, address: '2001:db8::1/64'}"),
        ("IPv4StaticAddress", "lan", "{interface: lan, address: 10.1.0.1/24}"),
        ("IPv4Route", "a", "{destination: 10.7.0.0/16, gateway: 192.0.2.254, interface: wan}"),
        ("IPv4Route", "b", "{destination: 10.8.0.0/16, gateway: 10.1.0.254, interface: lan}"),
    ]


def candidate(chance: random.Random) -> list[Resource]:
    """One to three changes of what is declared."""
    found = {(kind, name): spec for kind, name, spec in before()}
    changes: list[tuple[tuple[str, str], str]] = [
        (("Interface", "wan"), "{ifname: wan0, adminUp: false}"),
        (("Interface", "wan"), "{ifname: wan0, adminUp: true, mtu: 1200}"),
        (("Interface", "wan"), "{ifname: wan0, adminUp: true, mac: '02:00:00:00:00:55'}"),
        (("Interface", "lan"), "{ifname: lan0, state: absent}"),
        (("Interface", "lan"), "{ifname: lan0, type: bridge, adminUp: false}"),
        (("Interface", "lan"), "{ifname: lan0, type: bridge, adminUp: true, mtu: 1280}"),
        (("Interface", "pair"), "{ifname: pair0, state: absent}"),
        (("IPv4StaticAddress", "wan"), "{interface: wan, address: 198.51.100.1/24}"),
        (("IPv4StaticAddress", "wan"), "{interface: wan, address: 192.0.2.9/24}"),
        (("IPv4StaticAddress", "wan"), ""),
        (("IPv4StaticAddress", "wan2"), ""),
        (("IPv6StaticAddress", "wan"), "{interface: wan, address: '2001:db8::2/64'}"),
        (("IPv6StaticAddress", "wan"), ""),
        (("IPv4StaticAddress", "lan"), "{interface: lan, address: 10.1.0.1/16}"),
        (("IPv4Route", "a"), ""),
    ]
    for key, spec in chance.sample(changes, chance.randint(1, 3)):
        found[key] = spec
    absent = "absent" in found["Interface", "lan"]
    return [
        (*key, spec)
        for key, spec in found.items()
        if spec and not (absent and ("lan" in (key[1],) or key[1] == "b") and key[0] != "Interface")
    ]


def foreign(chance: random.Random) -> Iterator[str]:
    """What others may have; what the kernel does not take, they have not."""
    port = chance.choice(("p0", "p1"))
    if chance.random() < 0.5:
        yield f"link set {port} master lan0"
        yield f"bridge link set dev {port} isolated on learning off cost {chance.randint(1, 99)}"
        yield f"bridge fdb add 02:00:00:00:02:01 dev {port} master static"
        yield f"bridge mdb add dev lan0 port {port} grp 239.1.1.1 permanent"
    for dev in chance.sample(("wan0", "lan0", "pair0", "pair1"), 2):
        yield f"sysctl -qw net.ipv4.conf.{dev}.proxy_arp=1 net.ipv6.conf.{dev}.hop_limit=33"
    for dev in ("wan0", "lan0", "pair1"):
        for number in range(chance.randint(0, 3)):
            net = chance.choice(("192.0.2", "10.1.0", "198.51.100", f"10.{60 + number}.0"))
            yield f"addr add {net}.{chance.randint(20, 200)}/24 dev {dev}"
        for number in range(chance.randint(0, 2)):
            yield f"addr add 2001:db8:{chance.randint(0, 2)}::{number + 20:x}/64 dev {dev} nodad"
        if chance.random() < 0.3:
            yield f"link add m-{dev} link {dev} type macvlan mode bridge"
            yield f"link set m-{dev} up"
            yield f"addr add 10.{chance.randint(80, 90)}.0.1/24 dev m-{dev}"
        if chance.random() < 0.5:
            mac = f"02:00:00:00:01:{chance.randint(1, 99):02d}"
            yield f"neigh add 10.1.0.99 lladdr {mac} dev {dev} nud permanent"
    yield from (_route(chance) for _ in range(chance.randint(3, 12)))


def _route(chance: random.Random) -> str:
    proto, table = chance.choice(_PROTOCOLS), chance.choice((254, 254, 99, 1000))
    tail = f"proto {proto} table {table} metric {chance.randint(0, 3) * 50}"
    if chance.random() < 0.25:
        prefix = f"2001:db8:{chance.randint(0x20, 0x99):x}::/48"
        return f"-6 route append {prefix} via 2001:db8::{chance.randint(1, 9) * 16:x} {tail}"
    prefix = f"10.{chance.randint(100, 250)}.0.0/16"
    way = chance.choice(
        (
            f"via 192.0.2.{chance.randint(201, 250)} dev wan0 onlink",
            f"via 192.0.2.{chance.randint(201, 250)}",
            f"via 10.1.0.{chance.randint(201, 250)}",
            "dev wan0 scope link mtu 1300",
            "dev lan0 scope link",
        )
    )
    source = f"src {chance.choice(_OURS)} " if chance.random() < 0.4 else ""
    return f"route {chance.choice(('add', 'append'))} {prefix} {way} {source}{tail}"


def try_all(commands: Iterator[str]) -> None:
    for command in commands:
        words = command.split()
        program = () if words[0] in ("bridge", "sysctl") else ("ip",)
        subprocess.run([*program, *words], capture_output=True, check=False)


def run_trial(holdfast: Holdfast, netns: Namespace, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (repeatable, no secret)
    scene.unchecked()
    netns.veth("wan0", "isp0")
    netns.veth("p0", "p0x")
    netns.veth("p1", "p1x")
    promote = chance.choice("01")
    netns.run("sysctl", "-q", f"net.ipv4.conf.default.promote_secondaries={promote}")
    netns.run("sysctl", "-q", f"net.ipv4.conf.wan0.promote_secondaries={promote}")
    holdfast.declare(*before())
    holdfast.set_up("apply", "router.yaml", "--yes")
    try_all(foreign(chance))
    there = trials.settled(lambda: scene.everything(netns))
    holdfast.declare(*candidate(chance), file="candidate.yaml")
    way = chance.choice(("rollback", "deadline", "nobody"))
    within = "1h" if way == "rollback" else "5s"
    done = holdfast.run("apply", "candidate.yaml", "--yes", "--confirm-within", within, *ALLOW)
    if not trials.waiting(holdfast.root):
        # It was refused, or taken back within the time that the command took.
        assert done.code in (0, 1, 4), done
    elif way == "rollback":
        done = holdfast.run("rollback")
        assert "not brought back" not in done.out + done.err, done
    elif way == "nobody":
        for pid in trials.keepers(holdfast.root):
            trials.kill([pid])
        trials.until(
            lambda: not trials.waiting(holdfast.root) or trials.overdue(holdfast.root), "overdue"
        )
        holdfast.run("reconcile", "--once", str(holdfast.folder / "router.yaml"))
    trials.until(lambda: not trials.waiting(holdfast.root), "reverted")
    print(holdfast.run("events").out)  # for whoever reads of a failure
    same(netns, there)


@pytest.mark.parametrize("seed", range(4))
def test_random_trials(holdfast: Holdfast, netns: Namespace, seed: int) -> None:
    run_trial(holdfast, netns, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4, 400))
def test_random_trials_for_longer(holdfast: Holdfast, netns: Namespace, seed: int) -> None:
    run_trial(holdfast, netns, seed)
