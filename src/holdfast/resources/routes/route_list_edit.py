"""A file of routes that was read before and has changed: only the lines that differ are read.

Most of the time goes into finding where two files of some megabytes differ, which is comparing
memory. What is found must be what reading all of it would find; whatever makes that doubtful (an
error, a route that stands there twice) is left to the whole reading, by answering None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.engine.bulk_keys import Keys, few_of
from holdfast.engine.kinds import route as routes
from holdfast.engine.kinds.route import RouteTemplate
from holdfast.resources.routes import route_lines
from holdfast.resources.routes.route_line import Defaults
from holdfast.resources.routes.route_lines import Groups

_BLOCK = 1 << 16
# Bytes of changed lines; beyond that, the whole file is read faster than it is patched.
_MOST = 1 << 18
_NEAR = 4096


class Span(NamedTuple):
    """The whole lines in which two files differ."""

    start: int
    old_end: int
    new_end: int


class _Edit(NamedTuple):
    old: Groups  # routes of the lines that are gone, and of the lines that came
    new: Groups


def edited(groups: Groups, old: bytes, new: bytes, defaults: Defaults) -> Groups | None:
    """The routes of a file. groups: those of its former content, each of which stood there once.

    None: the whole file has to be read. Lists of keys that did not change are the same objects.
    """
    at = span(old, new)
    if at.old_end - at.start > _MOST or at.new_end - at.start > _MOST:
        return None
    before = _read(old[at.start : at.old_end], defaults)
    after = _read(new[at.start : at.new_end], defaults)
    if before is None or after is None or not _are_new(after, before, groups):
        return None
    edit = _Edit(before, after)
    found: Groups = {}
    for template in dict.fromkeys((*groups, *after)):
        if edit.old.get(template) == edit.new.get(template):
            keys = groups[template]
        else:
            keys = _patched(template, groups.get(template, []), edit, _Beside(old, at, defaults))
        if keys:
            found[template] = keys
    return found


def span(old: bytes, new: bytes) -> Span:
    shorter = min(len(old), len(new))
    same = _common_start(old, new, shorter)
    start = old.rfind(b"\n", 0, same) + 1
    tail = _common_end(old, new, shorter - same)
    newline = old.find(b"\n", len(old) - tail) if tail else -1
    if newline < 0:
        return Span(start, len(old), len(new))
    return Span(start, newline + 1, newline + 1 + len(new) - len(old))


def _common_start(old: bytes, new: bytes, most: int) -> int:
    def same(start: int, end: int) -> bool:
        return new.startswith(old[start:end], start)

    return _first_difference(same, most)


def _common_end(old: bytes, new: bytes, most: int) -> int:
    one, other = len(old), len(new)

    def same(start: int, end: int) -> bool:
        """Counted from the end of each."""
        return new.startswith(old[one - end : one - start], other - end)

    return _first_difference(same, most)


def _first_difference(same: Callable[[int, int], bool], most: int) -> int:
    """same: whether two files are the same from here to there."""
    at = 0
    while at + _BLOCK <= most and same(at, at + _BLOCK):
        at += _BLOCK
    low, high = at, min(at + _BLOCK, most)
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _read(content: bytes, defaults: Defaults) -> Groups | None:
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    read = route_lines.read_lines([lines], defaults) or route_lines.read_exactly([lines], defaults)
    return None if read.faults or read.repeats else read.groups


def _are_new(after: Groups, before: Groups, groups: Groups) -> bool:
    """Whether the routes that came stand nowhere else in the file."""
    came: dict[bytes, set[bytes]] = defaultdict(set)
    for template, keys in after.items():
        came[routes.scope(template)].update(keys)
    for template, keys in before.items():
        came[routes.scope(template)].difference_update(keys)
    scopes = {scope: keys for scope, keys in came.items() if keys}
    return all(
        not few_of(scopes[routes.scope(template)], keys)
        for template, keys in groups.items()
        if routes.scope(template) in scopes
    )


class _Beside(NamedTuple):
    """The lines around the ones that changed, to find the place of routes that came."""

    old: bytes
    at: Span
    defaults: Defaults

    def before(self, template: RouteTemplate) -> bytes | None:
        start = self.old.rfind(b"\n", 0, max(self.at.start - 1, 0)) + 1
        return self._key(self.old[start : self.at.start], template)

    def after(self, template: RouteTemplate) -> bytes | None:
        end = self.old.find(b"\n", self.at.old_end)
        return self._key(self.old[self.at.old_end : end if end >= 0 else None], template)

    def _key(self, line: bytes, template: RouteTemplate) -> bytes | None:
        found = _read(line, self.defaults) if len(line) < _BLOCK else None
        return found[template][0] if found and template in found else None


def _patched(
    template: RouteTemplate, keys: Sequence[bytes], edit: _Edit, beside: _Beside
) -> list[bytes]:
    """In the order of the file where that is easily told: routes in the order of their addresses
    are compared with the kernel's several times faster."""
    gone, came = edit.old.get(template, []), edit.new.get(template, [])
    known = keys if isinstance(keys, Keys) else Keys(keys)
    if gone:
        at = _index(known, gone[0], beside)
        end = at + len(gone)
        if known[at:end] != gone:
            away = set(gone)
            return Keys([*(key for key in known if key not in away), *came])
    else:
        at = end = _place(template, known, beside)
    return known.spliced(at, end, came)


def _place(template: RouteTemplate, keys: Sequence[bytes], beside: _Beside) -> int:
    above = beside.before(template)
    if above is not None:
        return _index(keys, above, beside) + 1
    below = beside.after(template)
    return _index(keys, below, beside) if below is not None else len(keys)


def _index(keys: Sequence[bytes], key: bytes, beside: _Beside) -> int:
    """Lines are of about one length, so that the key is looked for where its line stands."""
    guess = beside.at.start * len(keys) // max(len(beside.old), 1)
    with suppress(ValueError):
        return keys.index(key, max(guess - _NEAR, 0), guess + _NEAR)
    return keys.index(key)
