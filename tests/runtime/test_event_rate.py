"""One source that has much to say, beside others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import event_kinds
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import merge
from holdfast.resources.router import load_router
from holdfast.runtime import event_rate
from holdfast.runtime.event_rate import MOST
from holdfast.runtime.plugins.protocol import Trigger
from holdfast.runtime.plugins.run import PluginRunner
from holdfast.state.events import Event
from holdfast.state.ledger import Ledger
from holdfast.state.values import JSON

ROUTER = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: one}
spec:
  resources:
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: loud}
      spec: {executable: /loud, timeout: 20s}
"""


class Notes:
    """The notes of a ledger, and nothing else of it."""

    def __init__(self) -> None:
        self.kept: dict[str, JSON] = {}

    def note(self, name: str) -> JSON:
        return self.kept.get(name)

    def put_note(self, name: str, value: JSON) -> None:
        self.kept[name] = json.loads(json.dumps(value))


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from("ab"), st.integers(0, 80))))
def test_none_is_lost_without_being_counted(turns: list[tuple[float, str, int]]) -> None:
    notes, now = Notes(), 1000.0
    told: list[tuple[float, Event]] = []
    caused = 0
    for pause, source, count in turns:
        now += pause
        caused += count
        events = (
            (source, Event(event_kinds.PLUGIN_SAID, source, str(one))) for one in range(count)
        )
        told += ((now, one) for one in event_rate.kept(notes, events, now))  # type: ignore[arg-type]
    said = [one for _, one in told if one.kind == event_kinds.PLUGIN_SAID]
    out = sum(event_rate.left_out(notes).values())  # type: ignore[arg-type]
    assert len(said) + out == caused
    for source in "ab":
        for start, _ in told:
            # Any minute touches two of theirs, each of which is told of twice at most.
            within = [e for t, e in told if start <= t < start + 60 and e.subject == source]
            assert len(within) <= 2 * (MOST + 2)
    counted = sum(
        int(str(one.data["count"])) for _, one in told if one.kind == event_kinds.EVENTS_LEFT_OUT
    )
    assert counted <= out


@pytest.mark.programs
def test_a_plugin_that_says_a_hundred_things_every_second(open_folder: Path) -> None:
    said = [{"type": "noise", "message": f"{number}"} for number in range(100)]
    answer = {
        "apiVersion": "plugin.holdfast.dev/v1alpha1",
        "kind": "PluginResult",
        "status": {"ttl": "1m", "events": said},
    }
    script = open_folder / "loud"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    script.chmod(0o755)
    file = open_folder / "router.yaml"
    file.write_text(ROUTER)
    paths, effective = Paths(open_folder), merge(load_router(file), (), 1e9)
    with Ledger.open(paths, command="test") as ledger:
        ledger.append_events(
            [Event(event_kinds.CREATED, "address 192.0.2.1/24", "of somebody else's")]
        )
    runner = PluginRunner(paths, lambda: Ledger.open(paths, command="test"), clock=lambda: 1e9)
    plugin = effective.startup.resources[0]
    for _ in range(3):
        ran = asyncio.run(runner.run(plugin, effective, Trigger("interval")))
        assert ran.problem == ""
    with Ledger.read(paths) as ledger:
        kinds = [one.kind for one in ledger.events()]
        assert kinds.count("plugin-said") == MOST
        assert kinds.count(event_kinds.EVENTS_LEFT_OUT) == 1
        assert "created" in kinds
        assert event_rate.left_out(ledger) == {"Plugin/loud": 300 - MOST}
