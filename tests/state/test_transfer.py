from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.engine import event_kinds
from holdfast.engine.artifact import Key, fingerprint
from holdfast.engine.claim import ClaimState, Provenance
from holdfast.errors import LedgerError, Refused
from holdfast.paths import Paths
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from tests.resources.mutations import mistake_anywhere
from tests.state.samples import File, claim

Export = dict[str, Any]


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def exported(ledger: Ledger) -> Export:
    ledger.write_claims(
        [
            claim(2, nonce="n", original={"value": "1"}, revert=True),
            claim(1, fields={"b": ("x", "y"), "a": None}, state=ClaimState.PENDING),
        ]
    )
    ledger.begin_generation([File("router.yaml", "kind: Röuter\r\n".encode())])
    ledger.finish_generation(1, "converged")
    ledger.begin_generation([File("router.yaml", b"\xff\x00binary")])
    ledger.append_events(
        [Event(event_kinds.CREATED, "route a", "made", 1, {"n": [1, None]}) for _ in "123"]
    )
    ledger.put_note("report", {"converged": True})
    return ledger.export()


@pytest.fixture
def other(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "other")


def test_a_ledger_restored_from_its_export_is_the_same(
    exported: Export, ledger: Ledger, other: Paths
) -> None:
    data = json.loads(json.dumps(exported))
    with Ledger.open(other, command="ledger import") as restored:
        summary = restored.import_(data)
        assert restored.claims() == ledger.claims()
        assert restored.generations() == ledger.generations()
        assert restored.generation_files(2) == {"router.yaml": b"\xff\x00binary"}
        assert restored.generation_files(1) == ledger.generation_files(1)
        assert restored.events() == ledger.events()
        assert restored.note("report") == {"converged": True}
        assert restored.export() == exported
        assert restored.append_events([Event(event_kinds.CREATED, "b", "c")]) == 4
        assert restored.begin_generation([File("router.yaml", b"new")]) == 3
        assert restored.check() == []
    assert (len(summary.added), summary.generations, summary.events) == (2, 2, 3)
    assert not summary.history_kept


def test_the_export_can_be_read_by_people_and_compared(exported: Export, ledger: Ledger) -> None:
    assert json.dumps(ledger.export()) == json.dumps(exported)
    assert exported["format_version"] == 1
    assert [item["name"] for item in exported["claims"]] == [
        "10.0.0.1/32 dev lan0",
        "10.0.0.2/32 dev lan0",
    ]
    assert exported["claims"][0]["fields"] == {"a": None, "b": ["x", "y"]}
    assert exported["generations"][0]["created"] == "1970-01-01T00:16:40.500000Z"
    texts = [content.get("text") for content in exported["contents"].values()]
    assert "kind: Röuter\r\n" in texts


def _set(*path: str | int, value: object) -> Callable[[Export], None]:
    def change(data: Export) -> None:
        here: Any = data
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = value

    return change


def _twice(part: str) -> Callable[[Export], None]:
    return lambda data: data[part].append(copy.deepcopy(data[part][0]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("format_version", value=2), "format_version: 2 is newer"),
        (_set("format_version", value=0), "format_version: 0 was never written"),
        (_set("format_version", value="1"), "format_version: Input should be a valid integer"),
        (_set("claims", 1, "state", value="had"), "claims[1].state: Input should be 'pending'"),
        (_set("claims", 0, "generation", value=-1), "claims[0].generation: "),
        (_set("claims", 0, "extra", value=1), "claims[0].extra: Extra inputs"),
        (_set("claims", 0, "fields", "a", value=1.5), "claims[0].fields: "),
        (_set("claims", 0, "fields", "a", value="x"), "claims[0].fingerprint: not that of"),
        (_twice("claims"), "claims[2]: address 10.0.0.1/32 dev lan0 is claimed twice"),
        (_twice("generations"), "generations[2].number: not above the one before (2)"),
        (_twice("events"), "events[3].sequence: not above the one before (3)"),
        (_set("events", 1, "time", value="noon"), "events[1].time: "),
        (_set("generations", 0, "state", value="done"), "generations[0].state: "),
        (
            _set("generations", 0, "files", 0, "sha256", value="0"),
            "generations[0].files[0].sha256: not among the contents",
        ),
        (_set("contents", "00", value={"text": "x"}), "contents.00: not the digest"),
        (_set("contents", "00", value={"base64": "?"}), "contents.00: not base64"),
        (_set("contents", "00", value={}), "contents.00: give either text or base64"),
        (lambda data: data.pop("claims"), "claims: Field required"),
        (lambda data: data.pop("format_version"), "neither an export"),
    ],
)
def test_a_faulty_export_changes_nothing(
    exported: Export, other: Paths, change: Callable[[Export], None], said: str
) -> None:
    change(exported)
    with Ledger.open(other, command="ledger import") as target:
        target.write_claims([claim(7)])
        before = target.export()
        with pytest.raises(LedgerError) as caught:
            target.import_(exported, replace=True)
        assert said in str(caught.value)
        assert target.export() == before


