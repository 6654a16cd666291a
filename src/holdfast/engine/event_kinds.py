"""Every kind of event there is: what it is about, what it tells, and whether somebody should look.

`docs/reference/events.md` is written off this list, and all events are made with its constants. A
ledger may hold events of an older or newer version, so that the kind of a stored event is a text.
"""

from __future__ import annotations

_ARTIFACT = "an artifact, or how many and the first of them"
_TAKEN = "an artifact, or the network namespace"
_RESOURCE = "a resource"
_SOURCE = "a source"
_ACTION = "an action, or the source of several"
_GENERATION = "a generation"
_LEDGER = "the ledger"
_FRR = "a daemon of FRR"

# What the data of events is called, and what it means.
FIELDS = {
    "attributes": "what the plugin added to it, with secrets left out",
    "before": "the candidate that was active before; null where there was none",
    "candidate": "the candidate that is active now",
    "cause": "who or what took the trial back",
    "count": "how many it stands for",
    "fields": "each field that differed, as it was found and as it is declared",
    "generation": "the generation of the part",
    "holder": "whose it is",
    "left": "what could not be brought back; missing where that is nothing",
    "losses": "what others lost by it; missing where that is nothing",
    "milliseconds": "the time from the change to the end of the repair; null where nothing told of"
    " the change",
    "name": "the name of the action's plan",
    "origin": "where the resource stands in the configuration",
    "owners": "the resources that declare it",
    "place": "where the resource stands in the configuration",
    "proof": "by what right it was changed",
    "risk": "the risk that the plan states",
    "row": "how many times in a row it was undone",
    "times": "how many times it was undone",
    "type": "the type that the plugin gave it",
    "verb": "what a repair takes: create, update, replace or delete",
    "writer": "who made the change; null where that is not known",
}

_DONE = ("owners", "origin", "count", "proof", "losses")
_FAILED = ("owners", "origin", "count")
_UNDONE = ("owners", "origin", "count", "verb", "fields", "writer", "row")
_FOUGHT = ("owners", "times", "writer")


class EventKind(str):
    """The name of a kind, with what is declared about it. Made in this module alone; an Enum of as
    many members takes eight times as long to import."""

    __slots__ = ("data", "failure", "meaning", "subject", "warning")

    subject: str  # what its events are about
    meaning: str
    data: tuple[str, ...]  # of FIELDS
    warning: bool  # somebody should look at it
    failure: bool  # something was tried and not done; a warning, too

    def __new__(
        cls,
        name: str,
        subject: str,
        meaning: str,
        *,
        data: tuple[str, ...] = (),
        warning: bool = False,
        failure: bool = False,
    ) -> EventKind:
        kind = super().__new__(cls, name)
        kind.subject, kind.meaning, kind.data = subject, meaning, data
        kind.warning, kind.failure = warning or failure, failure
        return kind


# What a pass did, and could not do.
CREATED = EventKind("created", _ARTIFACT, "Holdfast made it.", data=_DONE)
UPDATED = EventKind("updated", _ARTIFACT, "Holdfast changed some of its fields.", data=_DONE)
REPLACED = EventKind("replaced", _ARTIFACT, "Holdfast removed it and made it anew.", data=_DONE)
DELETED = EventKind("deleted", _ARTIFACT, "Holdfast removed it.", data=_DONE)
FORGOTTEN = EventKind("forgotten", _ARTIFACT, "Holdfast gave up its claim and left it as it is.")
ADOPTED = EventKind(
    "adopted", _ARTIFACT, "Holdfast took it over as it was, because it was told to."
)
CREATE_FAILED = EventKind(
    "create-failed", _ARTIFACT, "It could not be made.", data=_FAILED, failure=True
)
UPDATE_FAILED = EventKind(
    "update-failed", _ARTIFACT, "It could not be changed.", data=_FAILED, failure=True
)
REPLACE_FAILED = EventKind(
    "replace-failed", _ARTIFACT, "It could not be replaced.", data=_FAILED, failure=True
)
DELETE_FAILED = EventKind(
    "delete-failed", _ARTIFACT, "It could not be removed.", data=_FAILED, failure=True
)

# What others did.
DRIFT = EventKind(
    "drift",
    _ARTIFACT,
    "Somebody changed it, and it is not as declared.",
    data=_UNDONE,
    warning=True,
)
REPAIRED = EventKind(
    "repaired",
    _ARTIFACT,
    "Somebody changed it, and Holdfast put it back.",
    data=(*_UNDONE, "milliseconds"),
)
CONFLICT = EventKind(
    "conflict",
    _ARTIFACT,
    "Somebody put something else in its place.",
    data=("owners", "origin", "writer"),
    warning=True,
)
FIGHT = EventKind(
    "fight", _ARTIFACT, "Somebody undoes it again and again.", data=_FOUGHT, warning=True
)
FIGHT_OVER = EventKind("fight-over", _ARTIFACT, "Nobody undoes it any more.", data=_FOUGHT)

