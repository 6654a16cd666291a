"""Kernel settings under /proc/sys."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, Naming, PartialLook, in_words
from holdfast.engine.plan import Operation, Risk

UNSET = ""  # of a setting that has no value before it is given one, and cannot be without one after

# Settings of the network that a router forwards by, and those that keep out what is forged; of a
# link, of all links, or of the whole kernel.
_URGENT = {
    **dict.fromkeys(
        ("ip_forward", "forwarding", "mc_forwarding", "proxy_arp", "proxy_arp_pvlan", "proxy_ndp"),
        "forwarding",
    ),
    **dict.fromkeys(
        (
            "rp_filter", "src_valid_mark", "accept_source_route", "accept_local",
            "accept_redirects", "secure_redirects", "route_localnet", "arp_filter", "arp_ignore",
            "arp_announce", "drop_gratuitous_arp", "tcp_syncookies",
        ),
        "which packets are let in",
    ),
    **dict.fromkeys(
        (
            "disable_ipv6", "accept_ra", "accept_ra_defrtr", "accept_ra_pinfo",
            "accept_ra_min_hop_limit", "accept_ra_rt_info_max_plen", "autoconf",
        ),
        "IPv6",
    ),
}  # fmt: skip


def urgent(artifact: Artifact, _operation: Operation) -> str:
    name = artifact.key.name
    return _URGENT.get(name.rpartition(".")[2], "") if name.startswith("net.") else ""


SYSCTL = ArtifactKind(
    name="sysctl",
    identity="key, with dots",
    fields=("value",),
    proof="a claim that remembers the value before",
    cleanup="never deleted: it is a value of the running kernel, not an object of its own",
    deletes_orphans=False,
    after=("link",),
    setting=True,
    urgent=urgent,
    risk=lambda *_operation: (Risk.MEDIUM, "changes how packets are treated at once"),
    partial_look=PartialLook.ONE,
    seen_by_name=True,
    shown=lambda name, fields: ["sysctl", name, "=", in_words(fields.get("value"))],
    naming=Naming(guessed=lambda _word: True),
    restores=lambda before: before["value"] != UNSET,
    matches=lambda _field, desired, seen: str(desired).split() == str(seen).split(),
)


def sysctl(key: str, value: str) -> Artifact:
    return Artifact(Key(SYSCTL.name, key), {"value": value})
