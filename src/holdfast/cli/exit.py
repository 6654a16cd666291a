"""Exit codes: what a script may rely on."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    CHANGES = 2
    INVALID = 3
    REFUSED = 4
    LEDGER = 5
    USAGE = 64
    INTERRUPTED = 130
    PIPE = 141


MEANINGS: dict[Exit, str] = {
    Exit.OK: "Done. `apply`: converged, which pending resources do not prevent unless what they"
    " wait for is `required`. `status`: everything is healthy.",
    Exit.FAILED: "It failed, or the host is not as declared: an operation failed, a conflict or a"
    " blocked resource is left, something could not be observed, a change on trial was taken back"
    " because something stopped working, the daemon does not answer. `status`: something is not"
    " healthy. `ledger check`: something is wrong with the ledger. `demo`: a step did not hold.",
    Exit.CHANGES: "`plan --detailed-exitcode` only: there are changes to make.",
    Exit.INVALID: "The configuration is invalid; nothing was touched.",
    Exit.REFUSED: "Holdfast could, and won't: a stale plan, a mass delete, a change that would"
    " cut the connection that the operator came in on, a drifted adoption candidate, no `--yes`"
    " where nobody can be asked, the answer was no, or a generation waits to be confirmed. Nothing"
    " was touched.",
    Exit.LEDGER: "The ledger cannot be used: damaged, unreadable, from a newer version, or held by"
    " another process.",
    Exit.USAGE: "The command line itself is wrong: an unknown command, option or argument.",
    Exit.INTERRUPTED: "Interrupted (Ctrl-C). What was half done is resolved by the next pass.",
    Exit.PIPE: "Whoever read the output stopped reading.",
}
