"""What a change costs: a reload where that is enough, a restart where it is needed, leases kept."""

from __future__ import annotations

import os
import signal
import subprocess
from ipaddress import IPv4Address
from typing import Any

import pytest

from holdfast.resources.facts import GONE, Facts, Lease
from holdfast.resources.lan import dnsmasq_conf
from tests.lan.network import Scene, name_server, until
from tests.lan.test_serving import LAN, MAC, UPSTREAM

HOSTS = "/etc/holdfast/dnsmasq/ipv4-lan.hosts"
LEASES = "/var/lib/holdfast/dnsmasq.leases"


def reserved(address: str) -> dict[str, dict[str, Any]]:
    return {"IPv4DHCPReservation/nas": {"scope": "lan", "mac": MAC, "address": address}}


def answer(*words: str) -> str:
    """Empty where it does not listen yet."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def learned(server: str) -> Facts:
    return Facts(leases4={"wan0": Lease(dns=(IPv4Address(server),))})


def test_another_reservation_is_a_reload(router: Scene) -> None:
    client = router.host("c0", "lan0", MAC)
    router.converge(LAN | reserved("192.168.1.20"))
    pid = router.pid
    assert client.dhcp(4)["new_ip_address"] == "192.168.1.20"
    report = router.converge(LAN | reserved("192.168.1.21"))
    changed = {str(op.subject.key) for op in report.before.changes}  # type: ignore[union-attr]
    assert changed == {f"file {HOSTS}", "service dnsmasq"}
    assert router.pid == pid
    assert MAC in router.read(LEASES)
    until(lambda: client.dhcp(4)["new_ip_address"] == "192.168.1.21", "the new address")
    report = router.converge(LAN)
    assert router.pid == pid
    until(lambda: client.dhcp(4)["new_ip_address"] != "192.168.1.21", "nothing is kept for it")


def test_leases_outlive_a_restart(router: Scene) -> None:
    client = router.host("c0", "lan0")
    router.converge(LAN)
    pid = router.pid
    address = client.dhcp(4, "hostname laptop")["new_ip_address"]
    dns = {"upstreamSource": "none", "cacheSize": 50}
    router.converge(LAN | {"IPv4DHCPServer/lan": {"listenInterfaces": ["lan"], "dns": dns}})
    assert router.pid != pid
    # Only the lease has that name.
    named = until(lambda: answer("dig", "+short", "@127.0.0.1", "laptop"), "it answers again")
    assert named == address


def test_what_others_undo_is_done_again(router: Scene) -> None:
    router.host("c0", "lan0")
    everything = LAN | reserved("192.168.1.20")
    router.converge(everything)
    router.paths.under(HOSTS).write_text("02:00:00:00:00:66,192.168.1.66\n")
    router.converge(everything)
    assert "192.168.1.20" in router.read(HOSTS)
    assert "192.168.1.66" not in router.read(HOSTS)
    router.paths.under("/etc/holdfast/dnsmasq.conf").unlink()
    pid = router.pid
    os.kill(pid, signal.SIGKILL)
    router.converge(everything)
    until(lambda: set(router.pids()) - {pid}, "dnsmasq runs again")


def test_a_configuration_dnsmasq_would_not_take_changes_nothing(
    router: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = router.host("c0", "lan0", MAC)
    router.converge(LAN)
    pid, before = router.pid, router.read("/etc/holdfast/dnsmasq.conf")
    monkeypatch.setattr(dnsmasq_conf, "HEAD", "# changed\nno-such-word\n")
    report = router.apply(LAN | reserved("192.168.1.20"))
    assert any("would not take it" in failure.error for _, failure in report.failures)
    untried = [failure.error for op, failure in report.failures if op.kind == "service"]
    assert set(untried) == {"not tried, because file /etc/holdfast/dnsmasq.conf failed"}
    assert router.read("/etc/holdfast/dnsmasq.conf") == before
    assert router.pid == pid
    assert client.dhcp(4)["new_routers"] == "192.168.1.1"


def test_everything_goes_but_the_leases(router: Scene) -> None:
    client = router.host("c0", "lan0", MAC)
    router.converge(LAN | reserved("192.168.1.20"))
    client.dhcp(4)
    kept = {name: spec for name, spec in LAN.items() if "DHCP" not in name}
    router.converge(kept)
    left = [path for path in router.paths.under("/etc/holdfast").rglob("*") if path.is_file()]
    assert left == []
    assert router.netns.run("ss", "-lnuH") == ""
    assert "192.168.1.20" in router.read(LEASES)


def test_a_scope_alone_goes(router: Scene) -> None:
    router.host("c0", "lan0")
    guests: dict[str, dict[str, Any]] = {
        "IPv4StaticAddress/guests": {"interface": "lan", "address": "10.9.0.1/24"},
        "IPv4DHCPScope/guests": {
            "server": "lan", "interface": "lan",
            "rangeStart": "10.9.0.10", "rangeEnd": "10.9.0.99",
        },
    }  # fmt: skip
    router.converge(LAN | guests)
    assert "10.9.0.1" in router.read("/etc/holdfast/dnsmasq/ipv4-guests.router")
    router.converge(LAN)
    left = sorted(path.name for path in router.paths.under("/etc/holdfast/dnsmasq").iterdir())
    assert left == ["ipv4-lan.dns", "ipv4-lan.hosts", "ipv4-lan.router", "servers"]


def test_upstream_servers_come_and_go_without_a_signal(router: Scene) -> None:
    client = router.host("c0", "lan0")
    client.ip("addr add 192.168.1.50/24 dev c0")
    isp = router.host("isp0", "wan0")
    isp.ip("addr add 203.0.113.7/24 dev isp0")
    everything = LAN | UPSTREAM
    router.converge(everything, learned("203.0.113.1"))
    pid = router.pid
    report = router.converge(everything, learned("203.0.113.7"))
    changed = {str(op.subject.key) for op in report.before.changes}  # type: ignore[union-attr]
    assert changed == {"file /etc/holdfast/dnsmasq/upstream"}
    with name_server(isp, "www.example", "198.51.100.8"):
        until(
            lambda: client.dig("192.168.1.1", "www.example") == "198.51.100.8",
            "the new server is asked",
        )
    # Unknown is not gone: after a restart of the machine the servers known last are asked.
    router.converge(everything)
    assert "203.0.113.7" in router.read("/etc/holdfast/dnsmasq/upstream")
    router.converge(everything, Facts(leases4={"wan0": GONE}))
    assert "nameserver" not in router.read("/etc/holdfast/dnsmasq/upstream")
    assert router.pid == pid