def test_every_fault_is_named_at_once(exported: Export, ledger: Ledger) -> None:
    _set("claims", 0, "state", value="x")(exported)
    _set("events", 2, "sequence", value="y")(exported)
    with pytest.raises(LedgerError, match=r"(?s)claims\[0\]\.state.*events\[2\]\.sequence"):
        ledger.import_(exported)


def test_claims_that_differ_are_refused_unless_replaced(exported: Export, other: Paths) -> None:
    mine = claim(1, provenance=Provenance.ADOPTED)
    with Ledger.open(other, command="ledger import") as target:
        target.write_claims([mine, claim(9)])
        target.append_events([Event(event_kinds.CREATED, "b", "c")] * 5)
        before = target.export()
        with pytest.raises(Refused, match=r"1 of these objects otherwise:\n  address 10\.0\.0\.1"):
            target.import_(exported)
        with pytest.raises(Refused, match=r"Import with --replace to make it hold"):
            target.import_(exported)
        assert target.export() == before
        summary = target.import_(exported, replace=True)
        assert (summary.changed, summary.removed) == ((mine.key,), (claim(9).key,))
        assert target.export() == exported
        assert target.append_events([Event(event_kinds.CREATED, "b", "c")]) == 6, (
            "numbers are never given twice"
        )


def test_an_import_beside_other_claims_adds_and_keeps_the_history(
    exported: Export, other: Paths
) -> None:
    with Ledger.open(other, command="ledger import") as target:
        target.write_claims([claim(9)])
        target.append_events([Event(event_kinds.ADOPTED, "b", "c")])
        summary = target.import_(exported)
        assert (len(summary.added), summary.unchanged, summary.history_kept) == (2, 0, True)
        assert claim(9).key in target.claims()
        assert [event.kind for event in target.events()] == ["adopted"]
        again = target.import_(exported)
        assert (again.added, again.unchanged) == ((), 2)


@pytest.mark.usefixtures("exported")
def test_a_document_with_mistakes_is_taken_whole_or_not_at_all(
    ledger: Ledger, other: Paths
) -> None:
    """Refused with a place, and nothing is changed; or taken, and all of it can be read."""
    chance = Random("imports")  # noqa: S311 - the same again is what is wanted
    route = {"destination": "10.1.0.0/16", "table": 254, "metric": 0}
    ledger.write_claims([claim(3, key=Key("route", "10.1.0.0/16"), fields=route)])
    good = ledger.export()
    with Ledger.open(other, command="ledger import") as restored:
        restored.import_(good)
        before, refused = restored.export(), 0
        for _ in range(250):
            data = copy.deepcopy(good)
            said = [mistake_anywhere(data, chance) for _ in range(chance.choice((1, 1, 2)))]
            for one in data["claims"] if isinstance(data.get("claims"), list) else ():
                with suppress(TypeError, AttributeError, KeyError):
                    one["fingerprint"] = fingerprint(one["fields"])
            try:
                restored.import_(data, replace=True)
            except LedgerError as error:
                refused += 1
                assert "the ledger is as it was:\n" in str(error), (said, error)
                assert restored.export() == before, said
                continue
            assert restored.check() == [], said
            json.dumps(restored.export(), ensure_ascii=False).encode()
            restored.import_(good, replace=True)
    assert refused


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("claims", 0, "kind"), "colour", "claims[0].kind: "),
        (("claims", 0, "generation"), 2**63, "claims[0].generation: "),
        (("claims", 0, "fields"), {"a": "\ud800"}, "claims[0].fields.a: holds half of a character"),
        (("events", 1, "sequence"), 2**63 - 1, "events[1].sequence: "),
        (("events", 1, "time"), "0001-01-01T00:00:00Z", "events[1].time: "),
        (("generations", 0, "created"), "9999-12-31T23:59:59-23:59", "generations[0].created: "),
        (("notes", "report"), {"\udfff": 1}, "notes.report: a name in it holds half"),
        (("notes", "report"), float("nan"), "notes.report: nan is no number"),
        (("notes", "report"), deep(100), "is nested more than 48 levels deep"),
        (("notes", "report"), deep(100_000), "is nested more than 48 levels deep"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(
    exported: Export, other: Paths, place: tuple[str | int, ...], value: Any, said: str
) -> None:
    holder: Any = exported
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with Ledger.open(other, command="ledger import") as restored:
        with pytest.raises(LedgerError) as caught:
            restored.import_(exported)
        assert said in str(caught.value)
        assert restored.claims() == {}
