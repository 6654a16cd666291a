"""What is said of a configuration that is not applied."""

from __future__ import annotations

from pathlib import Path

from holdfast.agent.accepted_configuration import Refusal
from holdfast.errors import Refused
from holdfast.resources.router import load_router
from tests.cli.conftest import HEAD


def test_it_names_the_file_that_was_refused(tmp_path: Path) -> None:
    """Of a trial that was killed halfway, the candidate is: not the file that the daemon serves."""
    candidate = tmp_path / "other.yaml"
    candidate.write_text(HEAD.rstrip("\n") + " []\n")
    refusal = Refusal(load_router(candidate), Refused("too much"), parts=False)
    assert refusal.why().startswith(f"{candidate} is not applied: too much.")
