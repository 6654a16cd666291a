"""DNS answers, kept for as long as the servers allow, and longer while none can be had.

That nobody answers says nothing of a name: the last answer stands until there is another.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from holdfast.config import regular_file
from holdfast.dataclass import dataclass
from holdfast.host.facts import clock
from holdfast.paths import Paths
from holdfast.resources.facts import Address, Lookup

FILE = "/run/holdfast/facts/dns.json"
# A pass every half minute should not ask every time, nor a name stay for ever.
_SHORTEST_S, _LONGEST_S = 30, 86400


@dataclass(frozen=True, slots=True)
class _Kept:
    addresses: tuple[Address, ...]
    boot: str
    until: float  # seconds after boot


def read_answers(
    paths: Paths, lookups: Sequence[Lookup], troubles: list[str]
) -> Mapping[Lookup, tuple[Address, ...]]:
    path = paths.under(FILE)
    kept = _load(path)
    boot, now = clock.boot_id(), clock.uptime()
    due = [
        lookup
        for lookup in lookups
        if lookup not in kept or kept[lookup].boot != boot or kept[lookup].until <= now
    ]
    if due:
        from holdfast.host.facts import dns  # few passes ask

        answers, failures = dns.ask(due, dns.system_servers(paths))
        for lookup, answer in answers.items():
            ttl = min(max(answer.ttl, _SHORTEST_S), _LONGEST_S)
            kept[lookup] = _Kept(answer.addresses, boot, now + ttl)
        for failure in failures:
            stands = "; the last answer stands" if failure.lookup in kept else ""
            what = f"{failure.lookup.name} could not be looked up: {failure.reason}"
            troubles.append(what + stands)
        if answers:
            _store(path, {lookup: kept[lookup] for lookup in lookups if lookup in kept})
    return {lookup: kept[lookup].addresses for lookup in lookups if lookup in kept}


def _load(path: Path) -> dict[Lookup, _Kept]:
    try:
        said = json.loads(regular_file.read(path))
        return dict(_entry(one) for one in said["answers"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}  # it will be asked for again


def _entry(said: Any) -> tuple[Lookup, _Kept]:
    lookup = Lookup(str(said["name"]), int(said["family"]), tuple(map(str, said["servers"])))
    addresses = tuple(ip_address(str(one)) for one in said["addresses"])
    if any(address.version != lookup.family for address in addresses):
        raise ValueError("addresses of another family")
    return lookup, _Kept(addresses, str(said["boot"]), float(said["until"]))


def _store(path: Path, kept: Mapping[Lookup, _Kept]) -> None:
    """Whoever may not write here (a plan by a normal user) asks again next time."""
    said = [
        {
            "name": lookup.name,
            "family": lookup.family,
            "servers": lookup.servers,
            "addresses": [str(address) for address in one.addresses],
            "boot": one.boot,
            "until": one.until,
        }
        for lookup, one in kept.items()
    ]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump({"answers": said}, file)
                os.fchmod(descriptor, 0o644)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
