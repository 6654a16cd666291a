"""A ledger that cannot be used: said clearly, with what to do, and left exactly as it is."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.engine.artifact import fingerprint
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state import faults, schema
from holdfast.state.ledger import Ledger
from tests.state.samples import File, claim
from tests.unprivileged import NOBODY, as_user


@pytest.fixture
def filled(paths: Paths) -> Paths:
    with Ledger.open(paths, command="apply") as ledger:
        ledger.write_claims([claim(n) for n in range(2000)])
        ledger.begin_generation([File("router.yaml", os.urandom(50_000))])
    return paths


def _contents(paths: Paths) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in paths.state_dir.glob("state*")}


_WAYS_IN: tuple[Callable[[Paths], Ledger], ...] = (
    lambda paths: Ledger.open(paths, command="apply"),
    Ledger.read,
)


def _refused(paths: Paths, *expected: str) -> None:
    """Neither writing nor reading gets past it, and the files stay byte for byte."""
    before = _contents(paths)
    for opened in _WAYS_IN:
        with pytest.raises(LedgerError) as caught, opened(paths) as ledger:
            ledger.claims()
        for words in expected:
            assert words in str(caught.value), str(caught.value)
        del caught
    assert _contents(paths)["state.db"] == before["state.db"]


RESTORE = ("Nothing was touched", "holdfast ledger import FILE", "adopted again")


def test_not_a_database(filled: Paths) -> None:
    filled.ledger.write_bytes(b"kind: Router\n" * 1000)
    _refused(filled, "file is not a database", *RESTORE)


def test_no_bytes_at_all(filled: Paths) -> None:
    os.truncate(filled.ledger, 0)
    _refused(filled, "empty (0 bytes)", *RESTORE)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9])
def test_truncated(filled: Paths, share: float) -> None:
    os.truncate(filled.ledger, int(filled.ledger.stat().st_size * share))
    _refused(filled, "damaged", *RESTORE)


def test_a_page_overwritten(filled: Paths) -> None:
    """Any one page: whoever is about to write is told before the first change."""
    whole = filled.ledger.read_bytes()
    pages = len(whole) // 4096
    unseen = []
    for page in range(pages):
        spoilt = whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :]
        filled.ledger.write_bytes(spoilt)
        try:
            Ledger.open(filled, command="apply").close()
            unseen.append(page)
        except LedgerError as error:
            assert "Nothing was touched" in str(error)
        assert filled.ledger.read_bytes() == spoilt
    assert unseen == []


def test_another_program_s_database(paths: Paths) -> None:
    paths.state_dir.mkdir(parents=True, mode=0o700)
    other = sqlite3.connect(paths.ledger)
    other.execute("CREATE TABLE claims (a)")
    other.close()
    paths.ledger.chmod(0o600)
    _refused(paths, "not a Holdfast ledger", "Nothing was touched")


def test_a_newer_version(filled: Paths) -> None:
    _execute(filled, f"PRAGMA user_version={schema.VERSION + 1}")
    _refused(filled, f"format {schema.VERSION + 1}", "newer Holdfast", "Nothing was touched")


def test_an_older_version_is_brought_up_to_date_in_one_transaction(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.open(paths, command="apply").close()
    step = "CREATE TABLE later (a TEXT) STRICT"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, f"{step}; CREATE broken"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(LedgerError, match=f"format {schema.VERSION - 1}, an older Holdfast"):
        Ledger.read(paths)
    with pytest.raises(LedgerError, match="syntax error"):
        Ledger.open(paths, command="apply")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:-1], step))
    with Ledger.open(paths, command="apply") as ledger:
        ledger.write_claims([claim(1)])
    with Ledger.read(paths) as ledger:
        assert len(ledger.claims()) == 1


@pytest.mark.parametrize(("noted", "tables"), [("254 100", ["100", "254"]), ("", [])])
def test_routing_tables_of_the_third_version(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, noted: str, tables: list[str]
) -> None:
    """What was noted for the pass is what the driver of routes remembers."""
    with monkeypatch.context() as old:
        old.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
        old.setattr(schema, "VERSION", 3)
        with Ledger.open(paths, command="apply") as ledger:
            ledger.put_note("route-tables", noted)
    with Ledger.open(paths, command="apply") as ledger:
        assert ledger.remembered() == {"routes": frozenset(tables)}
        assert ledger.note("route-tables") is None
        assert not ledger.check()


def test_a_ledger_of_the_first_version(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its claims are read as they were meant: no setting was to be set back."""
    with monkeypatch.context() as old:
        old.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        old.setattr(schema, "VERSION", 1)
        Ledger.open(paths, command="apply").close()
    _execute(
        paths,
        """INSERT INTO claims VALUES ('sysctl', 'net.ipv4.ip_forward', '["Sysctl/a"]', 'set',
            'owned', '{"value":"1"}', 'FINGERPRINT', 'r.yaml:1', 1, 'boot/42', '', '{"value":"0"}')
        """.replace("FINGERPRINT", fingerprint({"value": "1"})),
    )
    with Ledger.open(paths, command="apply") as ledger:
        (read,) = ledger.claims().values()
    assert (read.fields, read.original, read.revert) == ({"value": "1"}, {"value": "0"}, False)


