from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Failure, Result, Scope
from holdfast.engine.kinds.file import file
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host import rooted
from holdfast.host.files import FileDriver
from holdfast.paths import Paths
from tests.child import in_child, kill
from tests.host.test_blocks import ACL, SHARED
from tests.unprivileged import NOBODY, as_user

PATH = "/etc/holdfast.d/dnsmasq.conf"
ONE, TWO = file(PATH, b"port=53\n"), file(PATH, b"port=0\n", 0o600)


@pytest.fixture
def driver(root: Path) -> FileDriver:
    return FileDriver(Paths(root))


@pytest.fixture
def there(root: Path) -> Path:
    """Where PATH lies, its folder made."""
    place = root / PATH.lstrip("/")
    place.parent.mkdir(parents=True)
    return place


def _seen(driver: FileDriver, path: str = PATH) -> Sighting | None:
    sightings = driver.observe(Scope(frozenset({Key("file", path)}))).sightings
    return sightings[Key("file", path)][0] if sightings else None


def _unknown(driver: FileDriver, path: str = PATH) -> str:
    """Why it is not known what is there."""
    seen = driver.observe(Scope(frozenset({Key("file", path)})))
    assert not seen.sightings
    return seen.unknown[Key("file", path)]


def _apply(
    driver: FileDriver, verb: Verb, subject: Artifact, observed: Artifact | None = None
) -> Result:
    counted: list[int] = []
    operation = Operation(verb, subject, ("X/y",), "test", observed=observed)
    (result,) = driver.apply([operation], counted.append)
    assert counted == [1]
    assert result.operation is operation
    assert result.done == (0 if result.failures else 1)
    return result


def _failure(result: Result) -> Failure:
    (failure,) = result.failures
    return failure


def _leftovers(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if "holdfast-" in entry.name]


def test_a_file_through_its_life(driver: FileDriver, root: Path) -> None:
    assert _seen(driver) is None
    before = os.umask(0o077)
    try:
        assert _apply(driver, Verb.CREATE, ONE).ok
    finally:
        os.umask(before)
    place = root / PATH.lstrip("/")
    assert place.read_bytes() == b"port=53\n"
    assert place.parent.stat().st_mode & 0o777 == 0o755
    seen = _seen(driver)
    assert seen is not None
    assert seen.artifact == ONE
    assert seen.nonce == ONE.fields["sha256"]
    assert _apply(driver, Verb.UPDATE, TWO, observed=seen.artifact).ok
    seen = _seen(driver)
    assert seen is not None
    assert seen.artifact == TWO
    assert place.stat().st_mode & 0o7777 == 0o600
    assert _apply(driver, Verb.DELETE, seen.artifact, observed=seen.artifact).ok
    assert _seen(driver) is None
    assert list(place.parent.iterdir()) == []


def test_only_what_is_asked_for_is_reported(driver: FileDriver, there: Path) -> None:
    there.write_bytes(b"x")
    keys = frozenset({Key("sysctl", PATH), Key("file", "/etc/other")})
    assert driver.observe(Scope(keys)).sightings == {}


def test_claimed_files_are_looked_at_too(driver: FileDriver, there: Path) -> None:
    there.write_bytes(b"port=53\n")
    scope = Scope(claims={Key("file", PATH): None})  # type: ignore[dict-item]  # only keys matter
    assert set(driver.observe(scope).sightings) == {Key("file", PATH)}


def test_create_never_overwrites(driver: FileDriver, there: Path) -> None:
    there.write_bytes(b"theirs")
    failure = _failure(_apply(driver, Verb.CREATE, ONE))
    assert (failure.exists, failure.error) == (True, "File exists")
    assert there.read_bytes() == b"theirs"
    assert _leftovers(there.parent) == []


