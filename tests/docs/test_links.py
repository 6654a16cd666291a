"""Every link within the project leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.engine.kinds.link import TYPES
from holdfast.resources import registry
from tests.docs import markdown


def broken(page: Path, text: str) -> list[str]:
    found = []
    for link in markdown.links(text):
        if link.target.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = link.target.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or not target.is_relative_to(markdown.ROOT):
            found.append(f"{page.name}:{link.line}: there is no {link.target}")
        elif anchor and anchor not in markdown.anchors(target.read_text() if name else text):
            found.append(f"{page.name}:{link.line}: there is no heading {link.target}")
    return found


@pytest.mark.parametrize("page", markdown.pages(), ids=lambda p: str(p.relative_to(markdown.ROOT)))
def test_links(page: Path) -> None:
    assert broken(page, page.read_text()) == []


@pytest.mark.parametrize(
    "link",
    [
        "[a](nowhere.md)",
        "![a](docs/images/none.svg)",
        "[a](docs/README.md#none)",
        "[a](#none)",
        '<img src="none.svg">',
    ],
)
def test_a_broken_link_is_found(link: str) -> None:
    assert len(broken(markdown.ROOT / "README.md", f"# Title\n\n[b](#title) {link}\n")) == 1


def test_what_is_in_code_is_no_link() -> None:
    text = "`[a](b.md)`\n\n```\n[a](b.md)\n```\n"
    assert list(markdown.links(text)) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [markdown.ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for link in markdown.links(page.read_text()):
            target = link.target.partition("#")[0]
            if target and "://" not in target:
                waiting.append((page.parent / target).resolve())
    assert [str(page) for page in markdown.pages() if page not in seen] == []


def test_the_readme_names_every_kind_and_link_type() -> None:
    text = (markdown.ROOT / "README.md").read_text()
    for kind in registry.names():
        assert f"[{kind}](docs/reference/resources.md#{kind.lower()})" in text
    (row,) = re.findall(r"^\| \[Interface\].*", text, re.MULTILINE)
    for link_type in TYPES:
        assert re.search(rf"\b{link_type}\b", row), link_type
