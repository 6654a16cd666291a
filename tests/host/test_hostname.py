from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.hostname import hostname
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.hostname import HostnameDriver
from holdfast.paths import Paths
from tests.namespace import Namespace
from tests.unprivileged import NOBODY, as_user

KEY = Key("hostname", "system")

pytestmark = pytest.mark.usefixtures("netns")  # a UTS namespace of its own


@pytest.fixture
def driver(root: Path) -> HostnameDriver:
    socket.sethostname("before")
    return HostnameDriver(Paths(root))


@pytest.fixture
def stored(root: Path) -> Path:
    (root / "etc").mkdir(parents=True)
    place = root / "etc/hostname"
    place.write_text("before\n")
    return place


def _name(driver: HostnameDriver) -> object:
    return driver.observe(Scope(frozenset({KEY}))).sightings[KEY][0].artifact.fields["hostname"]


def _apply(driver: HostnameDriver, name: str, verb: Verb = Verb.UPDATE) -> Result:
    counted: list[int] = []
    operation = Operation(verb, hostname(name), ("Hostname/x",), "test")
    (result,) = driver.apply([operation], counted.append)
    assert counted == [1]
    return result


def test_both_names_are_set(driver: HostnameDriver, stored: Path, netns: Namespace) -> None:
    assert _name(driver) == "before"
    assert _apply(driver, "edge1").done == 1
    assert _name(driver) == "edge1"
    assert netns.run("hostname") == "edge1\n"
    assert stored.read_text() == "edge1\n"
    assert [entry.name for entry in stored.parent.iterdir()] == ["hostname"]


def test_a_difference_between_the_two_equals_neither(driver: HostnameDriver, stored: Path) -> None:
    stored.write_text("after-boot\n")
    assert _name(driver) == "before (/etc/hostname: after-boot)"
    assert _apply(driver, "before").ok
    assert stored.read_text() == "before\n"
    socket.sethostname("drifted")
    assert _name(driver) == "drifted (/etc/hostname: before)"


def test_no_file_is_a_difference_too(driver: HostnameDriver, root: Path) -> None:
    assert _name(driver) == "before (no name in /etc/hostname)"
    assert _apply(driver, "before").ok
    assert _name(driver) == "before"
    assert (root / "etc/hostname").stat().st_mode & 0o777 == 0o644


def test_comments_and_blank_lines_are_no_name(driver: HostnameDriver, stored: Path) -> None:
    stored.write_text("\n# the edge\n  before  \nother\n")
    assert _name(driver) == "before"


def test_any_bytes_can_be_shown(driver: HostnameDriver, stored: Path) -> None:
    stored.write_bytes(b"bef\xffore\n")
    assert _name(driver) == "before (/etc/hostname: bef\\xffore)"
    socket.sethostname(os.fsdecode(b"bef\xffore"))
    assert _name(driver) == "bef\\xffore"


def test_mode_and_owner_are_kept(driver: HostnameDriver, stored: Path) -> None:
    stored.chmod(0o640)
    os.chown(stored, NOBODY, NOBODY)
    assert _apply(driver, "edge1").ok
    found = stored.stat()
    assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o640, NOBODY, NOBODY)


def test_a_link_is_not_followed_and_not_replaced(
    driver: HostnameDriver, stored: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("before\n")
    stored.unlink()
    stored.symlink_to(outside)
    with pytest.raises(DriverError, match="/etc/hostname: could not be read"):
        _name(driver)
    (failure,) = _apply(driver, "edge1").failures
    assert "the running name is set; writing /etc/hostname: it is a symbolic link" in failure.error
    assert outside.read_text() == "before\n"


def test_what_the_kernel_refuses_reaches_no_file(driver: HostnameDriver, stored: Path) -> None:
    (failure,) = _apply(driver, "x" * 65).failures
    assert failure.error.endswith("Invalid argument")
    assert stored.read_text() == "before\n"
    assert _name(driver) == "before"


def test_denied_is_neither_absent_nor_done() -> None:
    with tempfile.TemporaryDirectory() as reachable:
        root = Path(reachable)
        root.chmod(0o755)
        (root / "etc").mkdir()
        (root / "etc/hostname").write_text("before\n")
        (root / "etc/hostname").chmod(0o600)
        driver = HostnameDriver(Paths(root))
        with as_user(), pytest.raises(DriverError, match="Permission denied"):
            _name(driver)
        with as_user():
            (failure,) = _apply(driver, "edge1").failures
        assert failure.error == "setting the running name to 'edge1': Operation not permitted"


def test_nothing_is_read_where_nobody_asks(driver: HostnameDriver) -> None:
    assert driver.observe(Scope(frozenset({Key("link", "system")}))).sightings == {}


@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.DELETE])
def test_the_name_is_only_ever_updated(driver: HostnameDriver, verb: Verb) -> None:
    (failure,) = _apply(driver, "edge1", verb).failures
    assert f"cannot be the subject of {verb}" in failure.error
    assert socket.gethostname() == "before"