def test_create_never_overwrites_what_appears_at_the_last_moment(
    driver: FileDriver, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(*arguments: str, **options: int) -> None:
        there.write_bytes(b"theirs")
        link(*arguments, **options)  # type: ignore[arg-type]  # passed through as they came

    monkeypatch.setattr(os, "link", late)
    assert _failure(_apply(driver, Verb.CREATE, ONE)).exists
    assert there.read_bytes() == b"theirs"
    assert _leftovers(there.parent) == []


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.REPLACE, Verb.DELETE])
def test_a_file_changed_since_the_plan_is_left_alone(
    driver: FileDriver, there: Path, verb: Verb
) -> None:
    there.write_bytes(b"edited by hand")
    subject = ONE if verb is Verb.DELETE else TWO
    failure = _failure(_apply(driver, verb, subject, observed=ONE))
    assert "changed since the plan was made" in failure.error
    assert not failure.exists
    assert there.read_bytes() == b"edited by hand"
    assert _leftovers(there.parent) == []


def test_delete_by_claim_alone_checks_the_claimed_digest(driver: FileDriver, there: Path) -> None:
    there.write_bytes(b"edited by hand")
    assert not _apply(driver, Verb.DELETE, ONE).ok
    there.write_bytes(ONE.payload)
    assert _apply(driver, Verb.DELETE, ONE).ok
    assert not there.exists()


def test_what_is_already_gone_is_deleted(driver: FileDriver, there: Path) -> None:
    assert _apply(driver, Verb.DELETE, ONE, observed=ONE).ok
    there.parent.rmdir()
    assert _apply(driver, Verb.DELETE, ONE, observed=ONE).ok


def test_an_update_of_what_is_gone_fails(driver: FileDriver, there: Path) -> None:
    assert "gone" in _failure(_apply(driver, Verb.UPDATE, TWO, observed=ONE)).error
    assert not there.exists()


def test_an_update_keeps_the_owner(driver: FileDriver, there: Path) -> None:
    there.write_bytes(ONE.payload)
    os.chown(there, NOBODY, NOBODY)
    assert _apply(driver, Verb.UPDATE, TWO, observed=ONE).ok
    assert (there.stat().st_uid, there.stat().st_gid) == (NOBODY, NOBODY)


def test_whom_else_a_secret_lets_in_is_not_kept(driver: FileDriver, there: Path) -> None:
    assert _apply(driver, Verb.CREATE, TWO).ok
    os.setxattr(there, ACL, SHARED)
    seen = _seen(driver)
    assert seen is not None
    assert seen.artifact.fields["mode"] != "0600"
    assert _apply(driver, Verb.UPDATE, TWO, seen.artifact).ok
    assert ACL not in os.listxattr(there)
    assert there.stat().st_mode & 0o777 == 0o600


def test_a_plan_without_the_content_empties_no_file(driver: FileDriver, there: Path) -> None:
    there.write_bytes(ONE.payload)
    bare = Artifact(TWO.key, TWO.fields)
    for verb in (Verb.UPDATE, Verb.CREATE):
        error = _failure(_apply(driver, verb, bare, observed=ONE)).error
        assert "does not carry the content" in error
    assert there.read_bytes() == ONE.payload


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link_to("/etc/passwd"), "symbolic link"),
        (_link_to("nowhere"), "symbolic link"),
        (Path.mkdir, "folder"),
        (os.mkfifo, "special file"),
    ],
)
def test_what_is_no_file_is_seen_and_never_touched(
    driver: FileDriver, there: Path, make: Callable[[Path], None], words: str
) -> None:
    make(there)
    seen = _seen(driver)
    assert seen is not None
    assert words in seen.holder
    assert seen.artifact.fields["sha256"] == ""
    assert seen.nonce == ""
    assert _failure(_apply(driver, Verb.CREATE, ONE)).exists
    assert words in _failure(_apply(driver, Verb.UPDATE, TWO, observed=seen.artifact)).error
    assert words in _failure(_apply(driver, Verb.DELETE, seen.artifact)).error
    assert os.path.lexists(there)


def test_no_link_on_the_way_is_followed(driver: FileDriver, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "dnsmasq.conf").write_bytes(ONE.payload)
    (root / "etc").mkdir(parents=True)
    (root / "etc/holdfast.d").symlink_to(outside)
    assert "/etc/holdfast.d is not a folder" in _unknown(driver)
    for verb in (Verb.CREATE, Verb.UPDATE, Verb.DELETE):
        assert "not a folder" in _failure(_apply(driver, verb, ONE, observed=ONE)).error
    assert [entry.name for entry in outside.iterdir()] == ["dnsmasq.conf"]


