"""Every example of README and of the documentation does what its page shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs import compare, markdown
from tests.docs.examples import Command, examples, play
from tests.lanes import needs
from tests.namespace import Namespace

# `tests/resources` checks the examples of this page, which the code writes.
_GENERATED = markdown.ROOT / "docs" / "reference"
_PAGES = [page for page in markdown.pages() if not page.is_relative_to(_GENERATED)]
_WITH_EXAMPLES = [page for page in _PAGES if any(examples(page.read_text()))]


@pytest.mark.parametrize("page", _WITH_EXAMPLES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path, netns: Namespace) -> None:
    del netns  # the pages make namespaces of their own; this is for one that should not
    allowed = subprocess.run(["unshare", "-rnu", "true"], capture_output=True, check=False)
    needs(allowed.returncode == 0, "user namespaces")
    outcome = play(page.read_text(), tmp_path)
    assert not outcome.problems, "\n\n".join(outcome.problems)


def test_make_targets_exist() -> None:
    makefile = (markdown.ROOT / "Makefile").read_text()
    for page in markdown.pages():
        for target in re.findall(r"(?:`|^\s*)make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: make {target}"


PAGE = """\
```yaml
# note.txt
one
```
```diff
# note.txt
 # note.txt
-one
+two
```
```console
$ cat note.txt
# note.txt
two
$ printf 'a\\nb\\nc\\n'; pwd
a
...
/home/you/router
$ bash
$ echo "took 12 s ago"; false
took 3 s ago
$ echo $?
1
```
"""


def test_a_right_page_has_no_problems(tmp_path: Path) -> None:
    assert play(PAGE, tmp_path).problems == []


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("two\n$", "three\n$", "-three\n+two"),
        ("...", "b", "+c"),
        ("$ echo $?\n1\n", "", '`echo "took 12 s ago"; false` failed, unsaid'),
        ("-one", "-once", "does not hold this exactly once"),
        ("note.txt\none", "wrong.yaml\none", "does not hold"),
        (
            "```yaml\n# note.txt\n",
            "```yaml\n# a.yaml\n- x\n```\n```yaml\n# note.txt\n",
            "not valid",
        ),
    ],
)
def test_a_wrong_page_is_told_what_is_wrong(
    right: str, wrong: str, problem: str, tmp_path: Path
) -> None:
    assert PAGE.count(right) >= 1
    found = "\n".join(play(PAGE.replace(right, wrong, 1), tmp_path).problems)
    assert problem in found


def test_yaml_must_name_its_file() -> None:
    with pytest.raises(ValueError, match="names no file"):
        list(examples("```yaml\nkind: Router\n```\n"))


def test_commands_go_on_after_a_prompt() -> None:
    (command,) = examples("```console\n$ echo a \\\n> b\na b\n```\n")
    assert isinstance(command, Command)
    assert (command.text, command.shown) == ("echo a \\\nb", "a b")


def test_a_line_of_dots_is_any_number_of_lines() -> None:
    assert compare.same("...\nb", "a\na\nb")
    assert compare.same("...\nb", "b")
    assert not compare.same("...\nb", "a\nc")
    assert not compare.same("a", "a\nb")
