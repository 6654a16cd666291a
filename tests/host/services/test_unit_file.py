"""Unit files as text. The systemd lane shows what systemd makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.engine.kinds.service import service
from holdfast.host.services import unit_file
from holdfast.host.services.declared import definition_of
from holdfast.host.services.folder import Definition
from tests.host.services.stage import unit


def _definition(**more: object) -> Definition:
    return definition_of(service(unit("one", reload="r", **more)), "77")  # type: ignore[arg-type]


def test_a_file_says_what_it_was_made_of() -> None:
    definition = _definition()
    found = unit_file.read(unit_file.render(definition))
    assert found == unit_file.Marked("77", definition.unit, "r", "", intact=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1000", b"1001"),
        (b"Restart=always", b"Restart=no"),
        (b"Reload=r", b"Reload=s"),
        (b"[Install]", b"# [Install]"),
    ],
)
def test_a_change_by_hand_shows(old: bytes, new: bytes) -> None:
    content = unit_file.render(_definition())
    assert old in content
    found = unit_file.read(content.replace(old, new))
    assert found is not None
    assert not found.intact


@pytest.mark.parametrize(
    "text", ["", "[Service]\nExecStart=/bin/true\n", "\n[X-Holdfast]\nUnit=a\n"]
)
def test_a_file_of_others_is_not_ours(text: str) -> None:
    assert unit_file.read(text.encode()) is None


def test_a_line_break_never_reaches_a_file() -> None:
    with pytest.raises(ValueError, match="control character"):
        _definition(argv=("/bin/echo", "a\nExecStartPre=/bin/false"))
    with pytest.raises(ValueError, match="control character"):
        unit_file.render(replace(_definition(), description="a\nb"))


def test_percent_and_quotes_are_escaped() -> None:
    content = unit_file.render(_definition(argv=("/bin/echo", '100% "\\$HOME')))
    assert b'ExecStart=:"/bin/echo" "100%% \\"\\\\$HOME"\n' in content
