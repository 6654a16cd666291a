"""The reference documentation of resource kinds, written off their declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.engine.artifact import ArtifactKind
from holdfast.engine.intent import Action, BulkIntent, Intent
from holdfast.engine.kinds import KINDS
from holdfast.resources import registry
from holdfast.resources.dynamic.dynamic_config_part import API_VERSIONS, KIND, PartDocument
from holdfast.resources.spec.document import RouterDocument
from holdfast.resources.spec.durations import format_duration
from holdfast.resources.spec.shape import Entry, Shape, Spec

_HEAD = """\
# Resources

This page is written by `holdfast.resources.spec.reference` off the declarations of the kinds.

A file holds one document of kind `Router`. Its resources stand under `spec.resources`, each with
`apiVersion`, `kind`, `metadata.name` and `spec`. Every group is also accepted under `routerd.net`
instead of `holdfast.dev`. Resources name each other by `metadata.name`.
"""

_COVERAGE_HEAD = """\
# What each resource leads to

This page is written by `holdfast.resources.spec.reference` off the declarations of the kinds and
off what their examples ask for.

- **ensure**: it shall be there as declared. **observe**: it is others' business, and what needs it
  waits for it. **delete**: it shall not be there (`state: absent`), and goes if it is provably
  ours.
- **adopt?**: whether `holdfast adopt` takes one over that somebody else made.
- **once nothing declares it**: what becomes of one that Holdfast created or adopted. The whole rule
  stands under [Artifacts](#artifacts), with what counts as proof.

What Holdfast only gave values to, a NIC or a setting, is never deleted: it stays as it is, or a
setting is set back to what it was before if the resource says so (`revertOnRelease`).
"""

# Per resource kind, what its examples ask for.
Asked = Mapping[str, Sequence[Intent | BulkIntent]]


def render() -> str:
    kinds = (part for name in registry.names() for part in _kind(name))
    return "\n".join([_HEAD, *_router(), *kinds, *_part()])


def _router() -> Iterator[str]:
    yield "## Router\n"
    yield from _tables(RouterDocument, "")


def _part() -> Iterator[str]:
    yield f"## {KIND}\n"
    yield f"`{API_VERSIONS[0]}`\n"
    yield (
        "What a source other than the startup file contributes: a document of its own, and no"
        " resource of a Router. Its `directives` are of kind `DynamicConfigDirective`.\n"
    )
    yield from _tables(PartDocument, "")


def _kind(name: str) -> Iterator[str]:
    kind = registry.kind(name)
    yield f"## {name}\n"
    yield f"`{registry.api_versions(name)[0]}`\n"
    yield f"{kind.summary}\n"
    yield from _tables(kind.spec, "")
    yield "```yaml"
    yield f"{example(name)}```\n"
    if kind.emits:
        names = ", ".join(f"`{artifact}`" for artifact in kind.emits)
        yield f"Artifacts: {names}. [What becomes of them](coverage.md#artifacts).\n"
    else:
        yield f"No artifact of its own: {kind.effect}.\n"
    if kind.open_to_others is None:
        yield "Only the startup file can declare it.\n"
    else:
        yield "Other sources can declare it too.\n"


def coverage(asked: Asked) -> str:
    """From resources to artifacts: which, whether they can be adopted, how they are cleaned up."""
    lines = [
        _COVERAGE_HEAD,
        "## Resources\n",
        "| resource | artifact | action | adopt? | once nothing declares it |",
        "|---|---|---|---|---|",
        *(line for name in registry.names() for line in _covered(name, asked[name])),
        "",
        "## Artifacts\n",
        "| artifact | known by | ours by | adopt? | cleanup |",
        "|---|---|---|---|---|",
        *(_artifact_row(kind) for kind in KINDS.values()),
    ]
    return "\n".join(lines) + "\n"


def _covered(name: str, asked: Sequence[Intent | BulkIntent]) -> Iterator[str]:
    resource = f"[{name}](resources.md#{name.lower()})"
    kind = registry.kind(name)
    for artifact in kind.emits:
        intents = [intent for intent in asked if artifact_kind(intent) == artifact]
        actions = {i.action if isinstance(i, Intent) else Action.ENSURE for i in intents}
        shown = ", ".join(action for action in Action if action in actions)
        about = KINDS[artifact]
        adopted = fate = "not ours"
        if actions != {Action.OBSERVE}:
            adopted = "yes"
            fate = "; ".join(dict.fromkeys(_fate(about, intent) for intent in intents))
        yield f"| {resource} | `{artifact}` | {shown} | {adopted} | {fate} |"
        resource = ""
    if not kind.emits:
        yield f"| {resource} | none: {kind.effect} | | | |"


def artifact_kind(intent: Intent | BulkIntent) -> str:
    return intent.artifact.key.kind if isinstance(intent, Intent) else intent.batch.kind.name


def _fate(kind: ArtifactKind, intent: Intent | BulkIntent) -> str:
    if kind.deletes_orphans:
        return "goes"
    if isinstance(intent, Intent) and kind.deletes_created(intent.artifact.fields):
        return f"goes if Holdfast created it ({intent.artifact.fields['type']})"
    return "stays"


def _artifact_row(kind: ArtifactKind) -> str:
    known, ours, adopt = kind.identity, kind.proof, f"yes, {kind.adoption}"
    return f"| `{kind.name}` | {known} | {ours} | {adopt} | {kind.cleanup} |"


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
        cells = (f"`{entry.name}`", _holds(entry.shape), _default(entry), entry.about)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""
    for entry in spec.entries:
        if entry.shape.nested is not None:
            inner = f"{path}.{entry.name}".removeprefix(".")
            yield from _tables(entry.shape.nested, inner + ("[]" if entry.shape.many else ""))


def _holds(shape: Shape) -> str:
    if not shape.refers:
        return shape.shown
    kinds = registry.referred(shape.refers)
    return shape.shown.replace("{}", f"{'an' if kinds[0] in 'AEIOU' else 'a'} {kinds}")


def _default(entry: Entry) -> str:
    if entry.required:
        return "required"
    if isinstance(entry.default, bool):
        return str(entry.default).lower()
    if isinstance(entry.default, int | float) and entry.shape.json.get("type") == "string":
        return f"`{format_duration(entry.default)}`"
    if isinstance(entry.default, str | int) and entry.default != "":
        return f"`{entry.default}`"
    return ""
