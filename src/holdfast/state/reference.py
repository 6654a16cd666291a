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
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.rule import rule
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.state.document import ReferenceArtifact

ORIGIN = "reference ledger"
# What its tables are called, and the family of those that it has.
_TABLES = "routerd_"
_FAMILIES = {
    "routerd_nat": "ip",
    "routerd_dnat": "ip",
    "routerd_policy": "ip",
    "routerd_default_route": "ip",
    "routerd_mss": "inet",
    "routerd_filter": "inet",
}
_SERVICE = "systemd.service"
_UNITS = re.compile(r"routerd-[A-Za-z0-9:_.@\\-]+\.service")

# The unit of a name, as a claim on it would have it; ValueError says why there can be none.
Unit = Callable[[str], Artifact]


@dataclass(frozen=True, slots=True)
class Unmapped:
    kind: str
    name: str
    reason: str


def unseen(_name: str) -> Artifact:
    raise ValueError("nobody looked whether it is there: `systemctl disable --now` it")


def claims(
    entries: Iterable[ReferenceArtifact], epoch: str, unit: Unit = unseen
) -> tuple[list[Claim], list[Unmapped]]:
    """Adopted claims for what can be mapped; an object named twice has both owners.

    epoch: the boot and network namespace that the import is made in. A table of that system's
    which is there now goes once nothing declares it: it is recorded and bears its name, and two
    sets of filters or of NAT at once are no router. So does a unit of its, by the file that `unit`
    sees: two programs cannot serve one port. All else that nothing declares stays.
    """
    artifacts: dict[Key, Artifact] = {}
    sources: dict[Key, list[ReferenceArtifact]] = {}
    unmapped: list[Unmapped] = []
    contradicted: set[Key] = set()
    for entry in entries:
        try:
            artifact = _artifact(entry, unit)
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
        _claim(artifact, sources[key], epoch)
        for key, artifact in artifacts.items()
        if key not in contradicted
    ]
    return found, unmapped


def _claim(artifact: Artifact, sources: Iterable[ReferenceArtifact], epoch: str) -> Claim:
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
        epoch=epoch if artifact.key.kind == NFT.name and _is_theirs(artifact) else "",
    )


def _is_theirs(table: Artifact) -> bool:
    return table.key.name.split(" ")[1].startswith(_TABLES)


def _artifact(entry: ReferenceArtifact, unit: Unit) -> Artifact:
    if entry.kind == _SERVICE:
        if not _UNITS.fullmatch(entry.name):
            raise ValueError("is not named routerd-*.service, so that it may be anybody's")
        return unit(entry.name)
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


def _tunnel(name: str, _attributes: dict[str, str]) -> Artifact:
    return link(name, {"type": "ip6tnl"})


def _table(name: str, attributes: dict[str, str]) -> Artifact:
    """Early ledgers leave the family out, and later ones write it before the name."""
    family, _, bare = name.rpartition("/")
    found = family or attributes.get("family") or _FAMILIES.get(bare, "")
    if found not in ("ip", "ip6", "inet"):
        raise ValueError("its family was not recorded")
    return Artifact(Key(NFT.name, f"{found} {bare}"), {})


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
    "linux.ipip6.tunnel": _tunnel,
    "nft.table": _table,
}
_UNMAPPED = {
    "linux.ipv4.routeTable": "names a whole table, and Holdfast claims single routes: adopt them",
    "file": "the content it had was not recorded: adopt it again",
}
