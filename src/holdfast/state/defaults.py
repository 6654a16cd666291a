"""The ledger's defaults, each with its reason."""

from __future__ import annotations

# Enough to roll back over weeks of edits; contents are stored once however many name them.
KEEP_GENERATIONS = 50

# About 2 MB: days of a busy router, and a subscriber that was away longer resyncs from status.
KEEP_EVENTS = 10_000

# Per source: enough to see what it said last and before that.
KEEP_PARTS = 10

# Per plugin: what it did in the last minutes or hours, with what it complained of.
KEEP_RUNS = 20

# Per source, of those that are decided and no part in force names: an action whose row is gone
# would be a new one if it were proposed again.
KEEP_ACTIONS = 1000

# A 4 MB route list: level 1 takes 30 ms and leaves a quarter; level 6 takes 200 ms for a fifth.
COMPRESSION_LEVEL = 1

# Readers do not block writers under WAL; only a foreign program (a shell, a backup) can.
BUSY_TIMEOUT_S = 5.0

# How often a waiting process asks for the lock again. flock has no timeout of its own, and an
# alarm signal would belong to the whole process.
LOCK_POLL_S = 0.05

# How often it is tried to write back what a working copy of the ledger holds.
WRITE_BACK_S = 5.0
