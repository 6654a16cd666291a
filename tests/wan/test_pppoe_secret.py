"""Where the password of a session may stand, and where it may not be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.resources.compile import compile_router
from holdfast.resources.router import Router, load_router
from tests.safety.router_scene import document

SECRET = "hunter 2"  # noqa: S105


def load(folder: Path, name: str = "secret", root: Path = Path("/")) -> Router:
    path = folder / "router.yaml"
    path.write_text(
        document(
            {
                "Interface/wan": "{ifname: wan0}",
                "PPPoEInterface/home": f"{{interface: wan, username: u, passwordFile: {name}}}",
            }
        )
    )
    return load_router(path, root)


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.touch()
    path.chmod(mode)
    path.write_bytes(content)
    return path


def complaint(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert SECRET not in str(caught.value)
    where, _, said = str(caught.value).partition(": spec.passwordFile: ")
    assert where == f"{folder}/router.yaml:13:57"
    return said.removeprefix(f"{folder}/secret: ")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_can_read(tmp_path: Path, mode: int) -> None:
    written(tmp_path, SECRET.encode(), mode)
    assert complaint(tmp_path) == f"others can read it (mode {mode:04o}): chmod 600 it"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert complaint(tmp_path) == "No such file or directory"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret", 0o600)
    assert complaint(tmp_path) == "it is not a regular file, but a pipe"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "its first line must be 1 to 255 printable characters on one line"),
        (b"\n" + SECRET.encode(), "its first line must be 1 to 255 printable characters"),
        (SECRET.encode() + b"\tx", "its first line must be 1 to 255 printable characters"),
        (b"x" * 256, "its first line must be 1 to 255 printable characters"),
        (SECRET.encode() + b"\xff", "is not UTF-8 text"),
    ],
)
def test_what_is_no_password(tmp_path: Path, content: bytes, said: str) -> None:
    written(tmp_path, content)
    assert complaint(tmp_path).startswith(said)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nand more\n"])
def test_only_the_first_line_counts_and_only_the_payload_has_it(tmp_path: Path, end: str) -> None:
    written(tmp_path, (SECRET + end).encode())
    router = load(tmp_path)
    assert all(SECRET.encode() not in file.content for file in router.files)
    desired = compile_router(router)
    assert SECRET not in repr(desired)
    (content,) = (
        intent.artifact.payload
        for intent in desired.intents
        if hasattr(intent, "artifact") and intent.artifact.key.name.endswith("home.options")
    )
    assert f'\npassword "{SECRET}"\n'.encode() in content


def test_an_absolute_path_is_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    written(root / "etc", SECRET.encode())
    router = load(tmp_path, "/etc/secret", root)
    assert router.resources[1].content == SECRET
