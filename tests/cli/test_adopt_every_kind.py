"""What docs/reference/coverage.md says of adoption is so, for an object of every kind.

What carries a kernel tag is made by hand. Everything else is made by a Holdfast whose ledger is
then lost: nothing tells the next one that it is not somebody else's.
"""

from __future__ import annotations

import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator

import pytest

from holdfast.engine.claim import Claim
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.ospf import OSPF_PREFIX
from holdfast.frr.daemon import SETTLES_S
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.cli.conftest import HEAD, Holdfast
from tests.frr.conftest import frr
from tests.frr.ground import Ground
from tests.lanes import needs_link_type
from tests.namespace import Namespace

__all__ = ["frr"]

# An object of each kind: what declares it.
LINK = "net Interface lan {ifname: lan0, type: bridge, adminUp: true}"
WAN = "net Interface wan {ifname: wan0, adminUp: true}"
ADDRESS = "net IPv4StaticAddress wan {interface: wan, address: 192.0.2.1/24}"
ROUTE = "net IPv4Route a {destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}"
RULE = "net RoutingRule a {priority: 1000, from: 10.9.0.0/16, table: 100}"
NEIGHBOUR = 'net Neighbour a {interface: wan, address: 192.0.2.9, mac: "02:00:5e:10:00:09"}'
SYSCTL = 'system Sysctl a {key: net.ipv4.ip_forward, value: "1", persistent: true}'
HOSTNAME = "system Hostname a {hostname: router03, hostsEntry: true}"
NTP = "system NTPClient a {provider: systemd-timesyncd, servers: [192.0.2.123]}"
SERVER = "net IPv4DHCPServer a {listenInterfaces: [wan], dns: {enabled: false}}"
ZONE = "firewall Zone wan {interfaces: [wan]}"
FILTER = "firewall FirewallPolicy a {input: {default: accept}}"
FAR = b64encode(bytes(range(32, 64))).decode()
WIREGUARD = (
    "net WireGuardInterface wg0 {ifname: wg0, privateKeyFile: wg0.key, listenPort: 51820,"
    f' peers: [{{name: far, publicKey: "{FAR}", allowedIPs: [10.78.0.0/16]}}]}}'
)

SOURCE_NAT = (
    "net IPv4SourceNAT a {outboundInterface: wan, sourceCIDRs: [10.1.0.0/16],"
    " translation: {type: address, address: 192.0.2.1}}"
)
HOME = "firewall Zone home {interfaces: [lan]}"
SERVICE = (
    "firewall ExposeService web {fromZone: wan, protocol: tcp, externalPort: 443,"
    " internalAddress: 10.1.0.20, internalPort: 8443, hairpin: true}"
)
MSS = (
    "net PathMTUPolicy a {fromInterface: lan, toInterfaces: [wan],"
    " mtu: {source: static, value: 1454}, tcpMSSClamp: {enabled: true}}"
)
POLICY = (
    "net IPv4PolicyRoute a {outboundInterface: wan, gatewaySource: static, gateway: 192.0.2.254,"
    " table: 100, priority: 10000, mark: 256, sourceCIDRs: [10.1.0.0/16]}"
)
DEFAULT = (
    "net IPv4DefaultRoutePolicy a {candidates: [{interface: wan, gatewaySource: static,"
    " gateway: 192.0.2.254, priority: 10, table: 101, mark: 257}]}"
)

BY_HAND = (LINK, WAN, ADDRESS, ROUTE, RULE, NEIGHBOUR)
TABLES = (LINK, WAN, ADDRESS, ZONE, HOME, FILTER, SOURCE_NAT, SERVICE, MSS, POLICY, DEFAULT)
LOST = (WAN, ADDRESS, SYSCTL, HOSTNAME, NTP, SERVER)


def declare(holdfast: Holdfast, *resources: str) -> None:
    lines = [HEAD.rstrip("\n") if resources else f"{HEAD.rstrip()} []"]
    for resource in resources:
        group, kind, name, spec = resource.split(" ", 3)
        lines.append(f"    - apiVersion: {group}.holdfast.dev/v1alpha1\n      kind: {kind}")
        lines.append(f"      metadata: {{name: {name}}}\n      spec: {spec}")
    (holdfast.folder / "router.yaml").write_text("\n".join(lines) + "\n")


def claims(holdfast: Holdfast) -> dict[str, Claim]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return {str(key): claim for key, claim in ledger.claims().items()}


def lose_the_ledger(holdfast: Holdfast) -> None:
    for path in Paths(holdfast.root).state_dir.glob("state.db*"):
        path.unlink()


