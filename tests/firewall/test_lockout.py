"""An operator who is logged in over SSH, and changes that would cut the connection."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.firewall.command import COMMAND, Router
from tests.firewall.home_network import CLIENT, GROUND, ISP, ROUTER, WAN, ZONES, document
from tests.lanes import needs_link_type
from tests.namespace import Namespace

POLICY = {
    "FirewallPolicy/policy": "{routerAccess: {ssh: {fromZones: [home]},"
    " dns: {fromZones: [home]}, dhcp: {fromZones: [home]}}}"
}
FROM_LAN = f"{CLIENT} 50000 {ROUTER} 22"
FROM_WAN = f"{ISP} 50000 {WAN} 22"
REFUSED = 4


@pytest.fixture
def router(netns: Namespace, tmp_path: Path) -> Router:
    netns.veth("wan0", "far0", f"{WAN}/24")
    netns.veth("lan0", "far1", f"{ROUTER}/24", "fe80::1/64")
    return Router(tmp_path)


def tables(netns: Namespace) -> str:
    return netns.run("nft", "list", "tables")


def test_a_policy_that_drops_the_operator_is_refused(router: Router, netns: Namespace) -> None:
    wanted = GROUND | ZONES | POLICY
    code, said = router.run("apply", wanted, FROM_WAN)
    assert code == REFUSED
    assert (
        f"this would cut the connection from {ISP} to {WAN} port 22 through wan0:"
        " FirewallPolicy/policy at " in said
    )
    assert "it comes from Zone uplink, and port 22 is open from home only" in said
    assert tables(netns) == ""
    code, said = router.run("plan", wanted, FROM_WAN)
    assert "This plan is refused: this would cut" in said
    code, said = router.run("apply", wanted, FROM_WAN, "--dry-run")
    assert code == REFUSED
    # Whoever says so may.
    code, said = router.run("apply", wanted, FROM_WAN, "--allow-lockout")
    assert code == 0, said
    assert "holdfast_filter" in tables(netns)
    # What is in place is how the operator came in: only a change is refused.
    assert router.run("apply", wanted, FROM_WAN)[0] == 0


@pytest.mark.parametrize(
    "ssh",
    [
        FROM_LAN,
        "fe80::2%lan0 50000 fe80::1%lan0 22",
        "::ffff:192.168.160.50 50000 ::ffff:192.168.160.1 22",
        "127.0.0.1 50000 127.0.0.1 22",
        # Not through this network namespace, or not said by sshd.
        "203.0.113.1 50000 203.0.113.2 22",
        "nonsense",
        "",
        None,
    ],
)
def test_everybody_else_may(router: Router, netns: Namespace, ssh: str | None) -> None:
    code, said = router.run("apply", GROUND | ZONES | POLICY, ssh)
    assert code == 0, said
    assert "holdfast_filter" in tables(netns)


@pytest.mark.parametrize(
    ("policy", "ssh", "why"),
    [
        (POLICY, f"{CLIENT} 50000 {ROUTER} 2222", "port 2222 is open from nowhere"),
        (POLICY, "fe80::2%wan0 50000 fe80::1%wan0 22", "it comes from Zone uplink"),
        (POLICY, f"203.0.113.9 50000 {WAN} 22", "it comes from nowhere, which is in no Zone"),
    ],
)
def test_ports_and_ways_back(router: Router, policy: dict[str, str], ssh: str, why: str) -> None:
    code, said = router.run("apply", GROUND | ZONES | policy, ssh)
    assert code == REFUSED
    assert why in said


def test_another_port_can_be_opened(router: Router) -> None:
    policy = POLICY["FirewallPolicy/policy"].replace(
        "{routerAccess: {",
        "{routerAccess: {other: [{protocol: tcp, ports: [2222], fromZones: [home]}], ",
    )
    wanted = GROUND | ZONES | {"FirewallPolicy/policy": policy}
    code, said = router.run("apply", wanted, f"{CLIENT} 50000 {ROUTER} 2222")
    assert code == 0, said


def test_an_exposed_service_that_takes_the_operators_port_is_refused(router: Router) -> None:
    service = "{fromZone: uplink, protocol: tcp, externalPort: 22, internalAddress: 192.168.160.20"
    wanted = GROUND | ZONES | {"ExposeService/ssh": service + "}"}
    code, said = router.run("apply", wanted, FROM_WAN)
    assert code == REFUSED
    assert "ExposeService/ssh at" in said
    assert "sends it on to 192.168.160.20" in said
    elsewhere = GROUND | ZONES | {"ExposeService/ssh": service + ", sources: [203.0.113.0/24]}"}
    assert router.run("apply", elsewhere, FROM_WAN)[0] == 0


LAN = "{ifname: lan0, adminUp: true}"
ADDRESS = "IPv4StaticAddress/lan"
SECOND = "{interface: lan, address: 192.168.161.1/24}"


def test_an_operator_who_came_in_by_an_exposed_service_of_the_router(
    router: Router, netns: Namespace
) -> None:
    own = {
        "ExposeService/ssh": f"{{fromZone: uplink, protocol: tcp, externalPort: 2222,"
        f" internalAddress: {ROUTER}, internalPort: 22, sources: [{ISP}]}}"
    }
    wanted = GROUND | ZONES | POLICY | own
    code, said = router.run("apply", wanted, f"198.51.100.77 50000 {ROUTER} 22")
    assert code == REFUSED, said
    code, said = router.run("apply", wanted, f"{ISP} 50000 {ROUTER} 22")
    assert code == 0, said
    assert "holdfast_filter" in tables(netns)


def test_the_operators_address_and_link_are_not_taken_away(
    router: Router, netns: Namespace
) -> None:
    here = f"{CLIENT} 50000 192.168.161.1 22"
    before = {"Interface/lan": LAN, ADDRESS: SECOND}
    assert router.run("apply", before, here)[0] == 0
    code, said = router.run("apply", {"Interface/lan": LAN}, here)
    assert code == REFUSED
    assert "it would delete address 192.168.161.1/24 dev lan0" in said
    code, said = router.run("apply", before | {"Interface/lan": LAN.replace("true", "false")}, here)
    assert code == REFUSED
    assert "it would set link lan0 down" in said
    bridged = {
        "Interface/lan": "{ifname: lan0, adminUp: true, master: br}",
        "Interface/br": "{ifname: br0, type: bridge}",
    }
    code, said = router.run("apply", before | bridged, here)
    assert code == REFUSED
    assert "it would put link lan0 under br0" in said
    assert netns.ip_json("addr show dev lan0")[0]["addr_info"][-1]["local"]
    # Who came in another way is not concerned.
    assert router.run("apply", {"Interface/lan": LAN}, FROM_WAN)[0] == 0


def test_a_link_below_the_operators_is_not_taken_away(router: Router, netns: Namespace) -> None:
    stacked = {
        "Interface/lan": LAN,
        "Interface/top": "{ifname: top0, type: macvlan, macvlan: {parent: lan, mode: bridge},"
        " adminUp: true}",
        "IPv4StaticAddress/top": "{interface: top, address: 192.168.170.1/24}",
    }
    assert router.run("apply", stacked, None)[0] == 0
    down = stacked | {"Interface/lan": LAN.replace("true", "false")}
    code, said = router.run("apply", down, "192.168.170.9 50000 192.168.170.1 22")
    assert code == REFUSED
    assert "it would set link lan0 down" in said
    assert netns.ip_json("link show dev lan0")[0]["operstate"] == "UP"


WAY = "IPv4Route/back"
TO_THE_OPERATOR = "{destination: 203.0.113.0/24, gateway: 198.51.100.1}"
OVER_THE_WAY = f"203.0.113.9 50000 {WAN} 22"


@pytest.mark.parametrize("form", ["IPv4Route", "RouteList"])
def test_the_way_back_is_not_taken_away(router: Router, netns: Namespace, form: str) -> None:
    interface = {"Interface/wan": "{ifname: wan0, managed: false}"}
    routes = {
        "IPv4Route": {WAY: TO_THE_OPERATOR},
        "RouteList": {
            "RouteList/back": "{routes: [203.0.112.0/24, 203.0.113.0/24], gateway: 198.51.100.1}"
        },
    }[form]
    default = {"IPv4Route/default": "{destination: default, gateway: 198.51.100.1}"}
    assert router.run("apply", interface | routes, OVER_THE_WAY)[0] == 0
    code, said = router.run("apply", interface, OVER_THE_WAY, "--allow-mass-delete")
    assert code == REFUSED
    assert "it would delete route 203.0.113.0/24" in said
    assert "`no route to 203.0.113.9` then" in said
    hole = {"IPv4Route/hole": "{destination: 203.0.113.0/28, type: blackhole}"}
    code, said = router.run("apply", interface | routes | hole, OVER_THE_WAY)
    assert code == REFUSED
    assert "it would create blackhole route 203.0.113.0/28" in said
    # Another way will do, and what leads elsewhere does not matter.
    elsewhere = {"IPv4Route/hole": "{destination: 203.0.113.64/28, type: blackhole}"}
    code, said = router.run("apply", interface | default | elsewhere, OVER_THE_WAY)
    assert code == 0, said
    assert netns.ip("route get 203.0.113.9").startswith("203.0.113.9 via 198.51.100.1 dev wan0")


def test_the_way_back_over_ipv6(router: Router, netns: Namespace) -> None:
    netns.ip("addr add 2001:db8:ff::2/64 dev wan0 nodad")
    interface = {"Interface/wan": "{ifname: wan0, managed: false}"}
    way = {"IPv6Route/back": '{destination: "2001:db8:aa::/48", gateway: "2001:db8:ff::1"}'}
    ssh = "2001:db8:aa::9 50000 2001:db8:ff::2 22"
    assert router.run("apply", interface | way, ssh)[0] == 0
    code, said = router.run("apply", interface, ssh, "--allow-mass-delete")
    assert code == REFUSED
    assert "it would delete route 2001:db8:aa::/48" in said
    assert "`no route to 2001:db8:aa::9` then" in said
    code, said = router.run("apply", interface | ZONES | GROUND | POLICY | way, ssh)
    assert code == REFUSED
    assert "through wan0: FirewallPolicy/policy at" in said


def test_sudo_does_not_hide_the_operator(router: Router, netns: Namespace) -> None:
    Path(router.folder, "router.yaml").write_text(document(GROUND | ZONES | POLICY))
    script = f"env -u SSH_CONNECTION {COMMAND} --root root apply --yes router.yaml; exit $?"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=router.folder,
        env=dict(os.environ) | {"SSH_CONNECTION": FROM_WAN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == REFUSED, done.stderr
    assert tables(netns) == ""


@pytest.mark.uml
def test_an_operator_in_a_vrf(netns: Namespace, tmp_path: Path) -> None:
    """Who comes in by a VRF is answered by its table, whatever the main one says."""
    needs_link_type(netns, "vrf")
    router = Router(tmp_path)
    netns.veth("lan0", "far0", f"{ROUTER}/24")
    netns.ip("link add blue type vrf table 500")
    netns.ip("link set blue up")
    netns.ip("link set lan0 master blue")
    hole = "{{destination: {}/32, type: blackhole, table: {}}}"
    main, blue = ({"IPv4Route/hole": hole.format(CLIENT, table)} for table in (254, 500))
    code, said = router.run("apply", main, FROM_LAN)
    assert code == 0, said
    code, said = router.run("apply", blue, FROM_LAN)
    assert code == REFUSED, said
    now = f"answers go `{CLIENT} from {ROUTER} dev lan0` now, and `blackhole {CLIENT}"
    assert now in said
