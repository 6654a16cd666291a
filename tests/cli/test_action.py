"""`holdfast action`, with a real executor and without a daemon."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.runtime.actions.plans import part, plan
from tests.runtime.actions.scene import Scene


@pytest.fixture
def scene(open_folder: Path) -> Scene:
    made = Scene(open_folder / "root")
    made.prepare()
    made.policy(requireApproval=True)
    return made


@pytest.fixture
def holdfast(scene: Scene) -> Holdfast:
    """With two proposals: one of them cannot be taken in."""
    hand_in(scene, 1)
    return Holdfast(scene.root.parent, scene.root)


def hand_in(scene: Scene, generation: int) -> None:
    secret = {"token": "hunter2", "region": "eu"}
    with scene.ledger() as ledger:
        ledger.put_part(
            part(
                plan(parameters=secret, riskLevel="high", description="moves it"),
                plan("k2", mode="execute"),
                generation=generation,
                observed=time.time(),
            )
        )


def test_from_the_proposal_to_the_undo(holdfast: Holdfast, scene: Scene) -> None:
    listed = holdfast.run("action", "list")
    assert listed.code == 0, listed.err
    assert listed.out.splitlines() == [
        "KEY  STATE    PROVIDER  ACTION               TARGET      RISK  SOURCE",
        "k1   pending  aws       assign-secondary-ip  10.0.1.123  high  Owner/ci#1",
        "    held: it is not approved",
        "rejected app of Owner/ci#1:",
        "    mode: a plan cannot ask to be executed; that is for ProviderActionPolicy",
    ]
    assert holdfast.run("action", "journal").out == "The journal is empty.\n", "looking is free"

    refused = holdfast.run("action", "execute", "k1")
    assert refused.code == 4
    assert "k1 is not approved: `holdfast action approve k1`" in refused.err
    tried = holdfast.run("action", "execute", "k1", "--dry-run")
    assert (tried.code, tried.out) == (0, "k1 succeeded (dry run): done\n")
    assert scene.asked[0]["spec"]["mode"] == "dry-run"

    approved = holdfast.run("action", "approve", "k1", SUDO_USER="kim")
    assert approved.out == "k1 is approved: assign-secondary-ip 10.0.1.123 at aws\n"
    done = holdfast.run("action", "execute")
    assert (done.code, done.out) == (0, "k1 succeeded: done\n")
    assert holdfast.run("action", "execute").out == "There is nothing to execute.\n"

    shown = holdfast.run("action", "show", "k1")
    assert f"approved by  user {os.getuid()} (kim)" in shown.out
    assert "undo         can be undone" in shown.out
    assert '"token": ""' in shown.out
    assert "moves it" in shown.out

    tried = holdfast.run("action", "rollback", "k1", "--dry-run")
    assert tried.code == 0, tried.err
    assert tried.out.startswith("k1:undo succeeded (dry run): done\n    asks for {")
    assert '"action": "unassign-secondary-ip"' in tried.out
    assert scene.asked[-1]["spec"]["mode"] == "dry-run"
    undone = holdfast.run("action", "rollback", "k1")
    assert (undone.code, undone.out) == (0, "k1:undo succeeded: done\n")
    states = {one["key"]: one["state"] for one in journal(holdfast)}
    assert states == {"k1:undo": "succeeded", "k1": "rolledBack"}
    again = holdfast.run("action", "rollback", "k1")
    assert again.code == 4
    assert "k1 is rolledBack" in again.err


def journal(holdfast: Holdfast) -> list[dict[str, object]]:
    found: list[dict[str, object]] = holdfast.run("action", "journal", "-o", "json").json["actions"]
    return found


@pytest.mark.parametrize("key", [["k3"], {"k": 3}, 3, None, ""], ids=str)
def test_what_is_no_key_is_told_of(holdfast: Holdfast, scene: Scene, key: object) -> None:
    """Also where nothing else is proposed."""
    with scene.ledger() as ledger:
        proposed = part(plan(idempotencyKey=key), generation=2, observed=time.time())
        ledger.put_part(proposed)
    for words in (("list",), ("list", "-o", "json"), ("execute",), ("execute", "--approved")):
        done = holdfast.run("action", *words)
        assert done.code == 0, done.err
    assert "rejected app of Owner/ci#2" in holdfast.ok("action", "list").out


def test_only_some_of_them_are_listed(holdfast: Holdfast) -> None:
    def listed(*words: str) -> list[str]:
        found = holdfast.ok("action", "list", *words, "-o", "json").json
        return [one["key"] for one in found["actions"]]

    for likes in (("--state", "pending"), ("--provider", "aws"), ("--source", "Owner/ci")):
        assert listed(*likes) == ["k1"], likes
    for unlikes in (("--state", "failed"), ("--provider", "gcp"), ("--source", "Owner/cd")):
        assert listed(*unlikes) == [], unlikes
        assert holdfast.ok("action", "list", *unlikes).out == "No action is like that.\n"
    assert holdfast.ok("action", "journal", "--state", "failed").out == "The journal is empty.\n"
    assert holdfast.run("action", "list", "--state", "open").code == 64


def test_all_that_are_approved_are_executed(holdfast: Holdfast) -> None:
    assert holdfast.ok("action", "execute", "--approved").out == "There is nothing to execute.\n"
    holdfast.ok("action", "approve", "k1")
    assert holdfast.run("action", "execute", "k1", "--approved").code == 64
    assert "k1 succeeded" in holdfast.ok("action", "execute", "--approved").out


def test_documents_hold_no_secrets(holdfast: Holdfast, scene: Scene) -> None:
    scene.executor("answer('failed', error='token hunter2 is not valid')")
    holdfast.run("action", "approve", "k1")
    done = holdfast.run("action", "execute", "k1", "-o", "json")
    assert done.code == 1
    (result,) = done.json["results"]
    assert (result["outcome"], result["reason"]) == ("failed", "token (not shown) is not valid")
    outputs = [
        done.out,
        *(
            holdfast.run("action", *words, "-o", form).out
            for words in (("list",), ("show", "k1"), ("journal",))
            for form in ("table", "json", "yaml")
        ),
        holdfast.run("events", "-o", "json").out,
        holdfast.run("dynamic", "describe", "Owner/ci", "-o", "json").out,
    ]
    assert all(outputs)
    assert "hunter2" not in "".join(outputs)
    entry = holdfast.run("action", "show", "k1", "-o", "json").json
    assert entry["plan"]["parameters"] == {"token": "", "region": "eu"}
    assert [event["kind"] for event in entry["events"]] == [
        "action-proposed",
        "action-approved",
        "action-failed",
    ]


def test_without_a_policy_nothing_is_done(holdfast: Holdfast, scene: Scene) -> None:
    text = scene.file.read_text()
    before, _, after = text.partition("    - apiVersion: hybrid")
    scene.file.write_text(before + after.partition("\n    - ")[2].join(("    - ", "")))
    listed = holdfast.run("action", "list")
    assert listed.code == 0, listed.err
    assert listed.out.startswith("There is no ProviderActionPolicy: nothing is executed.\n")
    for words in (("approve", "k1"), ("execute", "k1", "--dry-run")):
        refused = holdfast.run("action", *words)
        assert refused.code == 4
        assert "there is no ProviderActionPolicy" in refused.err
    assert scene.asked == []


def test_what_was_looked_at_is_what_is_approved(holdfast: Holdfast, scene: Scene) -> None:
    seen = holdfast.run("action", "show", "k1", "-o", "json").json["planDigest"]
    with scene.ledger() as ledger:
        other = plan(target={"address": "10.0.1.9", "nicRef": "eni-1"})
        ledger.put_part(part(other, generation=2, observed=time.time()))
    refused = holdfast.run("action", "approve", "k1", "--plan", seen)
    assert refused.code == 4
    assert "its plan has changed" in refused.err
    now = holdfast.run("action", "show", "k1", "-o", "json").json
    assert (now["state"], now["target"]["address"]) == ("pending", "10.0.1.9")
    assert holdfast.run("action", "approve", "k1", "--plan", now["planDigest"]).code == 0


def test_what_it_is_not_told(holdfast: Holdfast) -> None:
    for words in (("show", "k9"), ("approve", "k9"), ("execute", "k9"), ("rollback", "k9")):
        refused = holdfast.run("action", *words)
        assert refused.code == 4, words
        assert "there is no action k9" in refused.err
    assert holdfast.run("action", "execute", "--dry-run").code == 64


def test_the_ledger_keeps_and_checks_it(holdfast: Holdfast) -> None:
    holdfast.run("action", "approve", "k1")
    assert holdfast.run("ledger", "check").code == 0
    exported = json.loads(holdfast.run("ledger", "export").out)
    assert [one["key"] for one in exported["actions"]] == ["k1"]
