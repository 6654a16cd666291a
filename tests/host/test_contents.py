"""What differs in files: their lines, and nothing of those that their owner alone may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.block import block
from holdfast.engine.kinds.dropin import dropin
from holdfast.engine.kinds.file import digest, file
from holdfast.engine.plan import Operation, Verb
from holdfast.host.blocks import BlockDriver
from holdfast.host.files import FileDriver
from holdfast.host.services.dropins import DropinDriver
from holdfast.paths import Paths

OLD, NEW = b"user me\npassword hunter2\n", b"user you\npassword hunter3\n"


def _differ(root: Path, wanted: Artifact, seen: Artifact | None, verb: Verb) -> str:
    operation = Operation(verb, wanted, ("Test/x",), "test", observed=seen)
    return repr(FileDriver(Paths(root)).difference(operation))


@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.UPDATE, Verb.DELETE])
@pytest.mark.parametrize("modes", [(0o600, 0o600), (0o644, 0o600), (0o600, 0o644)])
def test_a_secret_is_not_shown(tmp_path: Path, verb: Verb, modes: tuple[int, int]) -> None:
    before, after = modes
    (tmp_path / "secret").write_bytes(OLD)
    wanted = file("/secret", NEW, after if verb is not Verb.CREATE else 0o600)
    fields = {"sha256": digest(OLD, before), "mode": f"{before:04o}"}
    seen = Artifact(Key("file", "/secret"), fields)
    shown = _differ(tmp_path, wanted, seen if verb is not Verb.CREATE else None, verb)
    assert "hunter" not in shown
    assert "(secret)" in shown


def test_a_file_a_block_and_a_drop_in(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"a\n# BEGIN holdfast x\nold\n# END holdfast x\n")
    (tmp_path / "conf").write_bytes(b"old\n")
    paths = Paths(tmp_path)
    for driver, wanted, was in (
        (FileDriver(paths), file("/conf", b"new\n"), file("/conf", b"old\n")),
        (
            DropinDriver(paths),
            dropin("/conf", b"new\n", "x.service"),
            dropin("/conf", b"old\n", "x.service"),
        ),
        (BlockDriver(paths), block("/hosts", "x", b"new\n"), block("/hosts", "x", b"old\n")),
    ):
        operation = Operation(Verb.UPDATE, wanted, ("Test/x",), "test", observed=was)
        (hunk,) = driver.difference(operation).hunks
        assert [f"{line.sign}{line.text}" for line in hunk.lines] == ["-old", "+new"]


def test_only_what_was_planned_for_is_shown(tmp_path: Path) -> None:
    (tmp_path / "conf").write_bytes(b"other\n")
    with pytest.raises(ValueError, match="changed while"):
        _differ(tmp_path, file("/conf", b"new\n"), file("/conf", b"old\n"), Verb.UPDATE)


def test_a_missing_newline_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "conf").write_bytes(b"a")
    assert "No newline" in _differ(
        tmp_path, file("/conf", b"a\n"), file("/conf", b"a"), Verb.UPDATE
    )
