"""Sources besides the startup file: what they hand in, what of it is in force, who is awaited.

Whoever hands a part in (a plugin's run, the API, the command line) goes through `put`. It checks
what must hold of every part before it is stored; whether a part can be merged with the rest is
found out at every merge, since that depends on what else there is.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.config import merge
from holdfast.config.part import Part
from holdfast.errors import ConfigError, HoldfastError, LedgerError, Problem
from holdfast.paths import Paths
from holdfast.resources.dynamic.contribution import SECRETS
from holdfast.resources.dynamic.dynamic_config_part import GENERATION_MAX
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.source_name import parse_source
from holdfast.state.ledger import Ledger
from holdfast.state.stamp import Stamp, stamp

# How far ahead the clock of a source may be. One that is further ahead would keep its part in
# force for that much longer than it may.
SKEW_S = 10.0
# What a plugin may write at most in one run; 40 000 lines of routes are about 1 MB.
MOST_BYTES = 4 << 20
MOST_RESOURCES = 10_000
MOST_SOURCES = 256
_MOST_DEPTH = 32
_MOST_KEY = 253
_MOST_REASON = 1024

# How soon it is noticed that another process handed a part in. The file of the ledger is looked at
# this often, and read only if it changed.
_LOOK_S = 0.5

# Why the last part of a source was not taken in, by source: for `dynamic list`.
REFUSED = "refused-parts"


def put(ledger: Ledger, part: Part, now: float | None = None) -> None:
    """Stores a part. ConfigError with every reason against it, which is noted for `dynamic list`;
    what the source contributed before then stays in force."""
    problems = list(_problems(ledger, part, time.time() if now is None else now))
    if problems:
        if not any(problem.path == "spec.source" for problem in problems):
            refuse(ledger, part.source, f"{part.ref}: {problems[0].path}: {problems[0].message}")
        raise ConfigError(problems)
    ledger.put_part(part)
    refuse(ledger, part.source, "")


def refuse(ledger: Ledger, source: str, reason: str) -> None:
    """Notes why a source contributes nothing new; empty: it does."""
    known = refusals(ledger)
    if known.get(source, "") == reason:
        return
    known.pop(source, None)
    if reason:
        known[source] = reason[:_MOST_REASON]
    ledger.put_note(REFUSED, {name: known[name] for name in sorted(known)})


def refusals(ledger: Ledger) -> dict[str, str]:
    found = ledger.note(REFUSED)
    return {name: str(reason) for name, reason in found.items()} if isinstance(found, dict) else {}


def withdraw(ledger: Ledger, source: str, now: float | None = None) -> Part:
    """Ends what a source contributes; answers what that was."""
    moment = time.time() if now is None else now
    current = [one for one in in_force(ledger, moment) if one.source == source]
    if not current:
        known = sorted({part.source for part in in_force(ledger, moment)})
        more = f"in force are parts of {', '.join(known)}" if known else "no part is in force"
        raise HoldfastError(f"{source} contributes nothing that could be withdrawn; {more}")
    ledger.end_parts(source)
    refuse(ledger, source, "")
    return current[0]


def in_force(ledger: Ledger, now: float) -> list[Part]:
    """The newest part of each source, unless it is over. Policies of the startup file may shorten
    that further: see `resources.effective`."""
    return merge.split(ledger.parts(newest=True), now)[0]


def _problems(ledger: Ledger, part: Part, now: float) -> Iterator[Problem]:
    def wrong(path: str, message: str) -> Problem:
        return Problem(part.ref, f"spec.{path}", message)

    try:
        parse_source(part.source)
    except ValueError as error:
        yield Problem("", "spec.source", str(error))
        return
    newest = {source: generation for source, generation, _ in ledger.part_index()}
    last = newest.get(part.source, 0)
    if not 0 < part.generation <= GENERATION_MAX:
        yield wrong("generation", f"{part.generation} is not from 1 to {GENERATION_MAX}")
    elif part.generation <= last:
        message = f"{part.generation} is not above {last}, which {part.source} handed in before"
        yield wrong("generation", message)
    if part.source not in newest and len(newest) >= MOST_SOURCES:
        yield wrong("source", f"there are {MOST_SOURCES} sources already")
    for path, message in (*_times(part, now), *_sizes(part)):
        yield wrong(path, message)


def _times(part: Part, now: float) -> Iterator[tuple[str, str]]:
    if not math.isfinite(part.observed) or part.observed < 0:
        yield "observedAt", "is no point in time"
        return
    if part.observed > now + SKEW_S:
        ahead = part.observed - now
        yield "observedAt", f"lies {ahead:.0f} s in the future: the clock of the source is wrong"
    if part.expires is None:
        return
    if not math.isfinite(part.expires):
        yield "expiresAt", "is no point in time"
    elif part.expires <= part.observed:
        yield "expiresAt", "is not after observedAt"
    elif part.expired(now):
        yield "expiresAt", f"was {now - part.expires:.0f} s ago: there is nothing to put in force"


def _sizes(part: Part) -> Iterator[tuple[str, str]]:
    if len(part.resources) > MOST_RESOURCES:
        yield "resources", f"are {len(part.resources)}, more than {MOST_RESOURCES}"
        return
    for path, values in (("resources", part.resources), ("actionPlans", part.action_plans)):
        for number, value in enumerate(values):
            trouble = _trouble(value, 0)
            if trouble:
                yield f"{path}[{number}]", trouble
                return
    for number, raw in enumerate(part.resources):
        # Not only at the merge: what is stored is kept, whether it is rejected or not.
        secret = SECRETS.get(str(raw.get("kind")), "")
        spec = raw.get("spec")
        if secret and isinstance(spec, dict) and secret in spec:
            yield f"resources[{number}].spec.{secret}", "a part cannot hold a secret"
            return
    for number, one in enumerate(part.directives):
        for name, text in (*one.target._asdict().items(), ("reason", one.reason)):
            if not text.isprintable() or len(text) > _MOST_REASON:
                yield f"directives[{number}]", f"{name} is too long, or cannot be printed"
                return
    size = len(json.dumps([part.resources, part.action_plans], allow_nan=False))
    if size > MOST_BYTES:
        yield "resources", f"take {size} bytes, more than {MOST_BYTES}"


def _trouble(value: Any, depth: int) -> str:
    """What makes a value no plain JSON that can be stored and shown; empty where nothing does."""
    if depth > _MOST_DEPTH:
        return f"is nested more than {_MOST_DEPTH} levels deep"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or not key.isprintable() or len(key) > _MOST_KEY:
                return f"has a field name that is none: {str(key)[:40]!r}"
        return next(filter(None, (_trouble(one, depth + 1) for one in value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (_trouble(one, depth + 1) for one in value)), "")
    if isinstance(value, float) and not math.isfinite(value):
        return f"holds {value}, which is no number"
    if isinstance(value, str):
        # SQLite and JSON would not bring half of a surrogate pair back.
        return "" if value.isascii() or _encodable(value) else "holds text that is not Unicode"
    if value is None or isinstance(value, bool | int | float):
        return ""
    return f"holds a {type(value).__name__}, which JSON has not"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class Sources:
    """What the daemon knows of them. `read` and `awaited` belong to the thread of passes."""

    paths: Paths
    _index: tuple[tuple[str, int, float | None], ...] | None = None
    _parts: tuple[Part, ...] = ()
    _late: dict[str, int] | None = None  # over when the daemon started: generation by source
    _ran: set[str] = field(default_factory=set)

    def read(self) -> Sequence[Part]:
        """The newest part of each source; the same value as long as nothing is handed in. What
        cannot be read raises LedgerError: unknown is not the same as none."""
        with Ledger.read(self.paths) as ledger:
            index = ledger.part_index()
            if index != self._index:
                self._parts = tuple(ledger.parts(newest=True))
                self._index = index
        return self._parts

    async def watch(self, changed: Callable[[], None]) -> None:
        """Tells of parts that any process hands in or withdraws."""
        seen: Stamp = ()
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                now = stamp(self.paths)
                if now != seen and await asyncio.to_thread(self._others):
                    changed()
                seen = now
            except LedgerError:
                continue  # the pass says it, and will not go on without

    def _others(self) -> bool:
        with Ledger.read(self.paths) as ledger:
            return self._index is not None and ledger.part_index() != self._index

    def ran(self, source: str) -> None:
        """Whoever makes the parts of this source has run since the start, or failed to."""
        self._ran.add(source)

    def awaited(self, effective: Effective) -> tuple[str, ...]:
        """Sources that run by themselves, were in force once, and have not said anything since
        the daemon started: their parts may be over only because it was down. The first call is
        the start."""
        over = {part.source: part.generation for part in effective.expired}
        if self._late is None:
            self._late = over
        recurring = set(_recurring(effective))
        return tuple(
            source
            for source, generation in sorted(self._late.items())
            if over.get(source) == generation and source in recurring and source not in self._ran
        )


def _recurring(effective: Effective) -> Iterator[str]:
    """Plugins that run without being asked. Others may never run again; their parts are over."""
    resources = effective.startup.resources
    plugins = {one.name: one.spec for one in resources if one.kind == "Plugin"}
    for one in resources:
        if one.kind == "DynamicConfigSource":
            name = one.spec.plugin_ref
            triggers = (*(plugins[name].triggers or ()), *(one.spec.triggers or ()))
            if any(trigger.type == "interval" for trigger in triggers):
                yield f"Plugin/{name}"
