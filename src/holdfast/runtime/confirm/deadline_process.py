"""The keeper of one deadline, where no daemon is: a process of its own, without a terminal.

It does nothing but wait, ask whether what worked before still does, and revert what was not
confirmed when the time is up. Whoever else finds an overdue generation does the same; the ledger's
lock sees to it that only one of them does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.characters import escaped
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError, Refused
from holdfast.paths import Paths
from holdfast.runtime.confirm import deadline
from holdfast.runtime.confirm import lifeline_probes as probes
from holdfast.runtime.confirm import trial as confirm
from holdfast.runtime.confirm.revert import Reverted
from holdfast.runtime.log import fault
from holdfast.state.confirmations import OPEN, Confirmation
from holdfast.state.ledger import Ledger

LOG = "/run/holdfast/confirm.log"
COMMAND = "holdfast, keeping a deadline"
# How soon it is noticed that somebody confirmed, and there is nothing more to keep.
_LOOK_S = 1.0
# How often it looks for what is about to wait.
_SOON_S = 0.1
# A pass of another process is waited for.
LOCK_S = 30.0
# Between attempts to revert; after the last of them what is left is said, and left.
PAUSE_S = (1.0, 2.0, 5.0, 10.0, 30.0)


def start(paths: Paths, generation: int) -> int:
    """Before the generation waits, by whoever will see to that: were it the other way round, a
    kill between the two would leave a deadline that nobody keeps. Answers its process number. It
    has a session of its own, so that closing a terminal does not end it."""
    try:
        return _start(paths, generation)
    except OSError as error:
        raise Refused(
            f"nothing was touched: nobody could be left to keep the deadline: {error}"
        ) from error


def _start(paths: Paths, generation: int) -> int:
    log = paths.under(LOG)
    log.parent.mkdir(parents=True, exist_ok=True)
    # Without -P, Python would take modules from the folder that the command was called in.
    argv = [
        sys.executable,
        "-P",
        "-m",
        "holdfast.runtime.confirm.deadline_process",
        str(paths.root),
    ]
    argv += [str(generation), str(os.getpid())]
    null, flags = os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return os.posix_spawn(
        sys.executable,
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, null, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, null, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(log), flags, 0o600),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGTERM],
    )


def keep(
    paths: Paths,
    generation: int,
    say: Callable[[str], None],
    coming: Callable[[], bool] = lambda: False,
) -> None:
    """Until the generation is confirmed or reverted, by whomever. coming: whoever is about to make
    it wait is still there."""
    tried = failed = 0
    seen = False
    asking = _Asking(paths, say)
    while True:
        try:
            # Asked first: what is written after it was last there is read below.
            awaited = coming() and not seen
            with Ledger.read(paths) as ledger:
                waiting = ledger.waiting()
            if waiting is None or waiting.generation != generation:
                if not awaited:
                    return
                time.sleep(_SOON_S)
                continue
            seen = True
            if waiting.state == OPEN and (left := deadline.remaining(waiting)) > 0:
                time.sleep(min(left, _LOOK_S))
                asking.turn(waiting)
                failed = 0
                continue
            last = tried >= len(PAUSE_S)
            with Ledger.open(paths, command=COMMAND, wait=LOCK_S) as ledger:
                done = confirm.settle(paths, ledger, last=last)
            _tell(done, say)
            if done is None or done.finished:
                return
            tried, failed = tried + 1, 0
        except HoldfastError as error:
            say(str(error))
            failed += 1
        except Exception as error:  # nobody else keeps this deadline
            say(fault("it is not reverted yet", error))
            failed += 1
        time.sleep(PAUSE_S[min(tried + failed, len(PAUSE_S)) - 1])


@dataclass(slots=True)
class _Asking:
    """Whether what worked before still does, every few seconds."""

    paths: Paths
    say: Callable[[str], None]
    _probing: probes.LifelineProbes | None = None
    _next: float = 0.0

    def turn(self, waiting: Confirmation) -> None:
        """Whatever goes wrong in it, the deadline is kept."""
        try:
            _tell(self._ask(waiting), self.say)
        except HoldfastError as error:
            self.say(str(error))
        except Exception as error:
            self.say(fault("what worked before cannot be asked", error))
        else:
            return
        self._next = time.monotonic() + probes.EVERY_S

    def _ask(self, waiting: Confirmation) -> Reverted | None:
        if time.monotonic() < self._next:
            return None
        if self._probing is None:
            self._probing = probes.probing(self.paths, waiting)
            self._next = time.monotonic() + probes.EVERY_S
            return None
        if not self._probing.lines:
            return None
        problems = asyncio.run(self._probing.failing())
        self._next = time.monotonic() + probes.EVERY_S
        return self._probing.give_up(COMMAND, LOCK_S) if problems else None


def _tell(done: Reverted | None, say: Callable[[str], None]) -> None:
    if done is not None:
        say(done.told())


def main() -> None:
    root, generation, parent = sys.argv[1:]
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def say(line: str) -> None:
        with suppress(OSError):  # a full disk is no reason to keep no deadline
            print(time.strftime("%Y-%m-%d %H:%M:%S"), escaped(line), file=sys.stderr, flush=True)

    keep(Paths(Path(root)), int(generation), say, lambda: os.getppid() == int(parent))


if __name__ == "__main__":
    main()
