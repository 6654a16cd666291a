"""Standard output that is named where it fails: its disk is not that of the ledger."""

from __future__ import annotations

import io
from typing import Any, TextIO

NAME = "standard output"


class _Named(io.FileIO):
    def __init__(self, before: TextIO) -> None:
        super().__init__(before.fileno(), "w", closefd=False)
        self._before = before  # whose end may close the file

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, NAME) from error


def named(stream: TextIO) -> TextIO:
    """The same, where it is a file: what tests put in its place has its own say."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    before: object = stream.buffer
    if not isinstance(before, io.BufferedWriter | io.FileIO):
        return stream
    raw = _Named(stream)
    return io.TextIOWrapper(
        # `python -u` has no buffer in between.
        io.BufferedWriter(raw) if isinstance(before, io.BufferedWriter) else raw,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
