"""The driver of marked blocks inside files that belong to others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Result
from holdfast.engine.kinds.block import BLOCK, parts
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host import rooted, steps
from holdfast.host.contents import InFiles, unchanged

# What a file that held nothing before is made with; one that is there keeps its own.
_NEW_MODE = 0o644


@dataclass(frozen=True, slots=True)
class _Split:
    """A file around a block."""

    before: bytes
    block: bytes | None  # None: it is not there
    after: bytes

    def with_block(self, name: str, content: bytes) -> bytes:
        begin, end = _marks(name)
        before = self.before
        if before and not before.endswith(b"\n"):
            before += b"\n"
        return before + begin + content + end + self.after


class BlockDriver(InFiles):
    kind = BLOCK

    def look(self, key: Key) -> Sighting | None:
        path, name = parts(key)
        try:
            with rooted.parent(self._root, path) as (folder, file):
                block = _split(rooted.read(folder, file), name).block
        except FileNotFoundError:
            return None
        if block is None:
            return None
        digest = hashlib.sha256(block).hexdigest()
        artifact = Artifact(key, {"sha256": digest})
        return Sighting(artifact, holder="marked as Holdfast's", nonce=digest)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._carry_out)

    def content(self, seen: Artifact) -> bytes:
        path, name = parts(seen.key)
        with rooted.parent(self._root, path) as (folder, file):
            content = _split(rooted.read(folder, file), name).block
        if content is None:
            raise ValueError(f"there is no block {name} in it")
        return unchanged(seen, content, hashlib.sha256(content).hexdigest())

    def _carry_out(self, operation: Operation, subject: Artifact) -> None:
        path, name = parts(subject.key)
        if operation.verb is Verb.CREATE:
            self._create(path, name, subject)
            return
        expected = operation.observed if isinstance(operation.observed, Artifact) else subject
        try:
            with rooted.parent(self._root, path) as (folder, file):
                rooted.sweep(folder, file)
                seen, found = _look(folder, file, name)
                if found.block is None:
                    raise FileNotFoundError
                if hashlib.sha256(found.block).hexdigest() != expected.fields["sha256"]:
                    raise ValueError("it changed since the plan was made")
                if operation.verb is Verb.DELETE:
                    content = found.before + found.after
                else:
                    content = found.with_block(name, _payload(subject))
                rooted.replace(folder, file, content, seen.mode, seen)
        except FileNotFoundError:
            if operation.verb is not Verb.DELETE:
                raise ValueError("it is gone since the plan was made") from None

    def _create(self, path: str, name: str, subject: Artifact) -> None:
        content = _payload(subject)
        with rooted.parent(self._root, path, create=True) as (folder, file):
            rooted.sweep(folder, file)
            try:
                seen, found = _look(folder, file, name)
            except FileNotFoundError:
                whole = _Split(b"", None, b"").with_block(name, content)
                rooted.create(folder, file, whole, _NEW_MODE)
                return
            if found.block is not None:
                raise FileExistsError("a block of this name is there already")
            rooted.replace(folder, file, found.with_block(name, content), seen.mode, seen)


def _look(folder: int, file: str, name: str) -> tuple[rooted.Seen, _Split]:
    """The file as it is now. What others write between here and the replace is lost to nobody who
    writes as carefully: they would have to read it again, too."""
    seen = rooted.look(folder, file)
    if seen is None:
        raise FileNotFoundError
    return seen, _split(rooted.read(folder, file), name)


def _marks(name: str) -> tuple[bytes, bytes]:
    return f"# BEGIN holdfast {name}\n".encode(), f"# END holdfast {name}\n".encode()


def _split(content: bytes, name: str) -> _Split:
    begin, end = _marks(name)
    lines = content.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.rstrip() + b"\n" == begin]
    ends = [index for index, line in enumerate(lines) if line.rstrip() + b"\n" == end]
    if not starts and not ends:
        return _Split(content, None, b"")
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        # To guess where it ends could take away what somebody else wrote.
        raise ValueError(
            f"the marks of block {name} do not come in one pair: put them right by hand"
        )
    return _Split(
        b"".join(lines[: starts[0]]),
        b"".join(lines[starts[0] + 1 : ends[0]]),
        b"".join(lines[ends[0] + 1 :]),
    )


def _payload(subject: Artifact) -> bytes:
    content = subject.payload
    if hashlib.sha256(content).hexdigest() != subject.fields["sha256"]:
        raise ValueError("the plan does not carry the content it declares")
    if content and not content.endswith(b"\n"):
        raise ValueError("a block is whole lines")
    return content
