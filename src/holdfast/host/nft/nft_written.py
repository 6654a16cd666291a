"""The bodies of tables as they were written, in nft's words, for whoever asks later what differs.

The kernel gives a table of 10 000 rules back in a third of a second, and not in the words it was
told. So each body is kept below /run, as long-lived as the tables themselves. Nobody has to trust
it: the table carries the digest of its body in its comment.
"""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds.nft import digest
from holdfast.host import rooted
from holdfast.paths import Paths

_FOLDER = "/run/holdfast/tables"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class WrittenTables:
    def __init__(self, paths: Paths) -> None:
        self._root = paths.root

    def keep(self, table: Artifact) -> None:
        """Not durable, and no matter if it fails: a body that is cut short has another digest."""
        with (
            suppress(OSError),
            rooted.parent(self._root, _place(table.key), create=True) as (folder, name),
            os.fdopen(os.open(name, _FLAGS, 0o600, dir_fd=folder), "wb") as file,
        ):
            file.write(table.payload)

    def forget(self, key: Key) -> None:
        with suppress(OSError), rooted.parent(self._root, _place(key)) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def body(self, seen: Artifact) -> bytes | None:
        """Of a table that is as it was written; None where it is not known."""
        try:
            with rooted.parent(self._root, _place(seen.key)) as (folder, name):
                content = rooted.read(folder, name)
        except (OSError, ValueError):
            return None
        return content if digest(seen.key, content) == seen.fields["content"] else None


def _place(key: Key) -> str:
    return f"{_FOLDER}/{key.name}.nft"
