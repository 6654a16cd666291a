"""Runs the command `holdfast` and writes which of its functions were called, in the order of their
first calls: `python -m tests.docs.traced OUTPUT ARGUMENT...`. SIGUSR1 has it begin anew."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import holdfast
from holdfast.__main__ import main

_SOURCE = f"{Path(holdfast.__file__).parent}/"


class _Calls:
    def __init__(self) -> None:
        self.first: dict[str, None] = {}
        self._importing = threading.local()

    def heard(self, frame: FrameType, event: str, _argument: object) -> None:
        """What runs while a module is imported is no part of the way."""
        code = frame.f_code
        depth = getattr(self._importing, "depth", 0)
        if code.co_name == "<module>":
            self._importing.depth = depth + {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not depth and code.co_filename.startswith(_SOURCE):
            self.first[f"{code.co_filename.removeprefix(_SOURCE)} {code.co_qualname}"] = None

    def begin_anew(self, *_signal: object) -> None:
        self.first = {}


if __name__ == "__main__":
    output = Path(sys.argv[1])
    sys.argv = ["holdfast", *sys.argv[2:]]
    calls = _Calls()
    signal.signal(signal.SIGUSR1, calls.begin_anew)
    threading.setprofile(calls.heard)
    sys.setprofile(calls.heard)
    try:
        status = main()
    finally:
        sys.setprofile(None)
        output.write_text("\n".join(calls.first))
    sys.exit(status)
