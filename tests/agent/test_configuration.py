"""The effective config over time: what is read again, what is merged again, what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.configuration import Configuration
from holdfast.config.part import Part
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.runtime import sources
from holdfast.state.ledger import Ledger
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

pytestmark = pytest.mark.usefixtures("files_are_whole")

ROUTE = raw("IPv4Route", "a", {"destination": "10.1.0.0/16", "gateway": "192.0.2.2"})
OWN = ("IPv4Route", "own", {"destination": "10.9.0.0/16", "gateway": "192.0.2.2"})
TARGET = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route", "name": "own"}
OTHERS = (admitting(), admitting("Owner/other"))
ADMITTED = ["DynamicConfigSource/owner-ci", "DynamicConfigSource/owner-other"]
POLICY: tuple[str, str, dict[str, Any]] = (
    "DynamicOverridePolicy",
    "all",
    {"allow": [{"source": "Owner/ci", "operations": ["mask"], "targets": [TARGET]}]},
)


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def configuration(root: Path, clock: Clock) -> Configuration:
    root.mkdir()
    load(root, OWN, POLICY, *OTHERS)
    return Configuration(Paths(root), root / "router.yaml", clock)


def put(configuration: Configuration, given: Part) -> None:
    with Ledger.open(configuration.paths, command="test") as ledger:
        sources.put(ledger, given, NOW)


def ids(configuration: Configuration) -> list[str]:
    router = configuration.read(again=False).router
    assert router is not None
    return [one.id for one in router.resources]


def test_the_very_same_until_something_changes(configuration: Configuration) -> None:
    first = configuration.read(again=True)
    assert len(first.said) == 1
    again = configuration.read(again=False)
    assert again.effective is first.effective
    assert again.said == ()
    assert configuration.read(again=True).said == (f"{configuration.file} read again: 4 resources",)


def test_parts_come_and_go(configuration: Configuration, clock: Clock) -> None:
    configuration.read(again=True)
    put(configuration, part("Owner/ci", ROUTE, masks=(mask("IPv4Route", "own"),), lasts=60))
    read = configuration.read(again=False)
    assert [event.kind for event in read.events] == ["part-accepted", "mask-applied"]
    assert read.next_change == NOW + 60
    assert ids(configuration) == ["DynamicOverridePolicy/all", *ADMITTED, "IPv4Route/a"]
    assert configuration.read(again=False).events == ()
    clock.now = NOW + 59.9
    assert configuration.read(again=False).effective is read.effective
    clock.now = NOW + 60
    over = configuration.read(again=False)
    assert [event.kind for event in over.events] == ["part-ended", "mask-lifted"]
    assert over.router is configuration.startup.router
    with Ledger.read(configuration.paths) as ledger:
        kinds = [event.kind for event in ledger.events()]
    assert kinds == ["part-accepted", "mask-applied", "part-ended", "mask-lifted"]


def test_a_file_that_becomes_invalid_leaves_parts_in_force(configuration: Configuration) -> None:
    put(configuration, part("Owner/ci", ROUTE))
    configuration.read(again=True)
    configuration.file.write_text("spec: [")
    read = configuration.read(again=True)
    assert read.troubles == (f"{configuration.file} is invalid: the last good one stays in force",)
    assert read.error is not None
    assert "IPv4Route/a" in ids(configuration)
    load(configuration.file.parent, POLICY, *OTHERS)
    read = configuration.read(again=True)
    assert read.troubles == ()
    assert read.error is None
    assert ids(configuration) == ["DynamicOverridePolicy/all", *ADMITTED, "IPv4Route/a"]


def test_a_new_file_can_conflict_with_a_part(configuration: Configuration) -> None:
    """The startup file is the operator's: it stands, and the part yields."""
    put(configuration, part("Owner/ci", ROUTE))
    configuration.read(again=True)
    load(
        configuration.file.parent,
        OWN,
        ("IPv4Route", "a", {"destination": "10.3.0.0/16", "gateway": "192.0.2.2"}),
        *OTHERS,
    )
    read = configuration.read(again=True)
    assert [event.kind for event in read.events] == ["part-rejected"]
    assert "IPv4Route/a is declared already" in read.troubles[0]


