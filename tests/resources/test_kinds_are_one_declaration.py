"""A resource kind is one declaration, in a module that is named for it.

What other code asks of kinds is a field of `Kind`; who needs the resources of one kind asks for
them by its spec class. So nothing in src/holdfast names a kind by a string, its own module
included. What counts as naming one:

- a string that is the name of a kind, wherever it stands: in a comparison, a set, a lookup;
- an id or the beginning of one, `"HealthCheck/wan"`, `f"no HealthCheck/{name} is declared"`;
- an f-string that comes to a name, `f"IPv{family}Route"`.

What does not count: doc comments, and texts in which a name is one word among others (messages,
summaries, examples, `such as Interface/wan`); `__all__`, which lists names of Python; and the two
places in `NO_KINDS`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import holdfast
from holdfast import resources
from holdfast.engine.intent import BulkIntent
from holdfast.errors import ConfigError
from holdfast.resources import registry, routes
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic.dynamic_config_part import PartDocument
from holdfast.resources.router import load_router
from holdfast.resources.spec import reference
from holdfast.resources.spec.document import RouterDocument
from holdfast.resources.spec.schema import json_schema
from holdfast.resources.spec.shape import Entry, Spec

SOURCE = Path(holdfast.__file__).parent
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
NO_KINDS = {
    # Programs of their own, which may import nothing of Holdfast: they write resources as any user.
    "plugin/feed.py",
    # `Plugin/NAME` is a source there, beside `Owner/NAME` and `Manager/NAME`.
    "resources/dynamic/source_name.py",
}


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def _unsaid(tree: ast.Module) -> set[int]:
    """The strings that are doc comments or stand in `__all__`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            found.add(id(node.value))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found |= {id(each) for each in ast.walk(node.value)}
    return found


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What may name a kind, each with its line: strings without blanks, and of f-strings the word
    that goes over into a value, for either family."""
    unsaid = _unsaid(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in unsaid and not re.search(r"\s", node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            for piece, value in pairwise(node.values):
                if isinstance(piece, ast.Constant) and isinstance(value, ast.FormattedValue):
                    yield node.lineno, re.split(r"[\s(]", str(piece.value))[-1]
            for family in "46":
                yield (
                    node.lineno,
                    "".join(
                        str(piece.value) if isinstance(piece, ast.Constant) else family
                        for piece in node.values
                    ),
                )


def _names(text: str, kinds: set[str]) -> bool:
    """Whether it is a kind, or an id of one."""
    return text.partition("/")[0] in kinds


def test_no_module_names_a_kind_by_a_string() -> None:
    kinds = set(registry.names())
    found = sorted(
        {
            f"{module}:{line}: {text[:60]!r}"
            for module, tree in _modules()
            if module not in NO_KINDS
            for line, text in _texts(tree)
            if _names(text, kinds)
        }
    )
    assert not found, f"{len(found)} strings name a resource kind:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ('one.kind == "Zone"', True),
        ('_KINDS = ("Zone", "Plugin")', True),
        ('f"Plugin/{name}"', True),
        ('f"no longer HealthCheck/{name}"', True),
        ('site.of(f"IPv{version}Route")', True),
        ('"needs a Zone or a Plugin"', False),
        ('"give its kind and name, such as Interface/wan"', False),
        ('"""Zone"""', False),
        ('__all__ = ["Zone"]', False),
        ("site.of(Zone)", False),
    ],
)
def test_what_counts(code: str, named: bool) -> None:
    kinds = set(registry.names())
    assert any(_names(text, kinds) for _, text in _texts(ast.parse(code))) == named


def test_every_kind_lives_in_the_module_that_is_named_for_it() -> None:
    for name in registry.names():
        module = registry.kind(name).spec.__module__.rpartition(".")[2]
        assert module.replace("_", "") == re.sub("^IPv[46]", "", name).lower()


def _fields(spec: type[Spec], path: str) -> Iterator[tuple[str, Entry]]:
    for entry in spec.entries:
        yield f"{path}.{entry.attribute}", entry
        if entry.shape.nested is not None:
            yield from _fields(entry.shape.nested, f"{path}.{entry.attribute}")


def _says_nothing(entry: Entry) -> bool:
    """A field that has one value works by refusing any other."""
    nested = entry.shape.nested
    if nested is not None:
        return all(map(_says_nothing, nested.entries))
    return len(entry.shape.json.get("enum", "  ")) == 1


def test_every_field_of_a_spec_is_read() -> None:
    """By its attribute, or by a string that is one (`getattr` over several of them)."""
    read: set[str] = set()
    for _, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
    specs = [registry.kind(name).spec for name in registry.names()]
    unread = [
        path
        for spec in (*specs, RouterDocument, PartDocument)
        for path, entry in _fields(spec, spec.__name__)
        if entry.attribute not in read and not _says_nothing(entry)
    ]
    assert unread == []


@pytest.fixture
def blackhole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example of CONTRIBUTING.md, as one more module in the folder of its area."""
    _, _, after = CONTRIBUTING.read_text().partition("`src/holdfast/resources/routes/blackhole.py`")
    code, _, _ = after.partition("```python\n")[2].partition("```")
    (tmp_path / "routes").mkdir()
    (tmp_path / "routes" / "blackhole.py").write_text(code)
    monkeypatch.setattr(resources, "__path__", [*resources.__path__, str(tmp_path)])
    monkeypatch.setattr(routes, "__path__", [*routes.__path__, str(tmp_path / "routes")])
    monkeypatch.setattr(registry, "_KNOWN", {})
    registry._modules.cache_clear()
    registry.names.cache_clear()
    yield
    registry._modules.cache_clear()
    registry.names.cache_clear()
    sys.modules.pop("holdfast.resources.routes.blackhole")
    delattr(routes, "blackhole")


@pytest.mark.usefixtures("blackhole")
def test_a_kind_is_added_by_one_module(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    resource = "\n".join(f"      {line}" for line in reference.example("Blackhole").splitlines())
    file.write_text(
        "apiVersion: holdfast.dev/v1alpha1\nkind: Router\nmetadata: {name: edge}\n"
        f"spec:\n  resources:\n    -{resource[5:]}\n"
    )
    (intent,) = compile_router(load_router(file)).intents
    assert intent.owner == "Blackhole/example"
    assert isinstance(intent, BulkIntent)
    (key,) = intent.batch.keys
    assert str(intent.batch.artifact(key).key) == "route 203.0.113.0/24"
    page = reference.render()
    assert "\n## Blackhole\n\n`net.holdfast.dev/v1alpha1`\n" in page
    assert "| required | packets to it are dropped |" in page
    assert "Blackhole" in str(json_schema())
    assert registry.kind_trouble("Blackholes") == (
        "unknown kind 'Blackholes'; did you mean 'Blackhole'?"
    )
    file.write_text(file.read_text().replace("203.0.113.0/24", "default"))
    with pytest.raises(
        ConfigError, match=r"router.yaml:10:18: spec.network: that is every address"
    ):
        load_router(file)


def test_without_its_module_there_is_no_such_kind() -> None:
    assert registry.find("Blackhole") is None
