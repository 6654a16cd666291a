"""Tables that were saved with `nft list ruleset` and loaded again, as many do at each boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.intent import Intent
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN
from holdfast.resources.router import load_router
from tests.host.nft.nft_scene import Scene, listed, nft
from tests.host.nft.test_nft_pass import TABLE

pytestmark = pytest.mark.usefixtures("netns")

TOP = Path(__file__).parents[3]
FILES = (*sorted(TOP.glob("docs/examples/*.yaml")), TOP / "tests/router/all-kinds.yaml")
SECRETS = ("etc/holdfast/pppoe.secret", "usr/local/etc/routerd/pppoe-password")


def _tables(file: Path, folder: Path) -> list[Artifact]:
    for name in SECRETS:
        secret = folder / name
        secret.parent.mkdir(parents=True)
        secret.touch(0o600)
        secret.write_text("secret")
    desired = compile_router(load_router(file, folder), NOTHING_KNOWN, str(folder))
    intents = (one for one in desired.intents if isinstance(one, Intent))
    return [one.artifact for one in intents if one.artifact.key.kind == "nft"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_tables_of_every_sort(file: Path, tmp_path: Path) -> None:
    tables = _tables(file, tmp_path / "root")
    assert tables
    for number, table in enumerate(tables):
        _save_and_load(table, tmp_path / f"table{number}")
        nft("flush ruleset")


def test_a_table_with_something_of_everything(tmp_path: Path) -> None:
    _save_and_load(TABLE, tmp_path)


def _save_and_load(table: Artifact, folder: Path) -> None:
    Scene(Paths(folder / "wrote")).apply(table)
    saved = listed()
    nft("flush ruleset")
    nft(saved)
    assert Scene(Paths(folder / "lost")).apply(table).converged, (
        "without the ledger of whoever wrote it"
    )
    assert listed() == saved, "nothing was written"
    comment = next(line for line in saved.splitlines() if 'comment "holdfast ' in line)
    nft("flush ruleset")
    nft(saved.replace(comment, ""))
    other = Scene(Paths(folder / "other"))
    other.adopt(table)
    assert not other.plan(table).changes, "adopted without its comment"
