"""Files with mistakes, each a folder: router.yaml and the exact text of every error."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.resources.router import load_router

CASES = sorted(path for path in Path(__file__).with_name("bad").iterdir() if path.is_dir())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_file(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    with pytest.raises(ConfigError) as caught:
        load_router(Path("router.yaml"))
    assert str(caught.value) + "\n" == (case / "expected.txt").read_text()


def test_there_are_cases() -> None:
    assert len(CASES) > 40
