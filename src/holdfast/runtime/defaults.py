"""The daemon's defaults that several of its parts share, each with its reason."""

from __future__ import annotations

# A command that holds the ledger is waited for: its pass is as good as ours.
LEDGER_WAIT_S = 30.0
