"""`holdfast`, and `python -m holdfast`."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> int:
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


if __name__ == "__main__":
    sys.exit(main())
