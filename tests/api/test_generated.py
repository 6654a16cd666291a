"""The generated messages and the reference page are those of the schema.

`python -m tests.api.test_generated` writes them again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodOptions,
    ServiceDescriptorProto,
)

from holdfast.api.calls import CALLS
from holdfast.api.services import Services

TREE = Path(__file__).parents[2]
SOURCE = TREE / "src"
# Each with its page.
SCHEMAS = {
    "holdfast/api/holdfast.proto": "api.md",
    "holdfast/api/route_control.proto": "route-control.md",
    "holdfast/api/routes.proto": "routes.md",
}
MESSAGES = tuple(
    schema.replace(".proto", end) for schema in SCHEMAS for end in ("_pb2.py", "_pb2.pyi")
)
PAGES = TREE / "docs" / "reference"
_TITLES = {
    "api.md": "API",
    "route-control.md": "API of routing control",
    "routes.md": "What Holdfast adds to routing control",
}
# Where the messages of another package are described.
_PAGES = {".novaroute.v1.": "route-control.md"}


def generate(folder: Path) -> None:
    plugin = Path(sys.executable).parent / "protoc-gen-mypy"
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCE}"]
    messages = [f"--plugin=protoc-gen-mypy={plugin}", f"--python_out={folder}"]
    described = [f"--descriptor_set_out={folder}/described", "--include_source_info"]
    command = [*protoc, *messages, f"--mypy_out=quiet:{folder}", *described, *SCHEMAS]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protoc")
    generate(folder)
    return folder


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_those_of_the_schema(generated: Path, name: str) -> None:
    assert (SOURCE / name).read_text() == (generated / name).read_text()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_page_is_that_of_the_schema(generated: Path, schema: str) -> None:
    page = (PAGES / SCHEMAS[schema]).read_text()
    assert page == pages(generated / "described")[schema]


def test_services_have_a_method_for_each_call_and_no_other() -> None:
    services = get_type_hints(Services)
    methods = [
        f"{field}.{name}"
        for field, service in services.items()
        for name in vars(service)
        if not name.startswith("_")
    ]
    assert methods == [f"{call.service_field}.{call.method}" for call in CALLS.values()]


def pages(described: Path) -> dict[str, str]:
    """By schema."""
    found = FileDescriptorSet.FromString(described.read_bytes()).file
    return {one.name: "\n".join(_Page(one).lines()) + "\n" for one in found}


@dataclass(frozen=True, slots=True)
class _Page:
    file: FileDescriptorProto

    def lines(self) -> Iterator[str]:
        yield f"# {_TITLES[SCHEMAS[self.file.name]]}"
        yield ""
        yield "<!-- Written by `python -m tests.api.test_generated` from the schema. -->"
        yield ""
        yield from self._said(12, detached=True).splitlines()
        yield ""
        yield f"The schema: [`src/{self.file.name}`](../../src/{self.file.name})."
        for number, service in enumerate(self.file.service):
            yield from self._service(number, service)
        yield ""
        yield "## Messages"
        for number, message in enumerate(self.file.message_type):
            yield from self._message(number, message)

        for number, enum in enumerate(self.file.enum_type):
            yield from self._enum(number, enum)

    def _enum(self, number: int, enum: EnumDescriptorProto) -> Iterator[str]:
        yield ""
        yield f"### {enum.name}"
        said = self._said(5, number)
        if said:
            yield ""
            yield said
        yield ""
        yield "| value | number | |"
        yield "|---|---|---|"
        for index, value in enumerate(enum.value):
            about = " ".join(self._said(5, number, 2, index).split())
            yield f"| `{value.name}` | {value.number} | {about} |"

    def _service(self, number: int, service: ServiceDescriptorProto) -> Iterator[str]:
        yield ""
        yield f"## {service.name}"
        yield ""
        yield self._said(6, number)
        yield ""
        yield "| call | asks with | answers | reads | |"
        yield "|---|---|---|---|---|"
        for index, method in enumerate(service.method):
            level = method.options.idempotency_level
            reads = "yes" if level == MethodOptions.NO_SIDE_EFFECTS else ""
            answer = _linked(method.output_type, self._here) + (
                ", many" if method.server_streaming else ""
            )
            said = self._said(6, number, 2, index)
            cells = (
                f"`{method.name}`",
                _linked(method.input_type, self._here),
                answer,
                reads,
                said,
            )
            yield f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"

    def _message(self, number: int, message: DescriptorProto) -> Iterator[str]:
        yield ""
        yield f"### {message.name}"
        said = self._said(4, number)
        if said:
            yield ""
            yield said
        if message.field:
            yield ""
            yield "| field | type | |"
            yield "|---|---|---|"
        package = f".{self.file.package}."
        maps = {f"{package}{message.name}.{n.name}": n for n in message.nested_type}
        for index, field in enumerate(message.field):
            about = " ".join(self._said(4, number, 2, index).split())
            yield f"| `{field.name}` | {_type(field, maps, self._here)} | {about} |"

    @property
    def _here(self) -> str:
        return f".{self.file.package}"

    def _said(self, *path: int, detached: bool = False) -> str:
        for place in self.file.source_code_info.location:
            if list(place.path) == list(path):
                text = place.leading_comments
                if detached and not text:
                    text = "".join(place.leading_detached_comments)
                return "\n".join(line.strip() for line in text.strip().splitlines())
        return ""


def _type(field: FieldDescriptorProto, maps: dict[str, DescriptorProto], here: str) -> str:
    if field.type_name in maps:
        key, value = maps[field.type_name].field
        return f"map of {_type(key, {}, here)} to {_type(value, {}, here)}"
    name = (
        _linked(field.type_name, here)
        if field.type_name
        else FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    )
    return f"list of {name}" if field.label == FieldDescriptorProto.LABEL_REPEATED else name


def _linked(name: str, here: str) -> str:
    package, _, short = name.rpartition(".")
    home = "" if package == here else _PAGES[f"{package}."]
    return f"[{short}]({home}#{short.lower()})"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        generate(Path(made))
        for each in MESSAGES:
            (SOURCE / each).write_text((Path(made) / each).read_text())
        for schema, text in pages(Path(made) / "described").items():
            (PAGES / SCHEMAS[schema]).write_text(text)
