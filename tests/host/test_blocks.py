"""Blocks in files of others: the rest of the file is never touched."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.block import block
from holdfast.engine.plan import Operation, Verb
from holdfast.host.blocks import BlockDriver
from holdfast.paths import Paths
from holdfast.runtime import drivers
from tests.namespace import Namespace

ACL, _NONE = "system.posix_acl_access", 0xFFFFFFFF
OTHERS = "127.0.0.1 localhost\n# a comment\n::1 localhost"
ENTRY = block("/etc/hosts", "hostname", b"127.0.1.1 edge\n")
OTHER = block("/etc/hosts", "hostname", b"127.0.1.1 core\n")


@pytest.fixture
def hosts(root: Path) -> Path:
    path = root / "etc/hosts"
    path.parent.mkdir(parents=True)
    path.write_text(OTHERS)
    path.chmod(0o640)
    return path


def carry_out(root: Path, verb: Verb, subject: Artifact, observed: Artifact | None) -> Result:
    driver = BlockDriver(Paths(root))
    operation = Operation(verb, subject, ("Hostname/x",), "test", observed=observed)
    (result,) = driver.apply([operation], lambda _done: None)
    return result


def seen(root: Path) -> Artifact | None:
    found = BlockDriver(Paths(root)).observe(Scope(frozenset({ENTRY.key}))).sightings
    return found[ENTRY.key][0].artifact if ENTRY.key in found else None


def unknown(root: Path) -> str:
    return BlockDriver(Paths(root)).observe(Scope(frozenset({ENTRY.key}))).unknown[ENTRY.key]


def test_made_changed_and_removed(root: Path, hosts: Path) -> None:
    assert seen(root) is None
    assert carry_out(root, Verb.CREATE, ENTRY, None).ok
    whole = f"{OTHERS}\n# BEGIN holdfast hostname\n127.0.1.1 edge\n# END holdfast hostname\n"
    assert hosts.read_text() == whole
    assert seen(root) == ENTRY
    hosts.write_text(whole + "192.0.2.1 later\n")
    assert carry_out(root, Verb.UPDATE, OTHER, ENTRY).ok
    assert seen(root) == OTHER
    assert carry_out(root, Verb.DELETE, OTHER, OTHER).ok
    assert hosts.read_text() == f"{OTHERS}\n192.0.2.1 later\n"
    assert hosts.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in hosts.parent.iterdir()] == ["hosts"]
    assert carry_out(root, Verb.DELETE, OTHER, OTHER).ok  # already gone


def test_a_file_that_was_not_there(root: Path) -> None:
    assert seen(root) is None
    assert carry_out(root, Verb.CREATE, ENTRY, None).ok
    assert (root / "etc/hosts").stat().st_mode & 0o777 == 0o644
    assert seen(root) == ENTRY


def test_create_is_exclusive(root: Path, hosts: Path) -> None:
    carry_out(root, Verb.CREATE, OTHER, None)
    before = hosts.read_text()
    result = carry_out(root, Verb.CREATE, ENTRY, None)
    assert result.failures[0].exists
    assert hosts.read_text() == before


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE])
def test_what_somebody_changed_meanwhile_stays(root: Path, hosts: Path, verb: Verb) -> None:
    carry_out(root, Verb.CREATE, ENTRY, None)
    hosts.write_text(hosts.read_text().replace("edge", "mine"))
    before = hosts.read_text()
    result = carry_out(root, verb, ENTRY, ENTRY)
    assert result.failures[0].error == "it changed since the plan was made"
    assert hosts.read_text() == before


@pytest.mark.parametrize(
    "marks",
    [
        "# BEGIN holdfast hostname\n",
        "# END holdfast hostname\n",
        "# END holdfast hostname\n# BEGIN holdfast hostname\n",
        "# BEGIN holdfast hostname\nx\n# END holdfast hostname\n# BEGIN holdfast hostname\n",
    ],
)
def test_marks_that_do_not_pair_are_unknown(root: Path, hosts: Path, marks: str) -> None:
    hosts.write_text(f"{OTHERS}\n{marks}")
    assert "do not come in one pair" in unknown(root)
    assert not carry_out(root, Verb.CREATE, ENTRY, None).ok
    assert hosts.read_text() == f"{OTHERS}\n{marks}"


def _acl(*entries: tuple[int, int, int]) -> bytes:
    """acl(5) as an extended attribute: tag, permissions, user or group."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# Owner rw, user 65534 rw, group r, mask rw, others r.
SHARED = _acl((1, 6, _NONE), (2, 6, 65534), (4, 4, _NONE), (0x10, 6, _NONE), (0x20, 4, _NONE))


def test_whom_else_the_file_lets_in_is_kept(root: Path, hosts: Path) -> None:
    os.setxattr(hosts, ACL, SHARED)
    assert carry_out(root, Verb.CREATE, ENTRY, None).ok
    assert os.getxattr(hosts, ACL) == SHARED
    assert carry_out(root, Verb.DELETE, ENTRY, ENTRY).ok
    assert os.getxattr(hosts, ACL) == SHARED


def test_links_are_not_followed(root: Path, hosts: Path) -> None:
    target = root / "target"
    hosts.rename(target)
    hosts.symlink_to(target)
    assert "could not be read" in unknown(root)
    assert not carry_out(root, Verb.CREATE, ENTRY, None).ok
    assert target.read_text() == OTHERS


def test_what_an_interrupted_write_left_is_removed(
    root: Path, hosts: Path, netns: Namespace
) -> None:
    """Also where the block is not written again, as after the revert of a trial."""
    assert not netns.ip("route show")
    staged, theirs = (hosts.parent / f".hosts.holdfast-{end}" for end in ("0" * 16, "backup"))
    for path in (staged, theirs):
        path.write_text("half a file")
    claim = Claim(
        ENTRY.key, ("Hostname/x",), Provenance.CREATED, ClaimState.PENDING, ENTRY.fields, "", 1
    )
    with drivers.of_machine(Paths(root), 72) as host:
        host.sweep([claim])
    assert not staged.exists()
    assert theirs.exists()
    assert hosts.read_text() == OTHERS
