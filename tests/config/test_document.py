"""Reading files: what cannot be read says why, and places are exact."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from holdfast.config.document import SourceFile, parse, read_document, read_file
from holdfast.errors import ConfigError
from holdfast.resources.router import load_router

GOOD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: r1}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lan}
      spec: {ifname: eth1}
"""


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"router\.yaml: cannot be read: No such file"):
        read_file(tmp_path / "router.yaml")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_file(tmp_path)


def test_not_permitted() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "router.yaml"
        path.write_text(GOOD)
        path.chmod(0)
        before = os.geteuid()
        if before == 0:  # root may read everything, so the question is put as somebody else
            os.seteuid(65534)
        try:
            with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
                read_file(path)
        finally:
            os.seteuid(before)


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_router(path).name == "r1"


def test_places() -> None:
    document = parse(SourceFile("r.yaml", GOOD.encode()))
    where = ("spec", "resources", 0, "spec", "ifname")
    assert str(document.place(where)) == "r.yaml:9:22"
    assert str(document.place(where, of_key=True)) == "r.yaml:9:14"
    assert str(document.place(("spec", "resources", 0))) == "r.yaml:6:7"
    assert str(document.place(("spec", "resources", 7))) == "r.yaml:6:5"
    assert str(document.place(("spec", "ownership", "tag"))) == "r.yaml:5:3"


def test_columns_count_characters_not_bytes() -> None:
    document = parse(SourceFile("r.yaml", "{é: ü, b: 1}".encode()))
    assert str(document.place(("b",))) == "r.yaml:1:11"


@pytest.mark.parametrize("end", range(len(GOOD)))
def test_half_written_file(end: int, tmp_path: Path) -> None:
    """Whatever part of a file is there, it is refused or says that it may be cut short."""
    path = tmp_path / "router.yaml"
    path.write_text(GOOD[:end])
    try:
        router = load_router(path)
    except ConfigError as error:
        assert error.problems
        assert all(problem.place.startswith(str(path)) for problem in error.problems)
    else:
        assert any("cut short" in str(warning) for warning in router.warnings)


def test_read_document(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text("a: 1\n")
    document = read_document(path)
    assert document.data == {"a": 1}
    assert document.file == SourceFile(str(path), b"a: 1\n")
