"""The reference documentation of resource kinds, written off their declarations."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.kinds import KINDS
from holdfast.resources import registry
from holdfast.resources.document import RouterDocument
from holdfast.resources.shape import Entry, Spec

_HEAD = """\
# Resources

This page is written by `holdfast.resources.reference` off the declarations of the kinds.

A file holds one document of kind `Router`. Its resources stand under `spec.resources`, each with
`apiVersion`, `kind`, `metadata.name` and `spec`. Every group is also accepted under `routerd.net`
instead of `holdfast.dev`. Resources name each other by `metadata.name`.
"""


def render() -> str:
    parts = [_HEAD, *_router(), *(part for name in registry.REGISTRY for part in _kind(name))]
    return "\n".join(parts)


def _router() -> Iterator[str]:
    yield "## Router\n"
    yield from _tables(RouterDocument, "")


def _kind(name: str) -> Iterator[str]:
    kind = registry.kind(name)
    yield f"## {name}\n"
    yield f"`{registry.api_versions(name)[0]}`\n"
    yield f"{kind.summary}\n"
    yield from _tables(kind.spec, "")
    yield "```yaml"
    yield f"{example(name)}```\n"
    for artifact in kind.emits:
        about = KINDS[artifact]
        yield f"Artifact `{artifact}`, known by {about.identity}. Cleanup: {about.cleanup}.\n"


def example(name: str) -> str:
    """A resource of the kind, as YAML."""
    kind = registry.kind(name)
    lines = [
        f"apiVersion: {registry.api_versions(name)[0]}",
        f"kind: {name}",
        "metadata: {name: example}",
        "spec:",
        *(f"  {line}" for line in kind.example.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def _tables(spec: type[Spec], path: str) -> Iterator[str]:
    """The fields of a spec, then those of the specs inside it."""
    if path:
        yield f"Fields of `{path}`:\n"
    yield "| field | holds | default | |"
    yield "|---|---|---|---|"
    for entry in spec.entries:
        cells = (f"`{entry.name}`", entry.shape.shown, _default(entry), entry.about)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""
    for entry in spec.entries:
        if entry.shape.nested is not None:
            inner = f"{path}.{entry.name}".removeprefix(".")
            yield from _tables(entry.shape.nested, inner + ("[]" if entry.shape.many else ""))


def _default(entry: Entry) -> str:
    if entry.required:
        return "required"
    if isinstance(entry.default, bool):
        return str(entry.default).lower()
    if isinstance(entry.default, str | int) and entry.default != "":
        return f"`{entry.default}`"
    return ""