@pytest.fixture
def ended(holdfast: Holdfast, wan: Namespace) -> Iterator[Namespace]:
    """What a test started ends with it: the services are adopted or ours by then."""
    yield wan
    declare(holdfast)
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")


def make_by_hand(wan: Namespace) -> None:
    wan.ip("link set wan0 up")
    wan.ip("link add lan0 type bridge")
    wan.ip("link set lan0 up")
    wan.ip("addr add 192.0.2.1/24 dev wan0")
    wan.ip("route add 10.1.0.0/16 via 192.0.2.254 proto static")
    wan.ip("rule add pref 1000 from 10.9.0.0/16 lookup 100")
    wan.ip("neigh add 192.0.2.9 lladdr 02:00:5e:10:00:09 dev wan0 nud permanent")


def adopt(holdfast: Holdfast) -> set[str]:
    """Adopts all there is, and answers with the kinds of it. Then nothing is left to do."""
    holdfast.ok("adopt", "--apply", "router.yaml")
    adopted = {name for name, claim in claims(holdfast).items() if claim.provenance == "adopted"}
    plan = holdfast.ok("plan", "router.yaml", "--detailed-exitcode")
    assert plan.out.startswith("Plan: nothing to do; ")
    return {name.partition(" ")[0] for name in adopted}


def by_hand(holdfast: Holdfast, wan: Namespace) -> set[str]:
    make_by_hand(wan)
    declare(holdfast, *BY_HAND)
    return adopt(holdfast)


def of_a_lost_ledger(holdfast: Holdfast, _wan: Namespace) -> set[str]:
    declare(holdfast, *LOST)
    holdfast.ok("apply", "router.yaml", "--yes")
    lose_the_ledger(holdfast)
    return adopt(holdfast)


def of_another_program(holdfast: Holdfast, wan: Namespace) -> set[str]:
    """Tables as `nft list` tells them and `nft -f` reads them, without our comment."""
    declare(holdfast, *TABLES)
    holdfast.ok("apply", "router.yaml", "--yes")
    listed = wan.run("nft", "list", "ruleset")
    assert listed.count('comment "holdfast ') == len(claimed_tables(holdfast)) == 6
    theirs = "\n".join(line for line in listed.splitlines() if 'comment "holdfast ' not in line)
    subprocess.run(["nft", "-f", "-"], input=f"flush ruleset\n{theirs}", text=True, check=True)
    lose_the_ledger(holdfast)
    adopted = adopt(holdfast)
    assert len(claimed_tables(holdfast)) == 6
    assert "holdfast " not in wan.run("nft", "list", "ruleset"), "no comment was put on them"
    return adopted


def claimed_tables(holdfast: Holdfast) -> list[str]:
    return [name for name in claims(holdfast) if name.startswith("nft ")]


ADOPTED: dict[Callable[[Holdfast, Namespace], set[str]], set[str]] = {
    by_hand: {"link", "address", "route", "rule", "neighbour"},
    # Without a ledger the kernel's tag is no proof either: what carries it is adopted, too.
    of_a_lost_ledger: {
        "link",
        "sysctl",
        "file",
        "hostname",
        "block",
        "dropin",
        "service",
        "address",
    },
    of_another_program: {"link", "nft", "address", "route", "rule"},
}
UNDER_QEMU = {"wireguard"}
IN_FRR = {
    "bgp_instance",
    "bgp_filter",
    "bgp_peer_group",
    "bgp_peer",
    "bgp_network",
    "bgp_aggregate",
    "bfd_profile",
    "bfd_peer",
    "ospf_instance",
    "ospf_interface",
}
ROUTING = (
    "routing BGPInstance a {localAS: 65001, routerID: 192.0.2.1}",
    "routing BGPFilter a {rules: [{prefixes: [{prefix: 10.0.0.0/8, atMost: 24}]}]}",
    "routing BGPPeerGroup a {remoteAS: 65003, listenRanges: [192.0.2.128/25]}",
    "routing BGPPeer a {address: 192.0.2.2, remoteAS: 65002, description: by hand,"
    " bfd: {receiveInterval: 200ms}, families: [{family: ipv4, importFilter: a}]}",
    "routing BGPPrefix a {prefixes: [203.0.113.0/24], med: 5}",
    "routing BGPAggregate a {prefix: 203.0.112.0/22}",
    "routing BFDSession a {peer: 192.0.2.3, interface: wan}",
    "routing OSPFInterface a {interface: wan, area: 0}",
)


def test_every_kind_is_tried_here() -> None:
    tried = set().union(*ADOPTED.values()) | UNDER_QEMU | IN_FRR
    tried.add(OSPF_PREFIX.name)  # no driver tells prefixes to OSPF yet
    # What no resource declares comes with a ledger: tests/host/services/test_foreign.py.
    assert tried == {name for name, kind in KINDS.items() if not kind.imported}


