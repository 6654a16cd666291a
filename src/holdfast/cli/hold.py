"""The ledger for writing, with a word for whoever has to wait for it."""

from __future__ import annotations

import sys

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

# Soon enough not to look hung, late enough not to speak of every short pass.
NOTICE_S = 1.0


def hold(paths: Paths, command: str, wait: float, *, durable: bool = False) -> Ledger:
    """Raises LedgerError, naming the holder, where it stays held, and Refused while a generation
    waits to be confirmed. durable: what is done is worth nothing if it is lost with a boot."""
    said = False

    def waiting(seconds: float) -> None:
        nonlocal said
        if seconds >= NOTICE_S and not said:
            print("waiting for another process to let go of the ledger", file=sys.stderr)
            said = True

    ledger = Ledger.open(paths, command=command, wait=wait, waiting=waiting, durable=durable)
    try:
        _settle(paths, ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _settle(paths: Paths, ledger: Ledger) -> None:
    """What is overdue is reverted first; while anything waits, nothing else is done."""
    if ledger.waiting() is None:
        return
    from holdfast.runtime.confirm import trial as confirm

    done = confirm.settle(paths, ledger)
    if done is not None:
        print(done.told(), file=sys.stderr)
    confirm.refuse_waiting(ledger)


def say_waiting(paths: Paths) -> None:
    """For commands that only look: what waits to be confirmed, or is overdue; and where the ledger
    is, if it cannot be written."""
    with Ledger.read(paths) as ledger:
        waiting, trouble = ledger.waiting(), ledger.trouble
    if trouble:
        print(f"warning: {trouble}", file=sys.stderr)
    if waiting is None:
        return
    from holdfast.runtime.confirm import trial as confirm

    print(confirm.notice(waiting), file=sys.stderr)
