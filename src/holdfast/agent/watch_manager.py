"""What the daemon watches over: what is declared and claimed, and the files that declare it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from holdfast.agent.watch.hint import Hint
from holdfast.agent.watch.watch import Watch
from holdfast.config import regular_file
from holdfast.config.part import RECORD
from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.engine.intent import Desired
from holdfast.engine.reconcile import Report
from holdfast.errors import DriverError
from holdfast.paths import Paths
from holdfast.resources.router import Ownership, Router
from holdfast.state.events import Event


@dataclass(slots=True)
class WatchManager:
    paths: Paths
    file: Path
    told: Callable[[Hint], None]
    ports: Callable[[], Collection[int]]  # of the sockets that our own changes go over
    missed: Callable[[str], None]  # a file changed before it was watched
    thread: Executor
    heard: Callable[[Event], None]  # what happened outside, and is for no pass to repair
    watch: Watch | None = None
    config: frozenset[Path] = frozenset()  # files that are watched
    _claims: Mapping[Key, Claim] = field(default_factory=dict)
    _followed: tuple[object, ...] = ()
    _held: set[Key] = field(default_factory=set)  # places of ours that others have something in
    _unwatched: tuple[str, ...] = ()

    @property
    def hints(self) -> Mapping[str, int]:
        """How many were told of, by kind."""
        return self.watch.hints if self.watch is not None else {}

    @property
    def lost(self) -> int:
        return self.watch.lost if self.watch is not None else 0

    async def begin(self) -> list[str]:
        """The file alone: it may change between being read and being watched."""
        return await self.follow(None, Desired(()))

    async def follow(self, router: Router | None, desired: Desired) -> list[str]:
        """Answers what cannot be watched, and why."""
        read = router.files if router is not None else ()
        files = {file.path: file.content for file in read if not file.path.startswith(RECORD)}
        config = frozenset({self.file, *map(Path, files)})
        tag = router.ownership.tag if router is not None else Ownership().tag
        if self.watch is None:
            try:
                self.watch = Watch(self.paths, tag, self.told, self.ports, self.heard)
            except (DriverError, OSError) as error:
                # Others have taken all that the kernel has of watches. Tried again each time.
                return [
                    f"nothing outside is watched: {error}; changes are noticed by the timer alone,"
                    " and the file is read again on SIGHUP"
                ]
            await self.watch.start()
        following = (desired, self._claims, config)
        if _same(following, self._followed):
            return list(self._unwatched)
        unwatched = self.watch.follow(desired, self._claims.values(), tag, config)
        self._followed, self._unwatched = following, tuple(unwatched)
        fresh = {path: files[str(path)] for path in config - self.config if str(path) in files}
        if fresh:
            loop = asyncio.get_running_loop()
            if await loop.run_in_executor(self.thread, changed, fresh):
                self.missed("a file that was not watched before")
        self.config = config
        return list(self._unwatched)

    def after(self, claims: Mapping[Key, Claim], report: Report) -> None:
        """What a pass has left."""
        self._claims = claims
        if self.watch is None:
            return
        self.watch.wrote(report.results)
        held = {conflict.desired.key for conflict in report.after.conflicts}
        held.update(candidate.desired.key for candidate in report.after.candidates)
        held.update(held.impaired for held in report.after.blocked if held.impaired is not None)
        if held != self._held:
            self._held = held
            self.watch.taken(held)

    def close(self) -> None:
        if self.watch is not None:
            self.watch.close()
            self.watch = None


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    """The very same, or equal where that costs nothing to find out."""
    return len(one) == len(other) and all(
        left is right or (isinstance(left, frozenset) and left == right)
        for left, right in zip(one, other, strict=True)
    )


def changed(files: Mapping[Path, bytes]) -> bool:
    """Are files others than when they were read?"""
    try:
        return any(regular_file.read(path) != content for path, content in files.items())
    except OSError:
        return True
