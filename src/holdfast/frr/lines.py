"""What is said to bgpd so that it becomes what is declared: FRR's lines, each in its place.

Maps come first, all in one batch, as bgpd works out what they change once a batch ends; within it
no `exit`, which costs 8.4 thirty times as long. A map is called by its content and never edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Fields, Value
from holdfast.engine.kinds.bgp_attributes import Attributes
from holdfast.engine.kinds.bgp_instance import LISTEN_LIMIT, RESTART_TIME, STALE_PATH_TIME
from holdfast.frr.commands import Line, line, word
from holdfast.frr.running_config import Bgp

BATCH = ("XFRR_start_configuration",)
BATCH_END = "XFRR_end_configuration"


@dataclass(frozen=True, slots=True)
class Step:
    """One line below the lines of its path; an empty path is `configure terminal` itself."""

    path: tuple[str, ...]
    line: Line


def golden(steps: Iterable[Step]) -> list[str]:
    """The steps as one would type them, each path once; without secrets."""
    typed: list[str] = []
    inside: tuple[str, ...] = ()
    for step in steps:
        if step.path != inside:
            typed += (f"{' ' * depth}{head}" for depth, head in enumerate(step.path))
            inside = step.path
        typed.append(f"{' ' * len(step.path)}{step.line}")
    return typed


_SWITCHES = {
    "log_neighbor_changes": "bgp log-neighbor-changes",
    "ebgp_requires_policy": "bgp ebgp-requires-policy",
    "network_import_check": "bgp network import-check",
    "multipath_relax": "bgp bestpath as-path multipath-relax",
    "graceful_shutdown": "bgp graceful-shutdown",
    "graceful_restart": "bgp graceful-restart",
}
_NUMBERS = {
    "restart_time": ("bgp graceful-restart restart-time", RESTART_TIME),
    "stale_path_time": ("bgp graceful-restart stalepath-time", STALE_PATH_TIME),
    "listen_limit": ("bgp listen limit", LISTEN_LIMIT),
}


def instance_fields(told: Bgp, datacenter: bool) -> dict[str, Value]:
    """What is in force, with or without a line.

    datacenter: `frr defaults datacenter`, which turns some of it round.
    """
    lines = set(told.lines)
    found: dict[str, Value] = {
        "local_as": int(told.local_as) if told.local_as.isdigit() else told.local_as,
        "router_id": None,
    }
    unsaid = {
        "log_neighbor_changes": datacenter,
        "ebgp_requires_policy": not datacenter,
        "network_import_check": not datacenter,
    }
    for name, said in _SWITCHES.items():
        found[name] = said in lines or (f"no {said}" not in lines and unsaid.get(name, False))
    for name, (_, number) in _NUMBERS.items():
        found[name] = number
    for said in told.lines:
        head, _, last = said.rpartition(" ")
        if head == "bgp router-id":
            found["router_id"] = last
        for name, (start, _) in _NUMBERS.items():
            if head == start and last.isdigit():
                found[name] = int(last)
    return found


_KNOWN = (*_SWITCHES.values(), *(start for start, _ in _NUMBERS.values()), "bgp router-id")


def others_lines(told: Bgp) -> list[str]:
    """The lines of an instance that no field of ours stands for."""
    plain = (said.removeprefix("no ") for said in told.lines)
    own = [said for said in plain if not said.startswith(_KNOWN)]
    for name, family in told.families.items():
        own += (f"{name}: {said}" for said in family.others)
    return own


def instance_lines(old: Fields, new: Fields) -> list[Line]:
    """old: empty for one that is to be made."""
    found = []
    if new.get("router_id") != old.get("router_id"):
        said = new.get("router_id")
        found.append(line(f"bgp router-id {word(said)}" if said else "no bgp router-id"))
    for name, said in _SWITCHES.items():
        if name in new and new[name] != old.get(
            name, None if name != "graceful_restart" else False
        ):
            found.append(line(said if new[name] else f"no {said}"))
    for name, (said, number) in _NUMBERS.items():
        if name in new and new[name] != old.get(name, number):
            found.append(line(f"{said} {new[name]}"))
    return found


def map_lines(attributes: Attributes) -> list[Line]:
    """The map that gives these attributes, as it is made."""
    head = f"route-map {attributes.map_name} permit 10"
    return [line(head), *(line(said) for said in attributes.lines())]


def network(prefix: str, name: str) -> Line:
    """Prefix and name are ours: nothing of them needs to be looked at, 10 000 times."""
    return Line(f"network {prefix} route-map {name}")


def no_network(prefix: str) -> Line:
    return Line(f"no network {prefix}")


def aggregate(prefix: str, fields: Fields, name: str) -> Line:
    words = [f"aggregate-address {word(prefix)}"]
    words += ["as-set"] if fields.get("as_set") else []
    words += ["summary-only"] if fields.get("summary_only") else []
    return line(f"{' '.join(words)} route-map {word(name)}")


def filter_lines(lines: Sequence[str]) -> list[Line]:
    return [line(said) for said in lines]


def no_filter(name: str, lines: Sequence[str]) -> list[Line]:
    """The map first: it asks the lists."""
    found = [line(f"no route-map {word(name)}")] if any(map(_is_map, lines)) else []
    return [*found, *(line(f"no {said}") for said in lines if _is_list(said))]


def _is_map(said: str) -> bool:
    return said.startswith("route-map ")


def _is_list(said: str) -> bool:
    return said.startswith(("ip prefix-list ", "ipv6 prefix-list ", "bgp "))
