"""Root follows no link of anybody else to a file that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.config import regular_file, trusted_file
from holdfast.errors import ConfigError, Refused
from holdfast.resources.router import load_router
from tests.lanes import needs
from tests.resources.routers import document

USER = 1000


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    needs(os.geteuid() == 0, "root")
    path = tmp_path / "secret"
    path.write_text("root:hunter2\n")
    path.chmod(0o600)
    return path


def _itself(secret: Path, shared: Path) -> Path:
    link = shared / "list"
    link.symlink_to(secret)
    os.lchown(link, USER, USER)
    return link


def _its_folder(secret: Path, shared: Path) -> Path:
    link = shared / "folder"
    link.symlink_to(secret.parent)
    os.lchown(link, USER, USER)
    return link / secret.name


def _behind_one_of_roots(secret: Path, shared: Path) -> Path:
    other = _itself(secret, shared)
    link = shared.parent / "of-root"
    link.symlink_to(other)
    return link


def _relative(secret: Path, shared: Path) -> Path:
    link = shared / "list"
    link.symlink_to(Path("..") / secret.name)
    os.lchown(link, USER, USER)
    return link


WAYS = (_itself, _its_folder, _behind_one_of_roots, _relative)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    os.chown(folder, USER, USER)
    return folder


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_file_behind_a_link_of_another(
    secret: Path, shared: Path, way: Callable[[Path, Path], Path]
) -> None:
    path = way(secret, shared)
    with pytest.raises(PermissionError, match=f"the link .* belongs to user {USER}: chown -h root"):
        regular_file.read(path)
    with pytest.raises(Refused, match="the link"):
        trusted_file.resolved(path)
    # And nothing of it is told by whoever reads it as a list of routes.
    router = shared.parent / "router.yaml"
    whole = document(("RouteList", "x", {"file": str(path)}))
    router.write_text(f"{whole}\n".replace("'", '"'))
    with pytest.raises(ConfigError) as caught:
        load_router(router)
    assert "hunter2" not in str(caught.value)
    assert "chown -h root" in str(caught.value)


def test_a_file_that_another_may_write_is_read(shared: Path) -> None:
    """It is his to say what stands in it; a list of routes may well come from a feed."""
    path = shared / "list"
    path.write_text("10.0.0.0/8\n")
    os.chown(path, USER, USER)
    assert regular_file.read(path) == b"10.0.0.0/8\n"


def test_links_of_root_are_followed(secret: Path, shared: Path) -> None:
    link = shared / "list"
    link.symlink_to(secret)
    assert regular_file.read(link) == b"root:hunter2\n"
    assert trusted_file.resolved(link) == secret
    assert trusted_file.resolved(shared / "new" / "file") == shared / "new" / "file"


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OSError, match="symbolic links"):
        regular_file.read(link)
