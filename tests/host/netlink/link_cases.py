"""Links of every type, with every field that the type has."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, Value
from holdfast.engine.kinds.link import link
from holdfast.host.netlink.links.driver import LinkDriver
from tests.host.netlink.drive import create, run
from tests.lanes import covered_elsewhere, needs_link_type
from tests.namespace import Namespace

NONCE = "1234567890"
MAC = "02:00:00:00:00:42"

# Every field of every type, so that the round trip covers the whole codec.
DECLARED: dict[str, list[dict[str, Value]]] = {
    "bridge": [{"stp": True}, {"stp": True, "vlan_filtering": True}, {"stp": False}],
    "vlan": [
        {"parent": "lan", "vlan_id": 42, "vlan_protocol": "802.1q"},
        {"parent": "lan", "vlan_id": 43, "vlan_protocol": "802.1ad"},
    ],
    "vxlan": [
        {
            "vni": 7,
            "local": "10.0.0.1",
            "remote": "10.0.0.2",
            "port": 4789,
            "parent": "lan",
            "learning": True,
        },
        {
            "vni": 8,
            "local": "fd00::1",
            "remote": "fd00::2",
            "port": 4790,
            "parent": "",
            "learning": False,
        },
        {"vni": 9, "local": "", "remote": "", "port": 4791, "parent": "", "learning": False},
    ],
    "vrf": [{"table": 1000}],
    "dummy": [{}],
    "veth": [{"peer": "made1"}],
    "bond": [
        {"mode": mode, "miimon": 100}
        for mode in ("active-backup", "balance-rr", "802.3ad", "balance-alb")
    ],
    "macvlan": [
        {"parent": "lan", "mode": mode} for mode in ("private", "vepa", "bridge", "passthru")
    ],
    "ip6tnl": [
        {
            "local": "2001:db8::1",
            "remote": "2001:db8::2",
            "parent": "lan",
            "mode": "ipip6",
            "encap_limit": "none",
            "hop_limit": 64,
        },
        {
            "local": "fe80::1",
            "remote": "fe80::2",
            "parent": "lan",
            "mode": "ip6ip6",
            "encap_limit": "4",
            "hop_limit": 255,
        },
        {
            "local": "",
            "remote": "2001:db8::3",
            "parent": "",
            "mode": "any",
            "encap_limit": "0",
            "hop_limit": 0,
        },
    ],
}


def make(driver: LinkDriver, artifact: Artifact, nonce: str = NONCE) -> None:
    """Create a link, or say who else can: the running kernel may lack its type."""
    needs_link_type(Namespace(), str(artifact.fields["type"]))
    (result,) = run(driver, create(artifact, nonce))
    if "vlan_filtering" in artifact.fields and "(ENOTSUP)" in str(result.failures):
        covered_elsewhere("uml", "the bridges of this kernel know no VLANs")
    assert result.failures == ()


def needs_bridge_vlans(driver: LinkDriver) -> None:
    """A bridge that knows none can be made all the same, as long as none are asked of it."""
    probe = link("vlans0", {"type": "bridge", "vlan_filtering": True})
    make(driver, probe)
    Namespace().ip("link del vlans0")


def first(kind: str, **more: Value) -> Artifact:
    return link("made0", {"type": kind, **DECLARED[kind][0], **more})
