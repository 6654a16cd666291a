"""The first word with a daemon: it may still be starting, while its socket is there already."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from holdfast.api import client, limits, sockets
from holdfast.api.conditions import Gone, Silent
from holdfast.cli.daemon import Daemon

# As for the ledger: soon enough not to look hung.
_NOTICE_S = 1.0
# Between two tries; one that listens and ends before it answers is being restarted.
_AGAIN_S = 0.1
_GONE = (
    "nothing was touched: the daemon ended before it answered, or could not start;"
    " `systemctl status holdfast` or its log says why. The same command once more works without it"
)


def reach(held: ExitStack, place: str, shown: Path, *, waits: bool) -> Daemon:
    """The daemon that answers there, for as long as `held` is.

    Raises Silent where none answers in time, and Gone where nobody listens any more: whoever ended
    it did not mean this command to go on in its place.
    """
    patience = limits.STARTING_S if waits else limits.ABOUT_S
    until = time.monotonic() + patience
    notice = threading.Timer(_NOTICE_S, _say_waiting)
    notice.daemon = True
    if waits:
        notice.start()
    try:
        while (left := until - time.monotonic()) > 0:
            with ExitStack() as tried:
                # A new channel each time: one that failed to connect waits before it tries again.
                found = tried.enter_context(client.connected(place))
                try:
                    about = found.about(left)
                except Silent:
                    break
                except Gone:
                    if not sockets.answers(place):
                        raise Gone(f"{shown}: {_GONE}") from None
                    time.sleep(_AGAIN_S)
                    continue
                held.push(tried.pop_all())
                return Daemon(found, about)
    finally:
        notice.cancel()
    raise Silent(f"{shown}: no answer for {patience:.0f} s; {_why(place)}")


def _say_waiting() -> None:
    print("waiting for the daemon to answer", file=sys.stderr, flush=True)


def _why(place: str) -> str:
    if sockets.listener(place) == sockets.SERVICE_MANAGER:
        return (
            "systemd holds this socket for holdfast.service, which does not come up:"
            " `systemctl status holdfast` says why, and without it (`systemctl stop holdfast`)"
            " commands work by themselves"
        )
    return "a process listens there, and hangs: end it, or look into its log"
