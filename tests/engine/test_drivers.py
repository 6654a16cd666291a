"""The list of drivers: which of them are made and asked, and what they remember."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.engine.artifact import Artifact, ArtifactKind, Key
from holdfast.engine.driver import Driver, Memory, Scope
from holdfast.engine.drivers import DriverEntry, Drivers
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError

A_FILE = Key(FILE.name, "/etc/x")
A_LINK = Key(LINK.name, "lan0")


class OneObject(Driver):
    memory = "objects"

    def __init__(self, kind: ArtifactKind) -> None:
        self.seen = Artifact(Key(kind.name, "x"), {})
        self.closed = False

    def observe(self, _scope: Scope) -> Observed:
        return Observed({self.seen.key: (Sighting(self.seen),)})

    def to_remember(self, planned: Sequence[Operation], before: Memory | None) -> Memory | None:
        return (before or frozenset()) | {op.kind for op in planned}

    def close(self) -> None:
        self.closed = True


class Machine(Drivers):
    """Of three drivers: the first is always asked, the second by name, the third cannot be made."""

    def __init__(self) -> None:
        self.made: list[OneObject] = []
        super().__init__(
            "boot",
            (
                DriverEntry((LINK,), lambda: self._make(LINK)),
                DriverEntry((FILE,), lambda: self._make(FILE), on_demand=True),
                DriverEntry((SYSCTL,), self._fail, on_demand=True),
            ),
        )

    def _make(self, kind: ArtifactKind) -> OneObject:
        self.made.append(OneObject(kind))
        return self.made[-1]

    def _fail(self) -> Driver:
        raise DriverError("no connection")


@pytest.mark.parametrize(
    ("scope", "asked"),
    [
        (Scope(), {LINK.name}),
        (Scope(keys=frozenset({A_LINK})), {LINK.name}),
        (Scope(keys=frozenset({A_FILE})), {LINK.name, FILE.name}),
        (Scope(claims={A_FILE: None}), {LINK.name, FILE.name}),  # type: ignore[dict-item]  # only keys matter
        (Scope(keys=frozenset({A_FILE}), kinds=frozenset({FILE.name})), {FILE.name}),
        (Scope(kinds=frozenset({FILE.name})), set()),
    ],
)
def test_a_driver_is_made_where_it_is_needed(scope: Scope, asked: set[str]) -> None:
    machine = Machine()
    assert {key.kind for key in machine.observe(scope).sightings} == asked
    assert {driver.seen.key.kind for driver in machine.made} == asked
    machine.observe(scope)
    assert len(machine.made) == len(asked), "made once"


@pytest.mark.parametrize(
    ("remembered", "present", "asked"),
    [
        ({"objects": frozenset({"x"})}, False, True),
        ({"objects": frozenset()}, True, False),
        ({}, True, True),  # nobody knows: it looks where there is something to look at
        ({}, False, False),
    ],
)
def test_a_driver_that_remembers_is_asked_once_nothing_is_declared(
    remembered: dict[str, Memory], present: bool, asked: bool
) -> None:
    entry = DriverEntry(
        (FILE,), lambda: OneObject(FILE), on_demand=True, memory="objects", present=lambda: present
    )
    seen = Drivers("boot", [entry]).observe(Scope(remembered=remembered))
    assert bool(seen.sightings) is asked


def test_what_cannot_be_asked_is_unknown() -> None:
    setting = Scope(keys=frozenset({Key(SYSCTL.name, "net.ipv4.ip_forward")}))
    assert Machine().observe(setting).unknown == {SYSCTL.name: "no connection"}
    assert not Machine().observe(Scope()).unknown


def test_only_what_was_made_is_closed() -> None:
    machine = Machine()
    with machine:
        machine.observe(Scope())
    assert [driver.closed for driver in machine.made] == [True]


def test_what_is_remembered_already_is_not_written() -> None:
    machine = Machine()
    planned = [Operation(Verb.CREATE, Artifact(A_LINK, {}), (), "")]
    assert machine.to_remember(planned, {}) == {"objects": {LINK.name}}
    assert machine.to_remember(planned, {"objects": frozenset({LINK.name})}) == {}
