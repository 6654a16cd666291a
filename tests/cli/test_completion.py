"""What a shell completes, and what is not one of the words that can be said."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast


def offered(command: Holdfast, *words: str, file: str = "") -> list[str]:
    """words: the last one is begun."""
    typed = command.arguments(*words)
    asked = {
        "_HOLDFAST_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["holdfast", *typed[1:]]),
        "COMP_CWORD": str(len(typed) - 1),
    }
    done = subprocess.run(
        [typed[0]],
        env=command.environment(**asked, **({"HOLDFAST_FILE": file} if file else {})),
        cwd=command.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.usefixtures("wan")
def test_names_and_generations_are_completed(holdfast: Holdfast) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    assert offered(holdfast, "explain", "I") == [], "there is no file, and no complaint about it"
    assert offered(holdfast, "generations", "show", "1") == []
    holdfast.set_up("apply", "router.yaml", "--yes")
    for words in (("explain", "Int"), ("forget", "Int"), ("events", "--resource", "Int")):
        assert offered(holdfast, *words, file="router.yaml") == ["Interface/wan"], words
    for words in (
        ("generations", "show", "1"),
        ("generations", "diff", "1"),
        ("rollback", "--to", "1"),
    ):
        assert offered(holdfast, *words) == ["1"], words


def test_kinds_of_events_are_completed_and_known(holdfast: Holdfast) -> None:
    assert offered(holdfast, "events", "--kind", "repai") == ["repaired"]
    done = holdfast.run("events", "--kind", "repared")
    assert done.code == 64
    assert "there are no events of the kind 'repared'; did you mean 'repaired'?" in done.err
    assert holdfast.run("events", "--kind", "repaired").code == 0