# Trials.
CONFIRM_AWAITED = EventKind(
    "confirm-awaited", _GENERATION, "A trial began, and waits for somebody to confirm it."
)
CONFIRMED = EventKind("confirmed", _GENERATION, "Somebody confirmed the trial.")
REVERTED = EventKind(
    "reverted", _GENERATION, "The trial was taken back.", data=("cause", "left"), warning=True
)
RESTORED = EventKind(
    "restored",
    _ARTIFACT,
    "Others had lost it by the trial, and Holdfast put it back.",
    data=("count", "holder"),
)

# Health checks, and the way out that goes by them.
HEALTHY = EventKind("healthy", _RESOURCE, "The target of the health check answers.")
UNHEALTHY = EventKind(
    "unhealthy", _RESOURCE, "The target of the health check does not answer.", warning=True
)
CANDIDATE_CHANGED = EventKind(
    "candidate-changed",
    _RESOURCE,
    "Another candidate of the policy is active.",
    data=("candidate", "before"),
)

# Routing protocols.
SESSION_UP = EventKind(
    "session-up", _ARTIFACT, "A session with a neighbour is established.", data=("owners",)
)
SESSION_DOWN = EventKind(
    "session-down",
    _ARTIFACT,
    "A session with a neighbour ended.",
    data=("owners",),
    warning=True,
)
DAEMON_ENDED = EventKind(
    "daemon-ended", _FRR, "It does not answer any more: what it ran is over.", warning=True
)
DAEMON_BACK = EventKind("daemon-back", _FRR, "It answers again, and is configured anew.")

# Other sources.
PART_ACCEPTED = EventKind(
    "part-accepted", _SOURCE, "What it declares is in force.", data=("generation",)
)
PART_REJECTED = EventKind(
    "part-rejected",
    _SOURCE,
    "What it declares is not allowed, or not valid.",
    data=("generation",),
    warning=True,
)
PART_ENDED = EventKind("part-ended", _SOURCE, "What it declared is over, or was withdrawn.")
MASK_APPLIED = EventKind("mask-applied", _RESOURCE, "A source masks it.", data=("place",))
MASK_IGNORED = EventKind("mask-ignored", _SOURCE, "A mask of this source has no effect.")
MASK_LIFTED = EventKind("mask-lifted", _RESOURCE, "Nothing masks it any more.")
PLUGIN_FAILED = EventKind("plugin-failed", _RESOURCE, "A run of the plugin failed.", failure=True)
PLUGIN_RECOVERED = EventKind("plugin-recovered", _RESOURCE, "The plugin runs again.")
PLUGIN_SAID = EventKind(
    "plugin-said", _RESOURCE, "The plugin told of something.", data=("type", "attributes")
)
EVENTS_LEFT_OUT = EventKind(
    "events-left-out",
    _SOURCE,
    "The source brought about more events than are kept of one in a minute.",
    data=("count",),
)

# Actions at providers.
ACTION_PROPOSED = EventKind(
    "action-proposed", _ACTION, "A source proposes it.", data=("name", "risk")
)
ACTION_REJECTED = EventKind(
    "action-rejected",
    _SOURCE,
    "An action that the source proposes is not allowed, or not valid.",
    warning=True,
)
ACTION_APPROVED = EventKind("action-approved", _ACTION, "Somebody, or the policy, approved it.")
ACTION_RESUMED = EventKind(
    "action-resumed", _ACTION, "Its run was interrupted, and it is run again."
)
ACTION_SUCCEEDED = EventKind("action-succeeded", _ACTION, "It was carried out.")
ACTION_FAILED = EventKind("action-failed", _ACTION, "It was not carried out.", failure=True)
ACTION_SKIPPED = EventKind(
    "action-skipped", _ACTION, "It was not needed, or nothing proposes it any more."
)
ACTION_LATE = EventKind("action-late", _ACTION, "Its answer came too late, and does not count.")
ACTION_ROLLED_BACK = EventKind("action-rolled-back", _ACTION, "It was undone.")

# The ledger itself.
LEDGER_UNWRITABLE = EventKind(
    "ledger-unwritable",
    _LEDGER,
    "It cannot be written; what happens is kept in memory until it can.",
    warning=True,
)
LEDGER_WRITTEN = EventKind("ledger-written", _LEDGER, "It can be written again, and is whole.")

EVENT_KINDS = {str(kind): kind for kind in tuple(vars().values()) if isinstance(kind, EventKind)}
