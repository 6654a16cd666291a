"""Which candidate of a default route policy is active, since when and why, wherever it is told."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest

from holdfast.cli.top_view import rows
from holdfast.cli.top_watch import Watch
from holdfast.paths import Paths
from holdfast.resources.spec.moments import parse_moment
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.test_failover import at_work, takes
from tests.agent.two_providers import ROUTER, TwoProviders, until
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.safety.router_scene import document

POLICY = "IPv4DefaultRoutePolicy/default"
SILENT = "HealthCheck/wan says: 2 times in a row: no answer from 192.0.2.254 within 0.1 s"


def _events(root: Path) -> list[StoredEvent]:
    with Ledger.read(Paths(root)) as ledger:
        return [event for event in ledger.events() if event.kind == "candidate-changed"]


def _active(holdfast: Holdfast) -> dict[str, str]:
    told = holdfast.run("status", "-o", "json").json
    found = next(one for one in told["resources"] if one["resource"] == POLICY)
    active: dict[str, str] = found["active"]
    return active


def test_it_is_told_everywhere_and_a_restart_forgets_nothing(
    place: TwoProviders, root: Path
) -> None:
    holdfast = Holdfast(root, root)
    with at_work(root) as daemon:
        until(lambda: "answered" in _active(holdfast)["why"], "the verdict")
        first = _active(holdfast)
        assert first["candidate"] == "wan"
        assert first["why"].startswith("it is the first by priority, and HealthCheck/wan says: ")
        place.cut()
        takes(place, "second")
        daemon.wait_for(f"candidate-changed {POLICY}: lte is active in place of wan: ")
        until(lambda: _active(holdfast)["candidate"] == "lte", "the other candidate")
        told = _active(holdfast)
        assert told["why"] == f"it is the first that works (wan: {SILENT})"
        assert [event.message.partition(":")[0] for event in _events(root)] == [
            "wan is active",
            "lte is active in place of wan",
        ]
        assert abs(parse_moment(told["since"]) - _events(root)[-1].time) < 2
        said = f"lte is active since {told['since']}: {told['why']}"
        assert said in holdfast.run("status").out
        assert said in holdfast.run("explain", POLICY).out
        with Watch(Paths(root), None) as watch:
            shown = ["".join(text for text, _ in row) for row in rows(watch.look(), 0)]
        at = shown.index("Default routes") + 1
        assert shown[at].startswith(f"  lte  {POLICY}, ") and SILENT in shown[at]
        daemon.end()
    with serve(root, root / "router.yaml") as daemon:
        daemon.wait_for("pending: HealthCheck/wan")
        assert _active(holdfast)["since"] == told["since"]
        place.mend()
        takes(place, "first")
        daemon.wait_for(f"candidate-changed {POLICY}: wan is active in place of lte: ")
        daemon.end()


@pytest.mark.usefixtures("place")
def test_metrics(netns: Namespace, root: Path) -> None:
    netns.ip("link set lo up")
    file = root / "router.yaml"
    file.write_text(document(ROUTER))
    with serve(root, file) as daemon:
        daemon.wait_for("HealthCheck/wan is healthy")

        def page(path: str) -> str:
            with urlopen(f"http://127.0.0.1:9473{path}", timeout=60) as answer:
                return str(answer.read().decode())

        until(lambda: "holdfast_candidate_active{" in page("/metrics"), "the metric")
        text = page("/metrics")
        assert f'holdfast_candidate_active{{candidate="wan",policy="{POLICY}"}} 1.0' in text
        assert f'holdfast_candidate_active{{candidate="lte",policy="{POLICY}"}} 0.0' in text
        assert f'holdfast_candidate_active_since_timestamp_seconds{{policy="{POLICY}"}}' in text