def test_what_is_wrong_is_told_without_ending_anything(configuration: Configuration) -> None:
    put(configuration, part("Owner/ci", {"kind": "Bogus"}, masks=(mask("IPv4Route", "own"),)))
    put(configuration, part("Owner/other", masks=(mask("IPv4Route", "own"),)))
    read = configuration.read(again=True)
    assert [line.partition(":")[0] for line in read.troubles] == [
        "Owner/ci#1 is rejected",
        "Owner/other#1",
    ]
    assert "IPv4Route/own" in ids(configuration)


def test_without_a_ledger_nothing_is_in_force(configuration: Configuration) -> None:
    configuration.read(again=True)
    configuration.paths.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    configuration.paths.ledger.touch(mode=0o600)
    with pytest.raises(LedgerError):
        configuration.read(again=False)


def test_what_goes_with_parts_alone_needs_no_asking(
    configuration: Configuration, clock: Clock
) -> None:
    assert not configuration.read(again=True).parts_alone
    configuration.settled()
    put(configuration, part("Owner/ci", ROUTE, lasts=60))
    assert configuration.read(again=False).parts_alone
    configuration.settled()
    assert not configuration.read(again=False).parts_alone
    clock.now = NOW + 60
    assert configuration.read(again=False).parts_alone
    assert configuration.read(again=False).parts_alone, "until a pass converged"
    load(configuration.file.parent, POLICY, *OTHERS)
    assert not configuration.read(again=True).parts_alone, "the file is another one, too"
    load(configuration.file.parent, OWN, POLICY, *OTHERS)
    assert configuration.read(again=True).parts_alone


def test_parts_that_were_over_while_the_daemon_was_down(
    configuration: Configuration, clock: Clock
) -> None:
    put(configuration, part("Owner/ci", ROUTE, lasts=60))
    router = configuration.read(again=True).router
    assert router is not None
    with Ledger.open(configuration.paths, command="test") as ledger:
        number = ledger.begin_generation(router.files)
        ledger.finish_generation(number, "converged")
    same = Configuration(configuration.paths, configuration.file, clock)
    assert not same.read(again=True).parts_alone
    clock.now = NOW + 61
    later = Configuration(configuration.paths, configuration.file, clock)
    assert later.read(again=True).parts_alone
    load(configuration.file.parent, POLICY, *OTHERS)
    edited = Configuration(configuration.paths, configuration.file, clock)
    assert not edited.read(again=True).parts_alone


def test_nothing_is_lost_while_another_holds_the_ledger(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be told is told with the next look."""
    put(configuration, part("Owner/ci", ROUTE))
    monkeypatch.setattr("holdfast.agent.configuration.LEDGER_WAIT_S", 0.0)
    with (
        Ledger.open(configuration.paths, command="another"),
        pytest.raises(LedgerError, match="another"),
    ):
        configuration.read(again=True)
    read = configuration.read(again=False)
    assert [event.kind for event in read.events] == ["part-accepted"]
    assert read.said == (f"{configuration.file} read: 4 resources",)


def test_a_clock_that_was_set_back_brings_back_what_is_not_over(
    configuration: Configuration, clock: Clock
) -> None:
    put(configuration, part("Owner/ci", ROUTE, lasts=60))
    clock.now = NOW + 3600
    configuration.read(again=True)
    assert "IPv4Route/a" not in ids(configuration)
    clock.now = NOW + 1
    assert "IPv4Route/a" in ids(configuration)


def test_what_could_not_be_recorded_is_merged_again(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration.read(again=True)
    put(configuration, part("Owner/ci", ROUTE))
    with monkeypatch.context() as full:
        full.setattr(Ledger, "put_note", lambda *_: _raise(LedgerError("disk full")))
        with pytest.raises(LedgerError):
            configuration.read(again=False)
    assert "IPv4Route/a" in ids(configuration)


def _raise(error: Exception) -> None:
    raise error
