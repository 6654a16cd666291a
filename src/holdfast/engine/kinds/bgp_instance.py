"""BGP itself, once for each VRF: `router bgp 65001 vrf red`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key, Value
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

DEFAULT_VRF = "default"

# What FRR takes where nothing is said (`frr defaults traditional`).
RESTART_TIME = 120
STALE_PATH_TIME = 360
LISTEN_LIMIT = 100

_RESETS = ("local_as", "router_id", "graceful_restart")


def _interrupts(operation: Operation) -> str:
    if operation.verb is Verb.DELETE:
        return "ends all its sessions"
    changed = {change.field for change in operation.changes}
    return "resets all its sessions" if changed & set(_RESETS) else ""


def _risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.HIGH, "all its sessions end, and what was learned by them is forgotten"
    if any(change.field in _RESETS for change in changes):
        return Risk.HIGH, "all its sessions are reset"
    if any(change.field == "graceful_shutdown" for change in changes):
        return Risk.MEDIUM, "neighbours prefer, or no longer prefer, other ways"
    return Risk.LOW, ""


def _shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    """As FRR says it."""
    words = ["router", "bgp", str(fields.get("local_as", ""))]
    return words if name == DEFAULT_VRF else [*words, "vrf", name]


BGP_INSTANCE = ArtifactKind(
    name="bgp_instance",
    identity="VRF, or `default`",
    fields=(
        "local_as", "router_id", "log_neighbor_changes", "ebgp_requires_policy",
        "network_import_check", "multipath_relax", "graceful_restart", "restart_time",
        "stale_path_time", "graceful_shutdown", "listen_limit",
    ),
    proof="a claim. FRR has no place for a tag on it",
    cleanup="deleted when claimed, while nothing of others is in it: no neighbour, network,"
    " aggregate or line that Holdfast does not own",
    deletes_orphans=True,
    # FRR has one AS number for as long as an instance lives.
    immutable=lambda _seen, field, _desired: field == "local_as",
    # A VRF is a link.
    after=("link", "address"),
    vital=lambda instance: f"BGP in VRF {instance.key.name}",
    urgent=lambda instance, _operation: f"BGP in VRF {instance.key.name}",
    interrupts=_interrupts,
    risk=_risk,
    survives_reboot=True,
    needs_program=True,
    shown=_shown,
)  # fmt: skip


def instance_key(vrf: str = DEFAULT_VRF) -> Key:
    return Key(BGP_INSTANCE.name, vrf)


def in_vrf(name: str, vrf: str) -> str:
    """The name of what is in a VRF: `192.0.2.1`, `192.0.2.1 vrf red`."""
    return name if vrf == DEFAULT_VRF else f"{name} vrf {vrf}"


def name_and_vrf(text: str) -> tuple[str, str]:
    """The inverse of `in_vrf`."""
    name, _, vrf = text.partition(" vrf ")
    return name, vrf or DEFAULT_VRF


def bgp_instance(
    local_as: int,
    *,
    vrf: str = DEFAULT_VRF,
    router_id: str | None = None,
    log_neighbor_changes: bool = True,
    ebgp_requires_policy: bool = False,
    network_import_check: bool = False,
    multipath_relax: bool = False,
    graceful_restart: bool = False,
    restart_time: int = RESTART_TIME,
    stale_path_time: int = STALE_PATH_TIME,
    graceful_shutdown: bool = False,
    listen_limit: int = LISTEN_LIMIT,
) -> Artifact:
    """`router bgp LOCAL_AS [vrf VRF]` and the lines below it that hold for all of it.

    Every field holds what is in force, so that one stands for a missing line, too, whatever
    `frr defaults` says:

    | field | lines | without a line |
    |-------|-------|----------------|
    | local_as | the number in `router bgp` | |
    | router_id | `bgp router-id A`; None: none, FRR chooses | None |
    | log_neighbor_changes | `[no] bgp log-neighbor-changes` | off; datacenter: on |
    | ebgp_requires_policy | `[no] bgp ebgp-requires-policy` | on; datacenter: off |
    | network_import_check | `[no] bgp network import-check` | on; datacenter: off |
    | multipath_relax | `bgp bestpath as-path multipath-relax` | off |
    | graceful_restart | `bgp graceful-restart` | off |
    | restart_time | `bgp graceful-restart restart-time N` | 120 |
    | stale_path_time | `bgp graceful-restart stalepath-time N` | 360 |
    | graceful_shutdown | `bgp graceful-shutdown` | off |
    | listen_limit | `bgp listen limit N` | 100 |

    Other lines are not looked at, and stay. An update resets all sessions where `interrupts` says
    so. On 8.4 `graceful_restart` alone resets none: it holds from the next session on.
    """
    fields: dict[str, Value] = {
        "local_as": local_as,
        "router_id": router_id,
        "log_neighbor_changes": log_neighbor_changes,
        "ebgp_requires_policy": ebgp_requires_policy,
        "network_import_check": network_import_check,
        "multipath_relax": multipath_relax,
        "graceful_restart": graceful_restart,
        "restart_time": restart_time,
        "stale_path_time": stale_path_time,
        "graceful_shutdown": graceful_shutdown,
        "listen_limit": listen_limit,
    }
    return Artifact(instance_key(vrf), fields)