def test_a_log_without_its_database(filled: Paths) -> None:
    """SQLite would replay the log into the next database of that name."""
    filled.ledger.rename(filled.state_dir / "moved.db")
    (filled.state_dir / "state.db-wal").write_bytes(b"x" * 4096)
    for opened in _WAYS_IN:
        with pytest.raises(LedgerError, match=r"write-ahead log state\.db-wal is there"):
            opened(filled)
    assert not filled.ledger.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE claims SET fields='{}'", "fingerprint"),
        ("UPDATE claims SET state='gone'", "'gone'"),
        ("UPDATE claims SET owners='{}'", "not a JSON list"),
        ("UPDATE claims SET original='[1]'", "not a JSON object"),
        ("UPDATE claims SET original='{\"a\":1.5}'", "1.5"),
    ],
)
def test_a_row_that_cannot_be_read_is_never_left_out(filled: Paths, change: str, said: str) -> None:
    _execute(filled, f"{change} WHERE name='10.0.0.7/32 dev lan0'")
    _refused(filled, "claim address 10.0.0.7/32 dev lan0 cannot be read", said, *RESTORE)
    with Ledger.read(filled) as ledger:
        (problem,) = ledger.check()
    assert "10.0.0.7/32" in problem
    assert said in problem


def test_check_finds_what_only_it_looks_at(filled: Paths) -> None:
    with Ledger.open(filled, command="apply") as ledger:
        assert ledger.check() == []
    _execute(
        filled,
        "UPDATE contents SET compressed=x'00'",
        "UPDATE generations SET state='lost'",
        "INSERT INTO events VALUES (1, 0, '', '', '', 0, '[]')",
        "INSERT INTO notes VALUES ('report', '{')",
        "INSERT INTO generation_files VALUES (9, 'a', 'b')",
    )
    filled.ledger.chmod(0o644)
    with Ledger.read(filled) as ledger:
        problems = "\n".join(ledger.check())
        with pytest.raises(LedgerError, match=r"content .* cannot be read"):
            ledger.generation_files(1)
        with pytest.raises(LedgerError, match="generation 1 cannot be read"):
            ledger.generations()
        with pytest.raises(LedgerError, match="event 1 cannot be read"):
            ledger.events()
        with pytest.raises(LedgerError, match="note report cannot be read"):
            ledger.note("report")
    for expected in (
        "mode is 0644, should be 0600",
        "content ",
        "generation 1: state 'lost'",
        "event 1: not a JSON object",
        "note report: ",
        "generation_files: a row names a missing row of contents",
    ):
        assert expected in problems


def test_made_private_whatever_the_umask(paths: Paths) -> None:
    before = os.umask(0)
    try:
        with Ledger.open(paths, command="apply") as ledger:
            ledger.write_claims([claim(1)])
            modes = {
                entry.name: entry.stat().st_mode & 0o777 for entry in paths.state_dir.iterdir()
            }
            assert ledger.check() == []
    finally:
        os.umask(before)
    assert paths.state_dir.stat().st_mode & 0o777 == 0o700
    names = {"state.db", "state.db-wal", "state.db-shm", "lock"}
    assert modes == dict.fromkeys(names, 0o600)


def test_a_folder_others_may_write(filled: Paths) -> None:
    filled.state_dir.chmod(0o770)
    _refused(filled, "written by other users (mode 0770)", "chmod 0700", "Nothing was touched")


def test_a_file_others_may_write(filled: Paths) -> None:
    filled.ledger.chmod(0o620)
    _refused(filled, "written by other users (mode 0620)", "chmod 0600", "Nothing was touched")


@pytest.mark.parametrize("which", ["folder", "file"])
def test_another_user_s(filled: Paths, which: str) -> None:
    os.chown(filled.state_dir if which == "folder" else filled.ledger, NOBODY, -1)
    _refused(filled, f"belongs to user {NOBODY}", "chown 0", "Nothing was touched")


def test_root_s_ledger_for_somebody_else() -> None:
    """It is not theirs, and making it so would be the end of what it proves."""
    with tempfile.TemporaryDirectory() as reachable:
        Path(reachable).chmod(0o755)
        paths = Paths(Path(reachable))
        Ledger.open(paths, command="apply").close()
        with as_user(), pytest.raises(LedgerError, match="run it with sudo") as refused:
            Ledger.open(paths, command="plan")
        assert "chown" not in str(refused.value)
        paths.state_dir.chmod(0)
        with as_user(), pytest.raises(LedgerError, match="run it with sudo"):
            Ledger.read(paths)


