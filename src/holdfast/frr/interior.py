"""BFD and OSPF: bfdd, ospfd and ospf6d as sightings of our kinds, and what is told to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.bfd import BFD_PEER, BFD_PROFILE, Timing
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF, name_and_vrf
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_INTERFACE, OspfInterface, area
from holdfast.engine.observed import Loss, Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.frr import marks
from holdfast.frr.bgp_view import HOLDER
from holdfast.frr.commands import Line, line, word
from holdfast.frr.daemon import SETTLES_S, Daemon
from holdfast.frr.driver import FOLDER
from holdfast.frr.lines import Step
from holdfast.frr.running_config import RunningConfig
from holdfast.frr.singles import Singles, failed

_NOTHING: Fields = {}


def block(head: str, config: RunningConfig) -> Sequence[str] | None:
    """The lines below a line of the first column; None where it is not there."""
    found = [body for said, body in config.blocks if said == head]
    return [said for body in found for said in body] if found else None


class InteriorDriver(Driver):
    """Of the daemons whose artifacts are few and single."""

    kinds: tuple[str, ...]

    def __init__(self, folder: Path, settles: float, singles: Singles) -> None:
        self._folder = folder
        self._settles = settles
        self._daemons: dict[str, Daemon] = {}
        self._singles = singles

    def daemon_of(self, key: Key) -> str:
        raise NotImplementedError

    def fresh(self, _key: Key) -> Fields:
        """The fields of one that was just made by its first line."""
        return _NOTHING

    def losses(self, _key: Key, _config: RunningConfig, _claimed: Scope) -> Sequence[Loss]:
        return ()

    def close(self) -> None:
        for daemon in self._daemons.values():
            daemon.close()

    def observe(self, scope: Scope) -> Observed:
        wanted = [key for key in {*scope.keys, *scope.claims} if key.kind in self.kinds]
        sightings: dict[Key, Sequence[Sighting]] = {}
        losses: dict[Key, Sequence[Loss]] = {}
        unknown: dict[str | Key, str] = {}
        read: dict[str, RunningConfig | str] = {}
        for key in wanted:
            name = self.daemon_of(key)
            if name not in read:
                try:
                    read[name] = self._daemon(name).read()
                except DriverError as error:
                    read[name] = str(error)
            config = read[name]
            if isinstance(config, str):
                unknown[key] = config
                continue
            seen = self._singles.see(key, config)
            if seen is not None:
                nonce = marks.nonce_of(seen, scope.claims, self.fresh(key))
                sightings[key] = (Sighting(seen, holder=HOLDER, nonce=nonce),)
                lost = self.losses(key, config, scope)
                if lost:
                    losses[key] = lost
        return Observed(sightings, unknown=unknown, losses=losses)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        results: dict[int, Result] = {}
        of: dict[str, list[int]] = {}
        for index, operation in enumerate(operations):
            subject = operation.subject
            assert isinstance(subject, Artifact)  # noqa: S101 (networks alone come in batches)
            of.setdefault(self.daemon_of(subject.key), []).append(index)
        for name, indexes in of.items():
            members = [operations[index] for index in indexes]
            daemon = self._daemon(name)
            try:
                done = self._singles.apply(daemon, members, daemon.read(anew=False))
            except DriverError as error:
                done = [failed(operation, str(error)) for operation in members]
            results.update(zip(indexes, done, strict=True))
            progress(len(members))
        return [results[index] for index in range(len(operations))]

    def _daemon(self, name: str) -> Daemon:
        if name not in self._daemons:
            self._daemons[name] = Daemon(self._folder, name, self._settles)
        return self._daemons[name]


class BfdDriver(InteriorDriver):
    kinds = (BFD_PROFILE.name, BFD_PEER.name)

    def __init__(self, folder: Path = FOLDER, settles: float = SETTLES_S) -> None:
        super().__init__(folder, settles, Singles(see_bfd, tell_bfd))

    def daemon_of(self, _key: Key) -> str:
        return "bfdd"

    def fresh(self, _key: Key) -> Fields:
        return _FRESH


_TIMES = {
    "detect-multiplier": "detect_multiplier",
    "receive-interval": "receive_interval",
    "transmit-interval": "transmit_interval",
    "minimum-ttl": "minimum_ttl",
    "echo transmit-interval": "echo_interval",
    "echo receive-interval": "echo_interval",
}
_MODES = {"echo-mode": "echo_mode", "passive-mode": "passive_mode"}
_DEFAULTS = {name: getattr(Timing(), name) for name in Timing.__slots__}


def _bfd_head(key: Key) -> str:
    return f"{'profile' if key.kind == BFD_PROFILE.name else 'peer'} {key.name}"


def see_bfd(key: Key, config: RunningConfig) -> Artifact | None:
    lines = _below(block("bfd", config) or (), _bfd_head(key))
    if lines is None:
        return None
    profile = next((said.split()[1] for said in lines if said.startswith("profile ")), None)
    found: dict[str, Value] = dict.fromkeys(_DEFAULTS) if profile else dict(_DEFAULTS)
    for said in lines:
        head, _, last = said.rpartition(" ")
        if head in _TIMES and last.isdigit():
            found[_TIMES[head]] = int(last)
        elif said.removeprefix("no ") in _MODES:
            found[_MODES[said.removeprefix("no ")]] = not said.startswith("no ")
    if key.kind == BFD_PEER.name:
        found["profile"] = profile
        found["shutdown"] = "shutdown" in lines
    return Artifact(key, found)


def _below(lines: Sequence[str], head: str) -> list[str] | None:
    """What is below one line of a block, without its indent; None where that is not there."""
    found: list[str] | None = None
    for said in lines:
        if not said.startswith("  "):
            found = [] if said.strip() == head else found
            inside = said.strip() == head
        elif found is not None and inside:
            found.append(said.strip())
    return found


def tell_bfd(
    operation: Operation, subject: Artifact, there: Artifact | None, _config: RunningConfig
) -> list[Step]:
    head = line(_bfd_head(subject.key)).text
    if operation.verb is Verb.DELETE:
        return [Step(("bfd",), line(f"no {head}"))] if there is not None else []
    path = ("bfd", head)
    old = there.fields if there is not None else _FRESH
    return [Step(("bfd",), line(head)), *(Step(path, said) for said in _bfd_lines(old, subject))]


# One that was just made.
_FRESH: Fields = {**_DEFAULTS, "profile": None, "shutdown": False}


def _bfd_lines(old: Fields, subject: Artifact) -> Iterator[Line]:
    new = subject.fields
    if new.get("profile") != old.get("profile") and "profile" in new:
        said = new["profile"]
        yield line(f"profile {word(said)}" if said else f"no profile {old['profile']}")
    for name, default in _DEFAULTS.items():
        before = old.get(name) if old.get(name) is not None else default
        after = new.get(name) if new.get(name) is not None else default
        if before == after:
            continue
        for said, field in (*_TIMES.items(), *_MODES.items()):
            if field == name:
                yield _given(said, after)
    if "shutdown" in new and new["shutdown"] != old.get("shutdown"):
        yield line("shutdown" if new["shutdown"] else "no shutdown")


def _given(said: str, value: Value) -> Line:
    if isinstance(value, bool):
        return line(said if value else f"no {said}")
    return line(f"{said} {value}")


class OspfDriver(InteriorDriver):
    """Instances and interfaces; prefixes are not told yet."""

    kinds = (OSPF_INSTANCE.name, OSPF_INTERFACE.name)

    def __init__(self, folder: Path = FOLDER, settles: float = SETTLES_S) -> None:
        super().__init__(folder, settles, Singles(see_ospf, tell_ospf))

    def daemon_of(self, key: Key) -> str:
        return "ospfd" if key.name.startswith("v2") else "ospf6d"

    def fresh(self, key: Key) -> Fields:
        return _BARE if key.kind == OSPF_INTERFACE.name else _NOTHING

    def losses(self, key: Key, config: RunningConfig, scope: Scope) -> Sequence[Loss]:
        """Lines of others in an instance; those of an interface stay by themselves."""
        if key.kind != OSPF_INSTANCE.name or scope.declared(key) is not None:
            return ()
        told, _ = _words(key)
        known = f"{told} router-id "
        lines = block(_ospf_head(key), config) or ()
        return [Loss(f"`{said.strip()}` ({HOLDER})") for said in lines if known not in said]


# An interface that OSPF has nothing on.
_BARE: Fields = {
    **{name: getattr(OspfInterface(""), name) for name in OspfInterface.__slots__},
    "area": None,
}


def _words(key: Key) -> tuple[str, str]:
    """`ospf` or `ospf6`, and what lines below an interface begin with."""
    return ("ospf", "ip ospf") if key.name.startswith("v2") else ("ospf6", "ipv6 ospf6")


def _ospf_head(key: Key) -> str:
    told, _ = _words(key)
    if key.kind == OSPF_INTERFACE.name:
        return f"interface {word(key.name.partition(' ')[2])}"
    vrf = name_and_vrf(key.name)[1]
    return f"router {told}" if vrf == DEFAULT_VRF else f"router {told} vrf {word(vrf)}"


def see_ospf(key: Key, config: RunningConfig) -> Artifact | None:
    found = block(_ospf_head(key), config)
    if found is None:
        return None
    told, start = _words(key)
    if key.kind == OSPF_INSTANCE.name:
        ids = [said.split()[-1] for said in found if said.strip().startswith(f"{told} router-id ")]
        return Artifact(key, {"router_id": ids[0] if ids else None})
    lines = [said.strip() for said in found if said.strip().startswith(f"{start} ")]
    fields: dict[str, Value] = {}
    for said in lines:
        _take(said.removeprefix(f"{start} "), fields)
    seen = {**_BARE, **fields}
    # `no ip ospf dead-interval` leaves a line that says the default: nothing of OSPF is there.
    return Artifact(key, seen) if seen != _BARE else None


_NUMBERS: Mapping[str, str] = {
    "cost": "cost",
    "hello-interval": "hello_interval",
    "dead-interval": "dead_interval",
    "priority": "priority",
}


def _take(said: str, fields: dict[str, Value]) -> None:
    head, _, rest = said.partition(" ")
    if head in _NUMBERS and rest.isdigit():
        fields[_NUMBERS[head]] = int(rest)
    elif head == "area":
        fields["area"] = area(rest)
    elif head == "network":
        fields["network"] = rest
    elif said in ("passive", "mtu-ignore"):
        fields[said.replace("-", "_")] = True
    elif head == "bfd":
        fields["bfd"] = True
        if rest.startswith("profile "):
            fields["bfd_profile"] = rest.removeprefix("profile ")


def tell_ospf(
    operation: Operation, subject: Artifact, there: Artifact | None, _config: RunningConfig
) -> list[Step]:
    key, ends = subject.key, operation.verb is Verb.DELETE
    told, start = _words(key)
    path = (_ospf_head(key),)
    if key.kind == OSPF_INSTANCE.name:
        if ends:
            return [Step((), line(f"no {path[0]}"))] if there is not None else []
        said = subject.fields.get("router_id")
        found = [Step((), line(path[0]))]
        if said and (there is None or there.fields.get("router_id") != said):
            found.append(Step(path, line(f"{told} router-id {word(said)}")))
        return found
    old = there.fields if there is not None else _NOTHING
    new = _NOTHING if ends else subject.fields
    said_all = list(_interface_lines(start, old, new))
    if ends:
        # ospfd writes a dead interval by itself once the hello interval was changed.
        said_all.append(line(f"no {start} dead-interval"))
    return [Step(path, each) for each in said_all]


def _interface_lines(start: str, old: Fields, new: Fields) -> Iterator[Line]:
    """What goes first: of two areas FRR takes none, and ospf6d says nothing about it."""
    names = {
        "area": "area", **{field: said for said, field in _NUMBERS.items()},
        "network": "network", "passive": "passive", "mtu_ignore": "mtu-ignore",
        "bfd_profile": "bfd profile", "bfd": "bfd",
    }  # fmt: skip
    given: list[Line] = []
    for name, said in names.items():
        before, after = old.get(name, _BARE[name]), new.get(name, _BARE[name])
        if before == after:
            continue
        cleared = after is None or after is False  # 0 is neither
        if cleared or (name == "area" and before):
            value = f" {before}" if name in ("area", "bfd_profile") else ""
            yield line(f"no {start} {said}{value}")
        if not cleared:
            given.append(line(f"{start} {said}" if after is True else f"{start} {said} {after}"))
    yield from reversed(given)  # a profile is taken only where BFD is on
