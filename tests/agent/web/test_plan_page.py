"""The page of the plan shows what differs in contents, and what is interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.agent.web.app import console_pages
from holdfast.agent.web.view import Seen
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.file import file
from holdfast.engine.plan import Change, Operation, Plan, Verb
from holdfast.paths import Paths
from tests.safety.router_scene import document, load


class _Loop:
    def __init__(self, root: Path, plan: Plan) -> None:
        text = document({"Interface/lan": "{ifname: lan0}"})
        self.paths = Paths(root)
        self.status = DaemonStatus(router=load(text)[0], plan=plan)


@pytest.mark.usefixtures("netns")
def test_lines_and_not_digests(tmp_path: Path) -> None:
    (tmp_path / "conf").write_bytes(b"one <b>\npassword: hunter2\n")
    before, after = file("/conf", b"one <b>\npassword: hunter2\n"), file("/conf", b"two\n")
    changes = (Change("sha256", before.fields["sha256"], after.fields["sha256"]),)
    service = Artifact(Key("service", "dnsmasq"), {})
    plan = Plan(
        (
            Operation(Verb.UPDATE, after, ("Test/x",), "test", changes=changes, observed=before),
            Operation(Verb.DELETE, service, ("Test/x",), "test", observed=service),
        )
    )
    seen = Seen(cast(Any, _Loop(tmp_path, plan)), cast(Any, None))
    found = seen.plan()
    assert found["operations"][0]["difference"]["removed"] == 2
    assert found["interruptions"][0]["effect"] == "stops"
    page = console_pages(None).text("plan.html", path="/plan", **found)
    assert "- one &lt;b&gt;" in page
    assert "+ two" in page
    assert str(changes[0].after) not in page
    assert "hunter2" not in page
    assert "Restarted or interrupted" in page
