"""Root goes by no configuration that others may write, and writes through no link of theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.runtime.startup import Startup
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace

USER = GROUP = 1000


def _by_its_group(file: Path) -> None:
    os.chown(file, 0, GROUP)
    file.chmod(0o664)


def _by_its_owner(file: Path) -> None:
    os.chown(file, USER, 0)


def _by_everybody(file: Path) -> None:
    file.chmod(0o666)


def _by_its_folder(file: Path) -> None:
    os.chown(file.parent, 0, GROUP)
    file.parent.chmod(0o775)


def _by_a_link(file: Path) -> None:
    file.rename(file.with_name("real.yaml"))
    file.symlink_to("real.yaml")
    os.lchown(file, USER, USER)


WAYS = (_by_its_group, _by_its_owner, _by_everybody, _by_its_folder, _by_a_link)


@pytest.fixture
def declared(holdfast: Holdfast, wan: Namespace) -> Path:  # noqa: ARG001 (its namespace)
    return holdfast.declare(WAN, WAN_ADDRESS)


@pytest.mark.parametrize("open_to_others", WAYS, ids=lambda way: way.__name__)
def test_a_command(
    holdfast: Holdfast, declared: Path, open_to_others: Callable[[Path], None]
) -> None:
    open_to_others(declared)
    for words in (("apply", "router.yaml", "--yes"), ("plan", "router.yaml")):
        done = holdfast.run(*words)
        assert done.code == 3
        assert "is not read by root: " in done.err
        assert "chmod go-w" in done.err or "chown -h root" in done.err


@pytest.mark.parametrize("open_to_others", WAYS, ids=lambda way: way.__name__)
def test_the_daemon(
    holdfast: Holdfast, declared: Path, open_to_others: Callable[[Path], None]
) -> None:
    """What is in force stays so."""
    startup = Startup(Paths(holdfast.root), declared)
    first = startup.read(asked=True)
    assert first.router is not None
    open_to_others(declared)
    second = startup.read(asked=True)
    assert second.router is first.router
    assert "is not read by root: " in str(second.error)


def test_who_asks_by_sudo_may_have_written_it(holdfast: Holdfast, declared: Path) -> None:
    _by_its_owner(declared)
    assert holdfast.run("plan", "router.yaml", SUDO_UID=str(USER)).code == 0
    assert holdfast.run("plan", "router.yaml", SUDO_UID="1001").code == 3
    _by_everybody(declared)
    assert holdfast.run("plan", "router.yaml", SUDO_UID=str(USER)).code == 3


def test_it_can_be_validated(holdfast: Holdfast, declared: Path) -> None:
    """Which is what another's file is looked at with."""
    _by_everybody(declared)
    assert holdfast.run("validate", "router.yaml").code == 0


def test_going_back_writes_through_no_link_of_others(
    holdfast: Holdfast, wan: Namespace, tmp_path: Path
) -> None:
    routes = holdfast.root / "shared" / "routes.txt"
    routes.parent.mkdir(parents=True)
    os.chown(routes.parent, USER, USER)
    listed = (
        "RouteList",
        "all",
        "{interface: wan, gateway: 192.0.2.254, file: /shared/routes.txt}",
    )
    for prefix in ("10.1.0.0/16", "10.2.0.0/16"):
        routes.write_text(f"{prefix}\n")
        holdfast.declare(WAN, WAN_ADDRESS, listed)
        holdfast.ok("apply", "router.yaml", "--yes")
    victim = tmp_path / "victim"
    victim.write_text("untouched\n")
    routes.unlink()
    routes.symlink_to(victim)
    os.lchown(routes, USER, USER)
    done = holdfast.run("rollback", "--to", "1", "--overwrite", "--yes")
    assert done.code != 0
    assert "chown -h root" in done.err
    assert victim.read_text() == "untouched\n"
    assert routes.is_symlink()
    assert "10.2.0.0/16" in wan.ip("route show")


def test_confirming_writes_through_no_link_of_others(
    holdfast: Holdfast, wan: Namespace, tmp_path: Path
) -> None:
    served = holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.3.0.0/16"), file="candidate.yaml")
    victim = tmp_path / "victim"
    victim.write_text("untouched\n")
    with daemon(holdfast, served):
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        served.unlink()
        served.symlink_to(victim)
        os.lchown(served, USER, USER)
        done = holdfast.run("confirm")
        assert done.code != 0
        assert "chown -h root" in done.err
        assert victim.read_text() == "untouched\n"
        assert "10.3.0.0/16" in wan.ip("route show")
        served.unlink()
        holdfast.ok("confirm")
    assert "10.3.0.0/16" in served.read_text()


def _two_generations(holdfast: Holdfast) -> Path:
    """Of a file in the hands of whoever asked for both."""
    folder = holdfast.root / "theirs"
    folder.mkdir(parents=True)
    file = folder / "router.yaml"
    for prefix in ("10.1.0.0/16", "10.2.0.0/16"):
        written = holdfast.declare(WAN, WAN_ADDRESS, route("a", prefix))
        file.write_text(written.read_text())
        for one in (folder, file):
            os.chown(one, USER, USER)
        assert holdfast.run("apply", str(file), "--yes", SUDO_UID=str(USER)).code == 0
    return file


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_going_back_is_refused_before_anything_is_written(
    holdfast: Holdfast, wan: Namespace, gone: bool
) -> None:
    file = _two_generations(holdfast)
    if gone:
        file.unlink()
    for words in (("--yes",), ("--dry-run",)):
        done = holdfast.run("rollback", *words)
        assert done.code == 4
        assert "nothing was touched" in done.err
        assert "belongs to user 1000: chown -h root" in done.err
        assert "again" not in done.err
        assert not file.exists() if gone else "10.2.0.0/16" in file.read_text()
    assert "10.2.0.0/16" in wan.ip("route show")
    if not gone:  # as root would make it
        assert holdfast.run("rollback", "--yes", SUDO_UID=str(USER)).code == 0
        assert "10.1.0.0/16" in file.read_text()
        assert "10.1.0.0/16" in wan.ip("route show")


def test_files_are_put_back_where_what_they_say_is_not_begun(
    holdfast: Holdfast, wan: Namespace
) -> None:
    for prefix in ("10.1.0.0/16", "10.2.0.0/16"):
        file = holdfast.declare(WAN, WAN_ADDRESS, route("a", prefix))
        holdfast.ok("apply", "router.yaml", "--yes")
    now = file.read_text()

    def full(*_: object) -> int:
        raise LedgerError("no room")

    def work() -> None:
        setattr(Ledger, "begin_generation", full)  # noqa: B010 (a failure that is injected)
        main.run(["--root", str(holdfast.root), "rollback", "--yes"])

    os.waitpid(in_child(work), 0)
    assert file.read_text() == now
    assert "10.2.0.0/16" in wan.ip("route show")


def test_what_the_daemon_would_not_read_is_not_put_in_its_place(
    holdfast: Holdfast,
    wan: Namespace,  # noqa: ARG001 (its namespace)
) -> None:
    served = holdfast.declare(WAN, WAN_ADDRESS)
    text = served.read_text()
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.3.0.0/16"), file="candidate.yaml")
    with daemon(holdfast, served):
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        _by_its_owner(served)
        done = holdfast.run("confirm")
        assert done.code == 4
        assert "would not be read by root after that" in done.err
        assert served.read_text() == text
        os.chown(served, 0, 0)
        holdfast.ok("confirm")
    assert "10.3.0.0/16" in served.read_text()
