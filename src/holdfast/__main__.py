"""`holdfast`, and `python -m holdfast`."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> int:
    _open_closed_streams()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        # Scripts and shells ask this often; it must not cost the imports of a whole command.
        from holdfast import __version__

        print(f"holdfast {__version__}")
        return 0
    if "serve" in arguments[:3]:
        # Before the imports, which take longest: whoever has the file read again while the daemon
        # starts must not end it. It is read after this in any case.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # A command lives for a moment and makes hardly any cycles; looking for them takes a third of
    # the time of the imports, and more among 100 000 routes.
    gc.disable()
    from holdfast.cli.main import run

    return run(arguments)


def _open_closed_streams() -> None:
    """Who starts a command with a standard stream closed (`>&-`, some schedulers) wants no word of
    it, and gets the same work. Otherwise the next file or socket that is opened would stand in
    that place, and be what programs that are started write to."""
    given = (sys.stdin, sys.stdout, sys.stderr)
    if None not in given:
        return
    for number in range(3):  # each open takes the lowest number that is free
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = given[0] or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (for good)
    sys.stdout = given[1] or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = given[2] or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
