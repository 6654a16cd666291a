"""Programs that Holdfast keeps running: units of systemd, or of its own supervisor."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from holdfast.dataclass import asdict, dataclass
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key, MadeOf, Naming, Value
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

PREFIX = "holdfast-"

_DHCP_CLIENT = re.compile(r"dhcpcd([46])-(.+)")
_PPPOE_SESSION = "pppoe-"
_NAME = re.compile(r"[a-z][a-z0-9-]*")


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


def interrupts(operation: Operation) -> str:
    """What it reads again on SIGHUP it reads without a pause; anything else takes a new process."""
    assert isinstance(operation.subject, Artifact)  # noqa: S101 (services come one by one)
    lost = vital(operation.subject)
    if operation.verb is Verb.DELETE:
        return f"stops, and with it {lost}" if lost else "stops"
    changed = {change.field: change.before for change in operation.changes}
    if not changed or not changed.get("active", True):
        return ""  # it does not run yet
    if changed.keys() == {"reload"}:
        return "reloads, and goes on meanwhile"
    return f"restarts, and with it {lost}" if lost else "restarts"


def risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    goes_on = verb is Verb.CREATE or {change.field for change in changes} == {"reload"}
    goes_on = goes_on or any(change.field == "active" and not change.before for change in changes)
    return (Risk.LOW, "") if goes_on else (Risk.MEDIUM, "what it serves is interrupted")


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
    digests=("unit", "reload"),
    after=("link", "address", "file", "block", "sysctl"),
    survives_reboot=True,
    # Not urgent: one that ends by itself would be started four times a second for ever.
    vital=vital,
    interrupts=interrupts,
    risk=risk,
    tells_its_maker=True,
    seen_by_name=True,
    # Its digest covers what its files held when it was started, secrets among them, which nobody
    # keeps.
    made_of=MadeOf.DECLARATION_NOW,
    runs=True,
    needs_program=True,
    naming=Naming(guessed=lambda word: _NAME.fullmatch(word) is not None),
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
    return Artifact(Key(SERVICE.name, unit.name), fields, payload=definition)


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
