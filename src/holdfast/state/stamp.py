"""Whether anybody wrote to the ledger, without opening it."""

from __future__ import annotations

from holdfast.paths import Paths
from holdfast.state import working_copy

Stamp = tuple[tuple[int, int], ...]


def stamp(paths: Paths) -> Stamp:
    """Changes with whatever anybody writes to the ledger."""
    found = []
    for name in ("state.db", "state.db-wal"):
        try:
            seen = (paths.state_dir / name).stat()
            found.append((seen.st_mtime_ns, seen.st_size))
        except OSError:  # none that could be used: whoever opens it says so
            found.append((0, 0))
    return (*found, *working_copy.stamps(paths))
