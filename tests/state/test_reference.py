"""Ledgers written by the reference system."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import ClaimState, Provenance
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.rule import rule
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.errors import LedgerError
from holdfast.state.ledger import Ledger


def _entry(kind: str, name: str, owner: str = "Interface/lan", **attributes: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "owner": f"net.routerd.net/v1alpha1/{owner}",
        "attributes": attributes,
    }


def _ledger(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "updatedAt": "2026-05-01T10:00:00Z", "artifacts": list(entries)}


@pytest.mark.parametrize(
    ("entry", "artifact"),
    [
        (_entry("linux.link", "eth0.10"), link("eth0.10", {})),
        (
            _entry("linux.ipv4.address", "eth0:192.0.2.1/24"),
            address(ipaddress.ip_interface("192.0.2.1/24"), "eth0"),
        ),
        (
            _entry("linux.ipv6.address", "eth0.10:2001:db8::1/64"),
            address(ipaddress.ip_interface("2001:db8::1/64"), "eth0.10"),
        ),
        (
            _entry("linux.sysctl", "net.ipv4.ip_forward", value="1"),
            sysctl("net.ipv4.ip_forward", "1"),
        ),
        (_entry("linux.hostname", "system", hostname="edge1"), hostname("edge1")),
        (
            _entry("linux.ipv4.fwmarkRule", "priority=10100,mark=0x100,table=100"),
            rule(4, 10100, fwmark=0x100, table=100),
        ),
        (_entry("linux.ipip6.tunnel", "ds0"), link("ds0", {"type": "ip6tnl"})),
        (_entry("nft.table", "routerd_nat"), Artifact(Key("nft", "ip routerd_nat"), {})),
        (_entry("nft.table", "mine", family="ip6"), Artifact(Key("nft", "ip6 mine"), {})),
        (_entry("nft.table", "inet/routerd_x"), Artifact(Key("nft", "inet routerd_x"), {})),
    ],
)
def test_what_holdfast_knows_becomes_an_adopted_claim(
    ledger: Ledger, entry: dict[str, Any], artifact: Artifact
) -> None:
    summary = ledger.import_(_ledger(entry))
    assert summary.unmapped == ()
    (claim,) = ledger.claims().values()
    assert claim.key == artifact.key
    assert claim.fields == artifact.fields
    assert (claim.provenance, claim.state) == (Provenance.ADOPTED, ClaimState.OWNED)
    assert claim.owners == ("Interface/lan",)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (_entry("nft.table", "mine"), "its family was not recorded"),
        (_entry("nft.table", "bridge/routerd_nat"), "its family was not recorded"),
        (_entry("systemd.service", "routerd-dnsmasq.service"), "systemctl disable --now"),
        (_entry("systemd.service", "dnsmasq.service"), "not named routerd-*.service"),
        (_entry("systemd.service", "routerd-a/b.service"), "not named routerd-*.service"),
        (_entry("systemd.service", "routerd-.service"), "not named routerd-*.service"),
        (_entry("systemd.service", "routerd-x.timer"), "not named routerd-*.service"),
        (_entry("dnsmasq.config", "routerd"), "no artifact of this kind"),
        (_entry("linux.ipv4.routeTable", "table=100", table="100"), "names a whole table"),
        (_entry("file", "/etc/ppp/chap-secrets"), "content it had was not recorded"),
        (_entry("linux.sysctl", "net.ipv4.conf.all.rp_filter"), "its value was not recorded"),
        (_entry("linux.ipv6.address", "eth0:::3"), "full address"),
        (_entry("linux.ipv4.address", "192.0.2.1/24"), "names no link"),
        (_entry("linux.ipv4.address", "eth0:2001:db8::1/64"), "not an IPv4 address"),
        (_entry("linux.ipv4.address", "eth0:192.0.2/24"), "192.0.2/24"),
        (_entry("linux.ipv4.fwmarkRule", "priority=1,mark=0x100/0xff00,table=1"), "not written"),
    ],
)
def test_what_cannot_be_mapped_is_listed_with_why(
    ledger: Ledger, entry: dict[str, Any], reason: str
) -> None:
    summary = ledger.import_(_ledger(entry, _entry("linux.link", "eth0")))
    assert len(summary.added) == 1
    (left,) = summary.unmapped
    assert (left.kind, left.name) == (entry["kind"], entry["name"])
    assert reason in left.reason


def test_a_unit_of_its_is_claimed_by_its_file(ledger: Ledger) -> None:
    seen = Artifact(Key("unit", "routerd-dnsmasq.service"), {"sha256": "ab"})
    asked: list[str] = []

    def unit(name: str) -> Artifact:
        asked.append(name)
        return seen

    entries = [
        _entry("systemd.service", "routerd-dnsmasq.service", "IPv4DHCPServer/lan"),
        _entry("systemd.service", "dnsmasq.service"),
    ]
    summary = ledger.import_(_ledger(*entries), epoch="boot/1", unit=unit)
    assert [one.name for one in summary.unmapped] == ["dnsmasq.service"]
    assert asked == ["routerd-dnsmasq.service"]
    (claim,) = ledger.claims().values()
    assert (claim.key, claim.fields) == (seen.key, seen.fields)
    assert (claim.provenance, claim.state) == (Provenance.ADOPTED, ClaimState.OWNED)
    assert claim.owners == ("IPv4DHCPServer/lan",)
    assert claim.epoch == "", "it outlives a boot"


def test_why_a_unit_cannot_be_claimed_is_told(ledger: Ledger) -> None:
    def unit(_name: str) -> Artifact:
        raise ValueError("it is a symbolic link")

    entry = _entry("systemd.service", "routerd-dnsmasq.service")
    summary = ledger.import_(_ledger(entry), unit=unit)
    assert ledger.claims() == {}
    assert [one.reason for one in summary.unmapped] == ["it is a symbolic link"]


def test_two_entries_for_one_object_have_both_owners(ledger: Ledger) -> None:
    ledger.import_(
        _ledger(
            _entry("linux.ipv4.fwmarkRule", "priority=1,mark=0x100,table=1", "A/x"),
            _entry("linux.ipv4.fwmarkRule", "priority=1,mark=256,table=1", "B/y"),
        )
    )
    (claim,) = ledger.claims().values()
    assert claim.owners == ("A/x", "B/y")


def test_two_entries_that_contradict_are_both_left_out(ledger: Ledger) -> None:
    summary = ledger.import_(
        _ledger(
            _entry("linux.sysctl", "net.ipv4.ip_forward", value="1"),
            _entry("linux.sysctl", "net.ipv4.ip_forward", value="0"),
        )
    )
    assert ledger.claims() == {}
    assert [left.reason for left in summary.unmapped] == ["recorded twice, with other values"] * 2


def test_another_version_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="version: Input should be 1"):
        ledger.import_({"version": 2, "artifacts": []})
    with pytest.raises(LedgerError, match=r"artifacts\[0\]\.owner: Field required"):
        ledger.import_({"version": 1, "artifacts": [{"kind": "linux.link", "name": "a"}]})
