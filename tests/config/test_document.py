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
    with pytest.raises(ConfigError, match=r"cannot be read: it is not .*, but a directory"):
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


def test_too_large_to_be_one() -> None:
    """Nothing of it is looked at: a small router would be busy with it for minutes."""
    with pytest.raises(ConfigError) as caught:
        parse(SourceFile("r.yaml", b"#" * ((32 << 20) + 1)))
    (problem,) = caught.value.problems
    assert str(problem).startswith("r.yaml: it is larger than 32 MiB; many routes belong in")


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


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("kind: Interface", "kind: {}"),
        ("name: lan}", "name: {}}}"),
        ("ifname: eth1", "ifname: {}"),
        ("ifname: eth1", "ifname: eth1, adminUp: {}"),
        ("ifname: eth1", "ifname: eth1, mtu: {}"),
        ("ifname: eth1", "ifname: eth1, master: {}"),
        ("net.holdfast.dev/v1alpha1", "{}"),
    ],
)
def test_a_value_of_megabytes_is_not_said_back_whole(tmp_path: Path, old: str, said: str) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(GOOD.replace(old, said.format("x" * 5_000_000)))
    with pytest.raises(ConfigError) as caught:
        load_router(path)
    assert len(str(caught.value)) < 4000
    assert "xxx… (500000" in str(caught.value)
    assert f"{path}:" in str(caught.value)


def test_fields_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(GOOD.replace("ifname: eth1", '"a\\nb": 1, ifname: eth1'))
    with pytest.raises(ConfigError) as caught:
        load_router(path)
    assert r"router.yaml:9:14: spec.'a\nb': unknown field" in str(caught.value)
    fields = ", ".join(f"field{number}: 1" for number in range(5000))
    path.write_text(GOOD.replace("ifname: eth1", f"ifname: eth1, {fields}"))
    with pytest.raises(ConfigError) as caught:
        load_router(path)
    *_, last = caught.value.problems
    assert len(caught.value.problems) == 51
    assert last.message == "and 4950 more unknown fields"


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_lines_end_as_they_do_elsewhere(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "router.yaml"
    path.write_bytes(GOOD.replace("\n", ending).encode())
    router = load_router(path)
    assert router.warnings == ()
    assert router.doubt == ""
    assert str(router.resources[0].place) == f"{path}:6:7"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_file_that_is_named_has_to_be_one(tmp_path: Path, kind: str) -> None:
    """A pipe would be waited for, and a device read until memory ends."""
    named = tmp_path / "routes"
    if kind == "pipe":
        os.mkfifo(named)
    elif kind == "folder":
        named.mkdir()
    else:
        named.symlink_to("/dev/zero")
    path = tmp_path / "router.yaml"
    routes = GOOD.replace("kind: Interface", "kind: RouteList").replace(
        "ifname: eth1", "file: routes"
    )
    path.write_text(routes)
    with pytest.raises(ConfigError, match=r"9:20: spec.file: .*: cannot be read: it is not a"):
        load_router(path)
