"""Back to a configuration that was applied before: its files are put in place again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from holdfast.config import regular_file, trusted_file
from holdfast.dataclass import dataclass
from holdfast.errors import Refused
from holdfast.host import rooted
from holdfast.paths import Paths
from holdfast.resources.router import Router
from holdfast.runtime.confirm import stored_configuration
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.trusted_configuration import refuse_untrusted_place
from holdfast.state import latches
from holdfast.state.generations import CARRIED_OUT, CONVERGED
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    number: int
    place: Path  # of the Router document, where it is put again
    router: Router
    files: Mapping[Path, bytes]  # those that say something else now


def find(
    paths: Paths,
    ledger: Ledger,
    number: int,
    served: Path | None,
    *,
    overwrite: bool,
    also: Collection[int] = (),
) -> RollbackTarget:
    """What going back to a generation (0: the last one before the present that converged) puts in
    place. served: the file of a daemon that runs. also: users whose file it may be. Refused where
    that would lose something, or where the files could not be written or read there."""
    confirm.refuse_waiting(ledger)
    back = _back(paths, ledger, number or _last(ledger), served)
    refuse_untrusted_place(back.place, also)
    for path in back.files:
        try:
            trusted_file.resolved(path)
        except (OSError, Refused) as error:
            raise _unwritten(back, path, error) from error
    if not overwrite:
        _refuse_lost(ledger, back)
    return back


def put(back: RollbackTarget) -> Callable[[], None]:
    """All of its files, or none; answers with how to undo it. A latch on them is lifted after this:
    until it is known what is in place, nothing that was reverted may be applied by itself."""
    before = {path: _now(path) for path in back.files}
    done: dict[Path, bytes | None] = {}
    for path, content in back.files.items():
        try:
            _write(path, content)
        except (OSError, Refused) as error:
            _undo(done)
            raise _unwritten(back, path, error) from error
        done[path] = before[path]
    return lambda: _undo(done)


def _undo(before: Mapping[Path, bytes | None]) -> None:
    for path, was in before.items():
        if was is None:
            path.unlink()
        else:
            _write(path, was)


def _unwritten(back: RollbackTarget, path: Path, error: OSError | Refused) -> Refused:
    return Refused(
        f"nothing was touched: {path} cannot be put back as in generation {back.number}:"
        f" {error.strerror if isinstance(error, OSError) else error}"
    )


def _last(ledger: Ledger) -> int:
    """The last one before the present that converged and says something else: a candidate that was
    confirmed is there twice, under its own name and in the place of the served file, and parts that
    came and went are not what is gone back from.

    Where the present one is not wholly there either, as others hold something of it, one that is
    there in part will do, and so it does where there is no better one.
    """
    now = stored_configuration.in_force(ledger)
    present = latches.digest_of(now) if now is not None else ""
    earlier = [
        generation
        for generation in ledger.generations()
        if now is not None and generation.number < now.number and generation.state in CARRIED_OUT
        if latches.digest_of(generation) != present
    ]
    if not earlier:
        raise Refused("no generation before the present one was carried out; say which with --to")
    whole = now is not None and now.state == CONVERGED
    better = (
        [generation for generation in earlier if generation.state == CONVERGED]
        if whole
        else earlier
    )
    return (better or earlier)[0].number


def _back(paths: Paths, ledger: Ledger, number: int, served: Path | None) -> RollbackTarget:
    place, router = stored_configuration.load_generation(
        ledger, number, paths.root, served or paths.config
    )
    files = {
        Path(path): content
        for path, content in stored_configuration.startup_files(ledger, number).items()
    }
    if served is not None and place != served:
        # A candidate that took the place of the served file was stored under its own name.
        confirm.refuse_misplaced(router, served, paths.root)
        files[served] = files.pop(place)
        place = served
    other = {path: content for path, content in files.items() if _now(path) != content}
    return RollbackTarget(number, place, router, other)


def _now(path: Path) -> bytes | None:
    try:
        return regular_file.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _refuse_lost(ledger: Ledger, back: RollbackTarget) -> None:
    """What was applied once is in the ledger. What was not would be lost."""
    kept = {file.sha256 for generation in ledger.generations() for file in generation.files}
    for path in back.files:
        now = _now(path)
        if now is not None and hashlib.sha256(now).hexdigest() not in kept:
            raise Refused(
                f"nothing was touched: {path} was edited and never applied, and that would be"
                " lost; keep a copy, or say --overwrite"
            )


def _write(path: Path, content: bytes) -> None:
    # By no link of others: it could lead to a file that root alone may write.
    place = trusted_file.resolved(path)
    with rooted.parent(Path("/"), str(place), create=True) as (folder, name):
        there = rooted.look(folder, name)
        mode = there.mode if there is not None else 0o600
        rooted.replace(folder, name, content, mode, there)
