"""Who may speak for which source: what the startup file in force says, and files of tokens."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from holdfast.agent.daemon_status import DaemonStatus
from holdfast.api import own_sockets
from holdfast.api import tokens as api_tokens
from holdfast.api.callers import Caller, CallerKind, Grant, OwnSocket, Speaker
from holdfast.api.server import Server
from holdfast.config import regular_file, trusted_file
from holdfast.dataclass import dataclass, field
from holdfast.errors import Refused
from holdfast.host import rooted
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.dynamic import tokens
from holdfast.resources.dynamic.source_name import OWNER
from holdfast.resources.resource import Resource
from holdfast.resources.router import Router
from holdfast.runtime.log import Level, Line

# How soon another startup file, or another file of tokens, is gone by.
_LOOK_S = 0.5
_MOST_BYTES = 4096


class Loop(Protocol):
    @property
    def paths(self) -> Paths: ...
    @property
    def status(self) -> DaemonStatus: ...
    def tell_beside(self, what: str, trouble: str) -> None: ...


@dataclass(slots=True)
class SpeakerTask:
    loop: Loop
    server: Server
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _told: set[str] = field(default_factory=set)  # sources with a trouble

    async def run(self) -> None:
        while True:
            await self.step()
            await asyncio.sleep(_LOOK_S)

    async def step(self) -> None:
        effective = self.loop.status.effective
        if effective is None:
            return
        # A file may be on a disk that is slow to answer.
        found = await asyncio.to_thread(lambda: list(self._found(effective.startup)))
        self.server.speakers.put(speaker for speaker, _ in found)
        troubles = {speaker.caller.source: said for speaker, said in found if said}
        troubles |= await self.server.follow(self.loop.paths, rooted.parent)
        for source in self._told | troubles.keys():
            said = troubles.get(source, "")
            line = Line(f"{source} is not heard: {said}", Level.ERROR) if said else ""
            self.loop.tell_beside(f"callers of {source}", line)
        self._told = set(troubles)

    def _found(self, startup: Router) -> Iterator[tuple[Speaker, str]]:
        """With what is wrong with its tokens: those that are wrong speak for nobody."""
        for source in registry.having(startup.resources, lambda kind: kind.admits_parts):
            spec = source.spec
            if spec.source is None:
                continue
            if spec.tokens is None and spec.token_file is None and spec.socket is None:
                continue
            digests, trouble = self._digests(source)
            yield Speaker(_caller(source), digests, _own(source)), trouble

    def _digests(self, source: Resource) -> tuple[tuple[bytes, ...], str]:
        declared, where = source.spec.tokens or (), f"{source.place}: spec.tokens"
        environment = self.environment
        if source.spec.token_file is not None:
            path = self.loop.paths.under(source.spec.token_file)
            where, environment = str(path), {}
            try:
                declared = _lines(path)
            except Refused as error:
                return (), str(error)
            except (OSError, ValueError) as error:
                return (), f"{path}: {error}"
        found, troubles = [], []
        for token in declared:
            try:
                found.append(tokens.digest(token, environment, _of_token))
            except ValueError as error:
                troubles.append(f"{where}: one {error}")
        return tuple(found), "; ".join(troubles)


def _of_token(text: str) -> bytes | None:
    return api_tokens.digest_of(text) if api_tokens.is_token(text) else None


def _lines(path: Path) -> tuple[str, ...]:
    with trusted_file.trusted(path), regular_file.opened(path) as descriptor:
        content = os.read(descriptor, _MOST_BYTES).decode("ascii", errors="replace")
    lines = [line.strip() for line in content.splitlines()]
    declared = tuple(line for line in lines if line and not line.startswith("#"))
    if not 0 < len(declared) <= tokens.MOST:
        raise ValueError(f"it has {len(declared)} digests, and needs one or {tokens.MOST}")
    return declared


def _caller(source: Resource) -> Caller:
    who: str = source.spec.source
    kind = CallerKind.OWNER if who.startswith(f"{OWNER}/") else CallerKind.MANAGER
    return Caller(kind, who, frozenset(map(Grant, source.spec.grants or ())))


def _own(source: Resource) -> OwnSocket | None:
    spec = source.spec
    if spec.socket is None:
        return None
    return OwnSocket(spec.socket or own_sockets.place_of(spec.source), spec.socket_group or "")
