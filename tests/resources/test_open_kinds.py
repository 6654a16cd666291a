"""What other sources than the startup file may declare: by its effect, the network alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config.part import Part
from holdfast.dataclass import replace
from holdfast.engine.intent import Intent
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic import contribution, effective
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.resources.router import Router
from holdfast.resources.spec.reference import artifact_kind
from holdfast.resources.spec.shape import Entry, Spec
from tests.resources.parts import NOW, admitting, part, raw
from tests.resources.routers import load
from tests.resources.surroundings import everything_known, surrounded

# Artifacts that are nothing but the network; of a `sysctl` the name is looked at, too.
_NETWORK = {
    "link", "address", "route", "rule", "neighbour", "nft", "sysctl",
    "bgp_instance", "bgp_peer_group", "bgp_peer", "bgp_network", "bgp_aggregate", "bgp_filter",
    "bfd_profile", "bfd_peer", "ospf_instance", "ospf_interface", "ospf_prefix",
}  # fmt: skip
# Fields that only the startup file may use, as a part that names a file is refused.
_REFUSED = {"passwordFile"}
_OPEN = [name for name in registry.names() if registry.kind(name).open_to_others]
_LIMITED = {"Sysctl": {"file"}, "PathMTUPolicy": {"file", "service"}}
_OUTSIDE = [
    ("kernel.core_pattern", "|/opt/x"),
    ("kernel.modprobe", "/opt/x"),
    ("kernel.hotplug", "/opt/x"),
    ("kernel.sysrq", "1"),
    ("kernel.unprivileged_bpf_disabled", "0"),
    ("fs.suid_dumpable", "2"),
    ("fs.protected_symlinks", "0"),
    ("vm.overcommit_memory", "2"),
    ("user.max_user_namespaces", "10000"),
    ("dev.cdrom.autoclose", "1"),
    ("abi.vsyscall32", "1"),
    ("net", "1"),
    ("net.core.bpf_jit_harden", "0"),
    ("net.core.default_qdisc", "fq"),
    ("net.core.default_qdisc", "1"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
    ("net.ipv4.ip_unprivileged_port_start", "0"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv6.conf.all.stable_secret", "2001:db8::1"),
    ("net.ipv4.conf.all.rp_filter", "1\rkernel.sysrq = 1"),
    ("net.ipv4.conf/../../kernel.core_pattern", "1"),
    ("net/../kernel/core_pattern", "1"),
    ("net.ipv4...kernel.core_pattern", "1"),
    ("net.ipv4.conf.all.rp_filter.", "1"),
    (".net.ipv4.conf.all.rp_filter", "1"),
    ("net.unix.max_dgram_qlen", "1"),
    ("Net.ipv4.ip_forward", "1"),
]
_EVERYTHING = {"sysctls": [{"source": "Owner/ci", "keys": ["net.*"]}]}


def _entries(spec: type[Spec]) -> Iterator[Entry]:
    for entry in spec.entries:
        yield entry
        if entry.shape.nested is not None:
            yield from _entries(entry.shape.nested)


def _rejected(startup: Router, given: Part) -> str:
    merged = effective.merge(startup, [given], NOW)
    assert merged.router is startup
    (one,) = merged.rejected
    return "; ".join(one.reasons)


@pytest.mark.parametrize("name", _OPEN)
def test_an_open_kind_leads_to_the_network_alone(name: str) -> None:
    kind = registry.kind(name)
    assert set(kind.emits) - _LIMITED.get(name, set()) <= _NETWORK
    named = [entry.name for entry in _entries(kind.spec)]
    assert not [one for one in named if one.endswith("File") and one not in _REFUSED]


@pytest.mark.parametrize("name", list(registry.names()))
def test_the_example_of_a_kind_in_a_part(name: str, tmp_path: Path) -> None:
    """Whatever a part brings, nothing but the network comes of it."""
    whole = surrounded(name)
    *around, one = whole["spec"]["resources"]
    given = contribution.read(part("Owner/ci", *around, one), 0)
    if name not in _OPEN:
        assert f"kind: a {name} can stand in the startup file alone" in str(given.problems[-1])
        assert not given.resources
        return
    if given.problems:  # its surroundings, or what its kind limits
        assert name == "Sysctl" or "startup file alone" in str(given.problems[0])
        return
    router = replace(load(tmp_path), resources=given.resources)
    for facts in (NOTHING_KNOWN, everything_known(router)):
        for intent in compile_router(router, facts, str(tmp_path)).intents:
            assert artifact_kind(intent) in _NETWORK
            if isinstance(intent, Intent) and intent.artifact.key.kind == "sysctl":
                assert intent.artifact.key.name.startswith("net.")


@pytest.mark.parametrize(("key", "value"), _OUTSIDE)
def test_a_setting_outside_the_network(key: str, value: str, tmp_path: Path) -> None:
    """Not even where a policy says `net.*`."""
    startup = load(tmp_path, admitting(), ("DynamicOverridePolicy", "all", _EVERYTHING))
    given = part("Owner/ci", raw("Sysctl", "x", {"key": key, "value": value}))
    assert "resources[0]: spec." in _rejected(startup, given)


def test_a_setting_that_is_kept_in_a_file(tmp_path: Path) -> None:
    startup = load(tmp_path, admitting(), ("DynamicOverridePolicy", "all", _EVERYTHING))
    spec = {"key": "net.ipv4.ip_forward", "value": "1", "persistent": True}
    said = _rejected(startup, part("Owner/ci", raw("Sysctl", "x", spec)))
    assert "spec.persistent: writes a file" in said


@pytest.mark.parametrize(
    ("source", "keys", "allowed"),
    [
        ("Owner/ci", ["net.ipv4.conf.*.rp_filter"], True),
        ("Owner/ci", ["net.ipv4.conf.eth0.rp_filter"], True),
        ("Owner/ci", ["net.ipv4.ip_forward", "net.*"], True),
        ("Owner/ci", ["net.ipv4.conf.*.rp_filte"], False),
        ("Owner/ci", ["net.ipv4.conf.eth1.rp_filter"], False),
        ("Owner/ci", ["net.ipv4.conf.eth0-rp_filter"], False),
        ("Owner/other", ["net.*"], False),
        ("Plugin/ci", ["net.*"], False),
    ],
)
def test_a_setting_of_the_network_needs_a_policy(
    source: str, keys: list[str], allowed: bool, tmp_path: Path
) -> None:
    spec = {"sysctls": [{"source": source, "keys": keys}]}
    startup = load(tmp_path, admitting(), ("DynamicOverridePolicy", "some", spec))
    sysctl = raw("Sysctl", "x", {"key": "net.ipv4.conf.eth0.rp_filter", "value": 2})
    given = part("Owner/ci", sysctl)
    if allowed:
        merged = effective.merge(startup, [given], NOW)
        assert [one.id for one in merged.added] == ["Sysctl/x"]
    else:
        said = _rejected(startup, given)
        assert (
            "no DynamicOverridePolicy allows Owner/ci to set net.ipv4.conf.eth0.rp_filter" in said
        )


def test_a_path_mtu_policy_that_would_change_advertisements(tmp_path: Path) -> None:
    spec = {
        "fromInterface": "lan",
        "toInterfaces": ["wan"],
        "ipv6RA": {"enabled": True, "scope": "lan"},
    }
    said = _rejected(load(tmp_path, admitting()), part("Owner/ci", raw("PathMTUPolicy", "x", spec)))
    assert "spec.ipv6RA.enabled: leads to a program and its file" in said


@pytest.mark.parametrize("kind", ["BGPPeer", "BGPPeerGroup"])
def test_a_password_file_of_another_source(kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of root\n")
    spec = {"remoteAS": 65000, "passwordFile": str(secret)}
    spec |= {"address": "192.0.2.1"} if kind == "BGPPeer" else {}
    given = contribution.read(part("Owner/ci", raw(kind, "a", spec)), 0)
    assert "a part cannot name files" in str(given.problems[0])
    assert "of root" not in str(given.problems)
