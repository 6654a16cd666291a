"""What drivers of artifacts that stand in files share: the look at each, what the file holds now,
for whoever has to bring it back, and what of it is not as declared, for whoever reads a plan."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.engine import difference
from holdfast.engine.artifact import Artifact, ArtifactKind, Key
from holdfast.engine.difference import Difference
from holdfast.engine.driver import Driver, Scope
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.file import digest
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host import rooted
from holdfast.host.steps import words
from holdfast.paths import Paths


class InFiles(Driver):
    """What is declared or claimed is looked at one by one: where one cannot be read, the others are
    seen all the same."""

    kind: ArtifactKind

    def __init__(self, paths: Paths) -> None:
        self._root = paths.root

    def observe(self, scope: Scope) -> Observed:
        sightings: dict[Key, Sequence[Sighting]] = {}
        unknown: dict[str | Key, str] = {}
        for key in sorted({*scope.keys, *scope.claims}):
            if key.kind != self.kind.name:
                continue
            try:
                seen = self.look(key)
            except (OSError, ValueError) as error:
                unknown[key] = f"{key}: could not be read: {words(error)}"
                continue
            if seen is not None:
                sightings[key] = (seen,)
        return Observed(sightings=sightings, unknown=unknown)

    def look(self, key: Key) -> Sighting | None:
        """None where there is none."""
        raise NotImplementedError

    def sweep(self, key: Key) -> None:
        with (
            suppress(OSError, ValueError),
            rooted.parent(self._root, KINDS[key.kind].place(key)) as (folder, name),
        ):
            rooted.sweep(folder, name)

    def content(self, seen: Artifact) -> bytes:
        with rooted.parent(self._root, KINDS[seen.key.kind].place(seen.key)) as (folder, name):
            content = rooted.read(folder, name)
        return unchanged(seen, content, digest(content, _mode(seen)))

    def difference(self, operation: Operation) -> Difference:
        from holdfast.host import shown  # few passes are looked at by anybody

        wanted, seen = operation.subject, operation.observed
        if not isinstance(wanted, Artifact):
            raise TypeError("files come one by one")
        # Whoever may read the plan may read what everybody may.
        both = (wanted, seen) if isinstance(seen, Artifact) else (wanted,)
        if not all(_mode(artifact) & 0o004 for artifact in both):
            changed = operation.verb in (Verb.UPDATE, Verb.REPLACE)
            return Difference(note=f"content {'differs' if changed else 'is not shown'} (secret)")
        before = self.content(seen) if isinstance(seen, Artifact) else b""
        after = wanted.payload if operation.verb is not Verb.DELETE else b""
        return difference.of(difference.text(shown.lines(before), shown.lines(after)))


def at(root: Path, place: str) -> rooted.Seen | None:
    """The file at a place; None where there is none."""
    try:
        with rooted.parent(root, place) as (folder, name):
            return rooted.look(folder, name)
    except FileNotFoundError:
        return None


def unchanged(seen: Artifact, content: bytes, sha256: str) -> bytes:
    """The content; ValueError where it is no longer what was seen."""
    if sha256 != seen.fields["sha256"]:
        raise ValueError("it changed while it was being read")
    return content


def _mode(artifact: Artifact) -> int:
    return int(str(artifact.fields.get("mode", "0644")), 8)
