"""What a program finds in its files when it starts.

Somebody may change a file and restart the program by hand. A pass that only put the file right
would leave a program running by what it had been: so the contents are noted at each start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from holdfast.host import rooted

OTHER_FILES = "(started with other contents of its files)"
# The same lines by programs that every Debian has, for ExecStartPre; the note is the first word.
NOTE = (
    'note=$1; shift; mkdir -p -m 700 "${note%/*}"; umask 077;'
    ' for file; do sha256sum <"$file" || echo missing; done >"$note"; exit 0'
)


def digest(root: Path, paths: Iterable[str]) -> str:
    """Of the contents that are there now; paths are those before the root."""
    return of_lines("".join(_line(root, path) for path in paths).encode())


def of_lines(lines: bytes) -> str:
    return hashlib.sha256(lines).hexdigest()[:16]


def _line(root: Path, path: str) -> str:
    try:
        with rooted.parent(root, path) as (folder, name):
            return f"{hashlib.sha256(rooted.read(folder, name)).hexdigest()}  -\n"
    except OSError:
        return "missing\n"
