"""Programs that Holdfast keeps running: units of systemd, or of its own supervisor."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.engine.artifact import Artifact, ArtifactKind, Key, Value

PREFIX = "holdfast-"

_DHCP_CLIENT = re.compile(r"dhcpcd([46])-(.+)")
_PPPOE_SESSION = "pppoe-"


def dhcp_client(family: int, ifname: str) -> str:
    """The name of the service that leases are taken by."""
    return f"dhcpcd{family}-{ifname}"


def pppoe_session(name: str) -> str:
    return f"{_PPPOE_SESSION}{name}"


def vital(artifact: Artifact) -> str:
    """The addresses and the way out that come from a provider go with what fetches them."""
    name = artifact.key.name
    client = _DHCP_CLIENT.fullmatch(name)
    if client is not None:
        return f"IPv{client[1]} on {client[2]}"  # as an address of that link says it
    if name.startswith(_PPPOE_SESSION):
        return f"the PPPoE session {name.removeprefix(_PPPOE_SESSION)}"
    return ""


SERVICE = ArtifactKind(
    name="service",
    identity="name of the unit, without `holdfast-` before and `.service` behind it",
    fields=("unit", "active", "reload"),
    proof="a claim, and in the definition that is there the mark it was created with",
    cleanup="stopped and removed when claimed, while its definition carries the mark it was"
    " created with",
    adoption="if a Holdfast made it whose ledger is lost, and it is as declared: no other unit says"
    " what it was made of",
    deletes_orphans=True,
    pins=("mark",),
    after=("link", "address", "file", "block", "sysctl"),
    survives_reboot=True,
    vital=vital,
    tells_its_maker=True,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A program in the foreground. Strings are taken as they are: nothing is expanded."""

    name: str  # "dnsmasq", "dhcpcd-eth0": letters, digits, and . _ - @
    description: str
    argv: tuple[str, ...]  # an absolute path first
    # Digest of all that the program reads when it starts: another one means a restart.
    config: str = ""
    # Digest of what SIGHUP makes it read again: another one means a reload, if only that differs.
    reload: str = ""
    folders: tuple[str, ...] = ()  # made before it starts, below the root already
    environment: tuple[tuple[str, str], ...] = ()
    # Seconds between asking it to end and ending it.
    stop_timeout: int = 10


def service(unit: Unit) -> Artifact:
    """The unit is running, by this definition, and has read what it should."""
    definition = json.dumps(asdict(unit), sort_keys=True).encode()
    fields: dict[str, Value] = {"unit": digest(unit), "active": True, "reload": unit.reload}
    return Artifact(Key("service", unit.name), fields, payload=definition)


def digest(unit: Unit) -> str:
    """Of all that needs another process to be so."""
    started = {name: value for name, value in asdict(unit).items() if name != "reload"}
    return hashlib.sha256(json.dumps(started, sort_keys=True).encode()).hexdigest()[:16]


def unit_of(artifact: Artifact) -> Unit:
    """The inverse of `service`."""
    return unit_from(json.loads(artifact.payload))


def unit_from(said: dict[str, Any]) -> Unit:
    """From the plain values of `dataclasses.asdict`; KeyError where one is missing."""
    return Unit(
        name=said["name"],
        description=said["description"],
        argv=tuple(said["argv"]),
        config=said["config"],
        reload=said["reload"],
        folders=tuple(said["folders"]),
        environment=tuple((name, value) for name, value in said["environment"]),
        stop_timeout=said["stop_timeout"],
    )
