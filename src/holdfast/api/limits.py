"""The API's limits, each with its reason."""

from __future__ import annotations

import resource

# A part may take 4 MB as the ledger keeps it; nothing that is sent here needs more.
MAX_REQUEST_BYTES = 8 << 20
# Documents are sent in pieces of this size: large enough to be cheap, small beside the limit.
PIECE_BYTES = 256 << 10
MAX_REPLY_BYTES = 4 << 20

# What fails with a long list of problems says them in the trailing metadata.
MAX_METADATA_BYTES = 64 << 10
MAX_ERROR_BYTES = 32 << 10

# Calls at once, on each socket; one more is RESOURCE_EXHAUSTED.
MAX_CALLS = 64
# Of these, as many may be event subscribers, so that there is always room for another call.
MAX_SUBSCRIBERS = 32
# Looks at the host at once. Each reads every artifact and plans; others wait for their turn.
MAX_LOOKS = 2

# A call that takes longer than this has lost its way; a look over 100 000 routes takes two seconds.
CALL_S = 60.0
# Who cannot say who it is by then hangs.
ABOUT_S = 10.0
# For its first pass a daemon lets callers wait; then they are told that there was none yet.
FIRST_PASS_S = 30.0
# A daemon that is about to start: the one before it ends its pass (30 s by the unit), and it is
# started after a second and makes its first pass.
STARTING_S = 90.0
# One that changes things waits for the pass that is under way, for the ledger, and does its own.
CHANGE_S = 900.0
# A subscriber that takes nothing for so long is dropped; it comes back with the last number.
STALLED_S = 60.0
# How long calls that are under way may go on when the daemon ends.
GRACE_S = 1.0

# On each of the sockets. Where there are as many, one that says nothing gives way to the next;
# if none does, the next waits until one of them ends. A client holds one for all of its calls.
MAX_CONNECTIONS = 128
SOCKETS = 3  # besides those of single sources
# What a connection takes: ours, the relay's to the server, and the server's own.
DESCRIPTORS_EACH = 3
# As many descriptors as connections never get: for passes, programs and files, the ledger, the
# console (64 connections and as many that are about to give way), and the libraries.
RESERVED_DESCRIPTORS = 384
# What a daemon that was started by hand asks for; its unit gives it more.
WANTED_DESCRIPTORS = 4096
# Who has said nothing at all by then gives way. A client speaks as soon as it is connected, before
# it is taken; and who is behind a thousand that do not is to be taken within seconds.
UNSAID_S = 0.2
# And who neither said nor was told anything for so long: events are few on a quiet router.
SILENT_S = 30.0
# How often is looked whether somebody gives way, while others wait.
ROOM_S = 0.1
# After accept(2) failed for want of descriptors, which others have to close first.
NO_ROOM_S = 1.0

# Sockets that are a source's own, and connections to each. One owner is one program or a few.
MAX_OWN_SOCKETS = 16
OWN_CONNECTIONS = 8
# Calls that were refused for who made them: so many at once, and so many a second, are answered by
# why; others, that they are too many. The log says it once in a while.
REFUSALS_AT_ONCE = 20.0
REFUSALS_EACH_SECOND = 10.0
REFUSALS_SAID_S = 60.0
# How often is looked whether the caller of a stream may still have it.
ADMITTED_AGAIN_S = 1.0


def connections(descriptors: int, own: int = 0) -> int:
    """As many as each of the sockets may have where a process may have so many descriptors, and so
    many sources have one of their own."""
    taken = RESERVED_DESCRIPTORS + own * OWN_CONNECTIONS * DESCRIPTORS_EACH
    room = (descriptors - taken) // (SOCKETS * DESCRIPTORS_EACH)
    return max(4, min(MAX_CONNECTIONS, room))


def raise_descriptors() -> None:
    """To what is wanted, as far as the machine lets this process go."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if most < 0 else min(WANTED_DESCRIPTORS, most)
    if 0 <= now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