def test_a_disk_that_is_full_is_called_so() -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    told = str(faults.from_system(error, Path("/var/lib/holdfast"), "make the ledger's folder"))
    assert "The disk is full. Free some space" in told
    assert "root" not in told


def test_links_are_not_followed(filled: Paths, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    filled.state_dir.rename(elsewhere)
    filled.state_dir.symlink_to(elsewhere)
    _refused(filled, "is a symbolic link, not a folder", "Nothing was touched")
    filled.state_dir.unlink()
    elsewhere.rename(filled.state_dir)
    filled.ledger.rename(tmp_path / "state.db")
    filled.ledger.symlink_to(tmp_path / "state.db")
    _refused(filled, "is a symbolic link, not a file", "Nothing was touched")


def test_permission_denied(filled: Paths) -> None:
    with as_user(), pytest.raises(LedgerError, match=r"Permission denied.*Nothing was touched"):
        Ledger.open(filled, command="apply")
    with as_user(), pytest.raises(LedgerError, match=r"Permission denied.*Nothing was touched"):
        Ledger.read(filled)


def test_permission_denied_to_the_file_alone() -> None:
    with tempfile.TemporaryDirectory() as reachable:
        os.chown(reachable, NOBODY, -1)
        paths = Paths(Path(reachable))
        with as_user():
            Ledger.open(paths, command="apply").close()
            paths.ledger.chmod(0)
            denied = "permission denied to the ledger as user 65534. Nothing was touched"
            with pytest.raises(LedgerError, match=denied):
                Ledger.open(paths, command="apply")
            with pytest.raises(LedgerError, match=denied):
                Ledger.read(paths)


def _execute(paths: Paths, *statements: str) -> None:
    """As a program that knows nothing of Holdfast's rules."""
    connection = sqlite3.connect(paths.ledger)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def _on_tmpfs(folder: Path, size: str, script: str) -> str:
    """Runs a script with a small file system of its own at the folder, seen by nobody else."""
    folder.mkdir(parents=True, exist_ok=True)
    body = f"""
        import os, subprocess
        from pathlib import Path
        from holdfast.errors import LedgerError
        from holdfast.paths import Paths
        from holdfast.state.ledger import Ledger
        from tests.state.samples import File, claim
        folder = Path({str(folder)!r})
        paths = Paths(folder)
    """
    mount = f'mount -t tmpfs -o size={size} tmpfs {folder} && exec {sys.executable} -c "$0"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, textwrap.dedent(body) + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.programs
def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    said = _on_tmpfs(
        tmp_path,
        "1m",
        """
        with Ledger.open(paths, command="apply", durable=True) as ledger:
            ledger.write_claims([claim(n) for n in range(100)])
            for tried in (
                lambda: ledger.begin_generation([File("routes.txt", os.urandom(4 << 20))]),
                lambda: ledger.write_claims([claim(n, 2) for n in range(20_000)]),
            ):
                try:
                    tried()
                except LedgerError as error:
                    print(error)
                else:
                    raise SystemExit("it fitted")
            assert ledger.claims() == {claim(n).key: claim(n) for n in range(100)}
            assert ledger.generations() == []
            assert ledger.check() == []
            ledger.write_claims([claim(0, 2)])
        with Ledger.open(paths, command="apply") as ledger:
            assert ledger.claims()[claim(0).key].generation == 2
            assert ledger.check() == []
        """,
    )
    assert said.count("database or disk is full. The ledger is as it was before. Free some") == 2


@pytest.mark.programs
def test_no_room_to_make_one(tmp_path: Path) -> None:
    said = _on_tmpfs(
        tmp_path,
        "8k",
        """
        paths.state_dir.mkdir(parents=True, mode=0o700)
        try:
            Ledger.open(paths, command="apply", durable=True)
        except LedgerError as error:
            print(error)
        assert not paths.ledger.exists()
        """,
    )
    assert "full" in said or "No space left on device" in said


@pytest.mark.programs
def test_a_read_only_file_system_can_be_read(tmp_path: Path) -> None:
    said = _on_tmpfs(
        tmp_path,
        "4m",
        """
        with Ledger.open(paths, command="apply", durable=True) as ledger:
            ledger.write_claims([claim(1)])
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with Ledger.read(paths) as ledger:
            assert ledger.claims() == {claim(1).key: claim(1)}
        try:
            Ledger.open(paths, command="apply", durable=True)
        except LedgerError as error:
            print(error)
        """,
    )
    assert "Read-only file system. Nothing was touched" in said
