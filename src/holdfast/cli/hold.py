"""The ledger for writing, with a word for whoever has to wait for it."""

from __future__ import annotations

import sys
import threading

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger

# Soon enough not to look hung, late enough not to speak of every short pass.
NOTICE_S = 1.0


def hold(paths: Paths, command: str, wait: float) -> Ledger:
    """Raises LedgerError, naming the holder, where it stays held."""
    notice = threading.Timer(
        NOTICE_S,
        lambda: print("waiting for another process to let go of the ledger", file=sys.stderr),
    )
    notice.daemon = True
    notice.start()
    try:
        return Ledger.open(paths, command=command, wait=wait)
    finally:
        notice.cancel()