@pytest.mark.parametrize("path", ["etc/x", "/etc/../x", "/etc//x", "/etc/./x", "/", "/a\0b", "/a/"])
def test_a_path_that_leads_elsewhere_is_refused(driver: FileDriver, root: Path, path: str) -> None:
    assert "could not be read" in _unknown(driver, path)
    assert not _apply(driver, Verb.CREATE, file(path, b"")).ok
    assert not root.exists()


def test_denied_is_not_absent() -> None:
    with tempfile.TemporaryDirectory() as reachable:
        root = Path(reachable)
        root.chmod(0o755)
        driver = FileDriver(Paths(root))
        (root / "etc/holdfast.d").mkdir(parents=True)
        place = root / PATH.lstrip("/")
        place.write_bytes(b"secret")
        place.chmod(0o600)
        with as_user():
            assert _unknown(driver) == f"file {PATH}: could not be read: Permission denied"
            assert _failure(_apply(driver, Verb.DELETE, ONE)).error == "Permission denied"
        place.unlink()
        place.parent.chmod(0o700)
        with as_user():
            assert "Permission denied" in _unknown(driver)


@pytest.mark.parametrize("call", ["fsync", "link", "fchmod"])
def test_a_write_that_fails_leaves_nothing(
    driver: FileDriver, there: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    assert _failure(_apply(driver, Verb.CREATE, ONE)).error == "No space left on device"
    assert list(there.parent.iterdir()) == []


def test_one_failure_does_not_stop_the_others(driver: FileDriver, there: Path) -> None:
    there.write_bytes(b"theirs")
    other = file("/etc/other", b"x")
    operations = [Operation(Verb.CREATE, subject, ("X/y",), "test") for subject in (ONE, other)]
    results = driver.apply(operations, lambda _count: None)
    assert [result.ok for result in results] == [False, True]


def test_what_a_crash_leaves_is_removed_by_the_next_write(
    driver: FileDriver, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the staged file and its name: the name is not there, the leftover is known."""
    ready, tell = os.pipe()

    def work() -> None:
        def stuck(*_arguments: object, **_options: object) -> None:
            os.write(tell, b"x")
            os.read(os.pipe()[0], 1)

        monkeypatch.setattr(os, "link", stuck)
        driver.apply([Operation(Verb.CREATE, ONE, ("X/y",), "test")], lambda _count: None)

    pid = in_child(work)
    assert os.read(ready, 1) == b"x"
    kill(pid)
    assert not there.exists()
    assert len(_leftovers(there.parent)) == 1
    theirs = there.parent / f".{there.name}.holdfast-backup"
    theirs.write_bytes(b"not ours")
    assert _apply(driver, Verb.CREATE, ONE).ok
    assert there.read_bytes() == ONE.payload
    assert _leftovers(there.parent) == [theirs.name]


def test_a_write_is_durable_before_it_is_named(
    driver: FileDriver, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("fsync", "link", "rename", "fchmod"):
        real = getattr(os, name)

        def noted(
            *arguments: object,
            real: Callable[..., None] = real,
            name: str = name,
            **options: object,
        ) -> None:
            calls.append(name)
            real(*arguments, **options)

        monkeypatch.setattr(os, name, noted)
    assert _apply(driver, Verb.CREATE, ONE).ok
    assert calls == ["fchmod", "fsync", "link", "fsync"]
    calls.clear()
    assert _apply(driver, Verb.UPDATE, TWO, observed=ONE).ok
    assert calls == ["fchmod", "fsync", "rename", "fsync"]
    assert there.exists()


def test_a_file_that_vanishes_between_two_looks_is_absent(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.write_bytes(b"x")
    real = os.open

    def late(path: str, flags: int, **options: int) -> int:
        there.unlink(missing_ok=True)
        return real(path, flags, **options)

    folder = os.open(there.parent, os.O_RDONLY)
    monkeypatch.setattr(os, "open", late)
    assert rooted.look(folder, there.name) is None
    os.close(folder)
