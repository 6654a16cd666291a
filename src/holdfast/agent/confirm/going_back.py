"""Back to a configuration that was applied before: its files are put in place again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from holdfast.agent.confirm import stored
from holdfast.agent.confirm import window as confirm
from holdfast.config import regular_file
from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.host import rooted
from holdfast.paths import Paths
from holdfast.resources.router import Router
from holdfast.state import latches
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Back:
    number: int
    place: Path  # of the Router document, where it is put again
    router: Router
    files: Mapping[Path, bytes]  # those that say something else now


def find(
    paths: Paths, ledger: Ledger, number: int, served: Path | None, *, overwrite: bool
) -> Back:
    """What going back to a generation (0: the last one before the present that converged) puts in
    place. served: the file of a daemon that runs. Refused where that would lose something."""
    confirm.refuse_waiting(ledger)
    back = _back(paths, ledger, number or _last(ledger), served)
    if not overwrite:
        _refuse_lost(ledger, back)
    return back


def put(back: Back) -> None:
    """All of its files, or none. A latch on them is lifted after this: until it is known what is
    in place, nothing that was reverted may be applied by itself."""
    before = {path: _now(path) for path in back.files}
    for path, content in back.files.items():
        try:
            _write(path, content)
        except OSError as error:
            for other, was in before.items():
                if other == path:
                    break
                if was is None:
                    other.unlink()
                else:
                    _write(other, was)
            raise Refused(
                f"nothing was touched: {path} cannot be put back as in generation {back.number}:"
                f" {error.strerror}"
            ) from error


def _last(ledger: Ledger) -> int:
    """The last one before the present that converged and says something else: a candidate that was
    confirmed is there twice, under its own name and in the place of the served file, and parts that
    came and went are not what is gone back from."""
    now = stored.in_force(ledger)
    present = latches.digest_of(now) if now is not None else ""
    for one in ledger.generations():
        earlier = now is not None and one.number < now.number and one.state == "converged"
        if earlier and latches.digest_of(one) != present:
            return one.number
    raise Refused("no generation before the present one converged; say which one with --to")


def _back(paths: Paths, ledger: Ledger, number: int, served: Path | None) -> Back:
    place, router = stored.load_generation(ledger, number, paths.root, served or paths.config)
    files = {Path(path): content for path, content in stored.startup_files(ledger, number).items()}
    if served is not None and place != served:
        # A candidate that took the place of the served file was stored under its own name.
        confirm.refuse_misplaced(router, served, paths.root)
        files[served] = files.pop(place)
        place = served
    other = {path: content for path, content in files.items() if _now(path) != content}
    return Back(number, place, router, other)


def _now(path: Path) -> bytes | None:
    try:
        return regular_file.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _refuse_lost(ledger: Ledger, back: Back) -> None:
    """What was applied once is in the ledger. What was not would be lost."""
    kept = {file.sha256 for one in ledger.generations() for file in one.files}
    for path in back.files:
        now = _now(path)
        if now is not None and hashlib.sha256(now).hexdigest() not in kept:
            raise Refused(
                f"nothing was touched: {path} was edited and never applied, and that would be"
                " lost; keep a copy, or say --overwrite"
            )


def _write(path: Path, content: bytes) -> None:
    place = path.resolve()
    with rooted.parent(Path("/"), str(place), create=True) as (folder, name):
        there = rooted.look(folder, name)
        mode = there.mode if there is not None else 0o600
        rooted.replace(folder, name, content, mode, there)
