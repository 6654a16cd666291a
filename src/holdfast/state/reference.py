"""Ledgers of the reference system: what Holdfast can make of their artifacts.

Those ledgers hold `kind`, `name`, one `owner` and sparse string attributes. Only an entry that
says enough to name the object and the values it had becomes a claim; the rest is listed with why.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.kinds.address import address
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.kinds.link import link
from holdfast.engine.kinds.rule import rule
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.state.document import ReferenceArtifact

ORIGIN = "reference ledger"


@dataclass(frozen=True, slots=True)
class Unmapped:
    kind: str
    name: str
    reason: str


def claims(entries: Iterable[ReferenceArtifact]) -> tuple[list[Claim], list[Unmapped]]:
    """Adopted claims for what can be mapped; an object named twice has both owners."""
    artifacts: dict[Key, Artifact] = {}
    sources: dict[Key, list[ReferenceArtifact]] = {}
    unmapped: list[Unmapped] = []
    contradicted: set[Key] = set()
    for entry in entries:
        try:
            artifact = _artifact(entry)
        except ValueError as error:
            unmapped.append(Unmapped(entry.kind, entry.name, str(error)))
            continue
        if artifacts.setdefault(artifact.key, artifact) != artifact:
            contradicted.add(artifact.key)
        sources.setdefault(artifact.key, []).append(entry)
    for key in contradicted:
        unmapped += [
            Unmapped(entry.kind, entry.name, "recorded twice, with other values")
            for entry in sources[key]
        ]
    found = [
        _claim(artifact, sources[key])
        for key, artifact in artifacts.items()
        if key not in contradicted
    ]
    return found, unmapped


def _claim(artifact: Artifact, sources: Iterable[ReferenceArtifact]) -> Claim:
    # Owners there carry their API group: net.routerd.net/v1alpha1/Interface/lan.
    owners = dict.fromkeys("/".join(entry.owner.split("/")[-2:]) for entry in sources)
    return Claim(
        artifact.key,
        tuple(owners),
        Provenance.ADOPTED,
        ClaimState.OWNED,
        artifact.fields,
        ORIGIN,
        generation=0,
    )


def _artifact(entry: ReferenceArtifact) -> Artifact:
    mapped = _MAPPED.get(entry.kind)
    if mapped is None:
        raise ValueError(_UNMAPPED.get(entry.kind, "Holdfast has no artifact of this kind"))
    return mapped(entry.name, entry.attributes or {})


def _link(name: str, _attributes: dict[str, str]) -> Artifact:
    return link(name, {})


def _address(version: int) -> Callable[[str, dict[str, str]], Artifact]:
    def mapped(name: str, _attributes: dict[str, str]) -> Artifact:
        # No link name holds a colon: the kernel refuses it.
        dev, colon, written = name.partition(":")
        if not colon or "/" not in written:
            raise ValueError("names no link and full address with its prefix length")
        interface = ipaddress.ip_interface(written)
        if interface.version != version:
            raise ValueError(f"{written} is not an IPv{version} address")
        return address(interface, dev)

    return mapped


def _sysctl(name: str, attributes: dict[str, str]) -> Artifact:
    return sysctl(name, _attribute(attributes, "value"))


def _hostname(_name: str, attributes: dict[str, str]) -> Artifact:
    return hostname(_attribute(attributes, "hostname"))


def _fwmark_rule(name: str, _attributes: dict[str, str]) -> Artifact:
    match = re.fullmatch(r"priority=(\d+),mark=(0x[0-9a-fA-F]+|\d+),table=(\d+)", name)
    if match is None:
        raise ValueError("is not written priority=N,mark=0xN,table=N")
    priority, mark, table = match.groups()
    return rule(4, int(priority), fwmark=int(mark, 0), table=int(table))


def _attribute(attributes: dict[str, str], name: str) -> str:
    if name not in attributes:
        raise ValueError(f"its {name} was not recorded: adopt it again")
    return attributes[name]


_MAPPED: dict[str, Callable[[str, dict[str, str]], Artifact]] = {
    "linux.link": _link,
    "linux.ipv4.address": _address(4),
    "linux.ipv6.address": _address(6),
    "linux.sysctl": _sysctl,
    "linux.hostname": _hostname,
    "linux.ipv4.fwmarkRule": _fwmark_rule,
}
_UNMAPPED = {
    "linux.ipv4.routeTable": "names a whole table, and Holdfast claims single routes: adopt them",
    "file": "the content it had was not recorded: adopt it again",
}
