"""Tables that list what the project has list all of it."""

from __future__ import annotations

import re

from tests.docs import markdown

RECORDS = markdown.ROOT / "docs" / "adr"
SOURCE = markdown.ROOT / "src" / "holdfast"


def test_every_decision_has_its_number_and_stands_in_the_index() -> None:
    files = sorted(path.name for path in RECORDS.glob("[0-9]*.md"))
    numbers = [int(name[:4]) for name in files]
    assert numbers == list(range(1, len(files) + 1))
    rows = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \|", (RECORDS / "README.md").read_text(), re.M)
    assert [name for _, name in rows] == files
    for number, name in rows:
        assert name.startswith(number)
        assert (RECORDS / name).read_text().startswith(f"# {number}")


def test_the_architecture_names_every_folder() -> None:
    text = (markdown.ROOT / "docs" / "architecture.md").read_text()
    named = {
        folder
        for row in re.findall(r"^\| (`\S+/`(?:, `\S+/`)*) \|", text, re.M)
        for folder in re.findall(r"`(\S+)/`", row)
    }
    there = {
        str(path.parent.relative_to(SOURCE))
        for path in SOURCE.rglob("__init__.py")
        if path.parent != SOURCE
    }
    assert named == there


def test_the_index_names_every_guide_and_example() -> None:
    text = (markdown.ROOT / "docs" / "README.md").read_text()
    for folder in ("guides", "reference", "examples"):
        for path in (markdown.ROOT / "docs" / folder).iterdir():
            assert f"({folder}/{path.name})" in text, path.name