@pytest.mark.parametrize("attempt", ADOPTED, ids=lambda attempt: attempt.__name__)
def test_what_can_be_adopted_is_adopted(
    attempt: Callable[[Holdfast, Namespace], set[str]], holdfast: Holdfast, ended: Namespace
) -> None:
    assert attempt(holdfast, ended) == ADOPTED[attempt]


def test_what_was_adopted_is_cleaned_up_by_its_rule(holdfast: Holdfast, ended: Namespace) -> None:
    by_hand(holdfast, ended)
    declare(holdfast, WAN)
    done = holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert "Applied: 4 deleted, 1 forgotten." in done.out  # address, route, rule, neighbour
    assert ended.ip_json("link show lan0"), "links stay"
    assert not ended.ip_json("rule show pref 1000")
    assert set(claims(holdfast)) == {"link wan0"}


def test_files_blocks_and_services_that_were_adopted_go(
    holdfast: Holdfast, ended: Namespace
) -> None:
    hosts = holdfast.root / "etc" / "hosts"
    hosts.parent.mkdir(parents=True)
    hosts.write_text("127.0.0.1 localhost\n")
    of_a_lost_ledger(holdfast, ended)
    adopted = claims(holdfast)
    declare(holdfast, WAN, ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    for name in adopted:
        kind, _, path = name.partition(" ")
        if kind in ("file", "dropin"):
            assert not (holdfast.root / path.split(" ")[0].lstrip("/")).exists(), name
    assert hosts.read_text() == "127.0.0.1 localhost\n"
    assert set(claims(holdfast)) == {"link wan0", "address 192.0.2.1/24 dev wan0"}
    assert ended.run("hostname").strip() == "router03", "a name stays"


def test_a_table_that_differs_is_shown_and_refused(holdfast: Holdfast, ended: Namespace) -> None:
    of_another_program(holdfast, ended)
    lose_the_ledger(holdfast)
    subprocess.run(["nft", "add rule inet holdfast_filter input accept"], check=True)
    shown = holdfast.ok("adopt", "--candidates", "router.yaml")
    assert "other than declared: chain input" in shown.out, shown.out
    refused = holdfast.run("adopt", "--apply", "router.yaml")
    assert refused.code == 4
    assert not claims(holdfast)
    subprocess.run(["nft", "delete table inet holdfast_filter"], check=True)
    holdfast.ok("adopt", "--apply", "router.yaml")
    holdfast.ok("apply", "router.yaml", "--yes")
    made = [name for name, claim in claims(holdfast).items() if claim.provenance == "created"]
    assert [name for name in made if name.startswith("nft ")] == ["nft inet holdfast_filter"]


def test_tables_that_were_adopted_go(holdfast: Holdfast, ended: Namespace) -> None:
    of_another_program(holdfast, ended)
    subprocess.run(["nft", "add rule inet holdfast_mss forward accept"], check=True)
    declare(holdfast, LINK, WAN, ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert ended.run("nft", "list", "tables").split("\n")[:-1] == ["table inet holdfast_mss"]
    assert not claimed_tables(holdfast)


def test_what_frr_is_configured_with_is_adopted(
    holdfast: Holdfast, frr: Ground, wan: Namespace
) -> None:
    place = Paths(holdfast.root).frr
    place.parent.mkdir(parents=True)
    place.symlink_to(frr.frr("bgpd", "bfdd", "ospfd").folder)
    time.sleep(SETTLES_S)  # until the daemons are known to have read frr.conf
    make_by_hand(wan)
    declare(holdfast, *BY_HAND, *ROUTING)
    holdfast.ok("adopt", "--apply", "router.yaml")
    holdfast.ok("apply", "router.yaml", "--yes")
    lose_the_ledger(holdfast)
    assert adopt(holdfast) >= IN_FRR
    declare(holdfast, *BY_HAND)
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert not any(name.startswith(("bgp", "bfd", "ospf")) for name in claims(holdfast))


@pytest.mark.qemu
def test_a_wireguard_link_is_adopted(holdfast: Holdfast, netns: Namespace) -> None:
    needs_link_type(netns, "wireguard")
    key = holdfast.folder / "wg0.key"
    key.write_text(f"{b64encode(bytes(range(32))).decode()}\n")
    key.chmod(0o600)
    declare(holdfast, WIREGUARD)
    holdfast.ok("apply", "router.yaml", "--yes")
    lose_the_ledger(holdfast)
    # Its route to what is behind the peer carries the tag, which is no proof without a ledger.
    assert adopt(holdfast) == {"link", "wireguard", "route"}
