"""What drivers of artifacts that stand in files share: what the file holds now, for whoever has to
bring it back, and what of it is not as declared, for whoever reads a plan."""

from __future__ import annotations

from contextlib import suppress

from holdfast.engine import difference
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.difference import Difference
from holdfast.engine.driver import Driver
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.file import digest
from holdfast.engine.plan import Operation, Verb
from holdfast.host import rooted
from holdfast.paths import Paths


class InFiles(Driver):
    def __init__(self, paths: Paths) -> None:
        self._root = paths.root

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
        if not all(_mode(one) & 0o004 for one in (wanted, seen) if isinstance(one, Artifact)):
            changed = operation.verb in (Verb.UPDATE, Verb.REPLACE)
            return Difference(note=f"content {'differs' if changed else 'is not shown'} (secret)")
        before = self.content(seen) if isinstance(seen, Artifact) else b""
        after = wanted.payload if operation.verb is not Verb.DELETE else b""
        return difference.of(difference.text(shown.lines(before), shown.lines(after)))


def unchanged(seen: Artifact, content: bytes, sha256: str) -> bytes:
    """The content; ValueError where it is no longer what was seen."""
    if sha256 != seen.fields["sha256"]:
        raise ValueError("it changed while it was being read")
    return content


def _mode(artifact: Artifact) -> int:
    return int(str(artifact.fields.get("mode", "0644")), 8)
