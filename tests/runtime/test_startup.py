"""Which startup config is in force, whatever becomes of the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.resources.router import load_router
from holdfast.runtime.startup import Startup
from holdfast.state import schema
from holdfast.state.ledger import Ledger
from tests.safety.router_scene import document

pytestmark = pytest.mark.usefixtures("files_are_whole")

GOOD = {"Interface/wan": "{ifname: wan0}", "RouteList/all": "{file: routes.txt}"}


@pytest.fixture
def file(root: Path) -> Path:
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document(GOOD))
    (root / "routes.txt").write_text("10.1.0.0/16 dev wan0\n")
    return file


def applied(paths: Paths, file: Path, outcome: str = "converged") -> int:
    with Ledger.open(paths, command="test") as ledger:
        number = ledger.begin_generation(load_router(file, paths.root).files)
        ledger.finish_generation(number, outcome)
    return number


def test_the_file_is_in_force_while_it_is_valid(file: Path, root: Path) -> None:
    startup = Startup(Paths(root), file)
    first = startup.read()
    assert first.said == (f"{file} read: 2 resources",)
    assert (first.trouble, first.error) == ("", None)
    file.write_text(file.read_text().replace("ifname", "ifnam"))
    bad = startup.read()
    assert bad.router is first.router
    assert bad.trouble == f"{file} is invalid: the last good one stays in force"
    assert bad.said[-1] == bad.trouble
    assert any("unknown field" in line for line in bad.said)
    file.write_text(document({"Interface/lan": "{ifname: lan0}"}))
    good = startup.read()
    assert good.said == (f"{file} read again: 1 resources",)
    assert good.trouble == ""


@pytest.mark.parametrize("fate", ["invalid", "missing", "empty"])
def test_a_start_with_a_bad_file_takes_the_last_good_generation(
    file: Path, root: Path, fate: str
) -> None:
    """From the ledger alone: the files it names may be others by now, too."""
    paths = Paths(root)
    applied(paths, file)
    (root / "routes.txt").unlink()
    if fate == "missing":
        file.unlink()
    else:
        file.write_text("" if fate == "empty" else "spec: [")
    loaded = Startup(paths, file).read()
    assert loaded.router is not None
    assert [one.id for one in loaded.router.resources] == ["Interface/wan", "RouteList/all"]
    assert loaded.router.files[1].content == b"10.1.0.0/16 dev wan0\n"
    assert loaded.trouble == f"{file} is invalid: generation 1 of the ledger is in force"


def test_a_generation_whose_pass_failed_comes_after_those_whose_did_not(
    file: Path, root: Path
) -> None:
    paths = Paths(root)
    applied(paths, file)
    file.write_text(document({"Interface/lan": "{ifname: lan0}"}))
    applied(paths, file, "failed")
    other = root / "other.yaml"
    other.write_text(document({}))
    applied(paths, other)
    file.unlink()
    assert "generation 1 of the ledger" in Startup(paths, file).read().trouble


def test_no_good_one_at_all(file: Path, root: Path) -> None:
    file.unlink()
    loaded = Startup(Paths(root), file).read()
    assert loaded.router is None
    assert loaded.trouble == f"{file} is invalid: nothing is done"
    assert loaded.said[0] == f"{file}: cannot be read: No such file or directory"


def test_a_file_that_may_be_cut_says_so_as_ever(file: Path, root: Path) -> None:
    file.write_text(file.read_text().rstrip("\n"))
    router = Startup(Paths(root), file).read().router
    assert router is not None
    assert "may be cut short" in router.doubt


def latch(paths: Paths, file: Path) -> None:
    from holdfast.state import latches

    found = latches.digest(load_router(file, paths.root).files)
    with sqlite3.connect(paths.ledger) as database:
        database.execute("INSERT INTO latches VALUES (?,?,?,?)", (found, 2, 1.0, "no answer"))
    database.close()


def test_what_was_reverted_is_not_applied_again(file: Path, root: Path) -> None:
    paths = Paths(root)
    applied(paths, file)
    startup = Startup(paths, file)
    first = startup.read().router
    file.write_text(document({"Interface/lan": "{ifname: lan0}"}))
    latch(paths, file)
    loaded = startup.read()
    assert loaded.router is first
    said = (
        f"{file} was reverted (generation 2: no answer) and is not applied again by itself;"
        " `holdfast apply` applies it all the same"
    )
    assert loaded.trouble == f"{said}: the last good one stays in force"
    anew = Startup(paths, file).read()
    assert anew.trouble == f"{said}: generation 1 of the ledger is in force"


# What came after version 2 of the ledger, with version 3.
_OF_THREE = ("parts", "plugin_runs", "actions", "confirmations", "latches")


def test_a_ledger_of_an_older_format_is_brought_up_to_date(file: Path, root: Path) -> None:
    """Nothing else would: passes come after this."""
    paths = Paths(root)
    applied(paths, file)
    with sqlite3.connect(paths.ledger) as database:
        for table in (*_OF_THREE, "declaring", "declared"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version=2")
    database.close()
    assert Startup(paths, file).read().trouble == ""
    with sqlite3.connect(paths.ledger) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    database.close()
