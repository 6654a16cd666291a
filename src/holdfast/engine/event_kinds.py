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
_OWNER = "the owner, as the source that it is"

# What the data of events is called, and what it means.
FIELDS = {
    "attributes": "what the plugin added to it, with secrets left out",
    "before": "the candidate that was active before; null where there was none",
    "candidate": "the candidate that is active now",
    "cause": "who or what took the trial back",
    "count": "how many it stands for",
    "existing_owner": "who holds it",
    "fields": "each field that differed, as it was found and as it is declared",
    "generation": "the generation of the part",
    "holder": "whose it is",
    "interface_name": "the interface that is meant",
    "left": "what could not be brought back; missing where that is nothing",
    "local_as": "the AS of the BGP instance; 0 where there is none",
    "losses": "what others lost by it; missing where that is nothing",
    "milliseconds": "the time from the change to the end of the repair; null where nothing told of"
    " the change",
    "name": "the name of the action's plan",
    "neighbor": "the address of the peer that is meant",
    "neighbor_id": "the router id of a neighbour of OSPF",
    "operation": "the call that was refused",
    "origin": "where the resource stands in the configuration",
    "owner": "who declares it; missing where nobody does",
    "owners": "the resources that declare it",
    "peer": "the address of the neighbour",
    "peer_address": "the address of the other end",
    "place": "where the resource stands in the configuration",
    "prefix": "the prefix, in its canonical form",
    "previous_as": "the AS before",
    "previous_router_id": "the router id before",
    "previous_state": "the state before",
    "previous_status": "the state of BFD before",
    "proof": "by what right it was changed",
    "protocol": "BGP or OSPF",
    "reason": "what was against it, as metrics count it",
    "risk": "the risk that the plan states",
    "router_id": "the router id of the BGP instance",
    "row": "how many times in a row it was undone",
    "session_id": "the session of the owner",
    "state": "the state, as FRR says it; gone: FRR has it no more",
    "status": "the state of BFD, as FRR says it; gone: FRR has it no more",
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

# Of routing control: owners, and what FRR really has of what they declare.
_ASKED = ("reason", "operation", "neighbor", "peer_address", "interface_name", "prefix", "protocol")
_CONFLICT = (*_ASKED, "existing_owner")
_PEER = ("peer", "state", "previous_state", "owner")
_BFD = ("peer", "status", "previous_status", "owner")
_OSPF = ("neighbor_id", "state", "previous_state", "owner")
_PREFIX = ("prefix", "protocol", "owner")
OWNER_REGISTERED = EventKind(
    "owner-registered", _OWNER, "It began a session.", data=("session_id",)
)
OWNER_DEREGISTERED = EventKind("owner-deregistered", _OWNER, "It ended its session.")
OWNER_EXPIRED = EventKind(
    "owner-expired",
    _OWNER,
    "Nothing was heard of it for its grace: what it declared was withdrawn.",
    warning=True,
)
ROUTE_REFUSED = EventKind(
    "route-refused",
    _OWNER,
    "It asked for what its policy or another owner is against, or had a wrong token.",
    data=_CONFLICT,
    warning=True,
)
ROUTE_OVERRIDDEN = EventKind(
    "route-overridden",
    _OWNER,
    "`admin` took an object over; it is given back when `admin` withdraws it.",
    data=_CONFLICT,
    warning=True,
)
ROUTE_GIVEN_BACK = EventKind(
    "route-given-back", _OWNER, "What `admin` took over is declared again.", data=_ASKED
)
BGP_INSTANCE_CHANGED = EventKind(
    "bgp-instance-changed",
    _OWNER,
    "It changed the AS or the router id.",
    data=("local_as", "router_id", "previous_as", "previous_router_id"),
)
PEER_UP = EventKind("peer-up", "a BGP neighbour", "Its session is established.", data=_PEER)
PEER_DOWN = EventKind(
    "peer-down", "a BGP neighbour", "Its session is established no more.", data=_PEER, warning=True
)
BFD_UP = EventKind("bfd-up", "the other end", "The session of BFD is up.", data=_BFD)
BFD_DOWN = EventKind(
    "bfd-down", "the other end", "The session of BFD is up no more.", data=_BFD, warning=True
)
OSPF_NEIGHBOR_UP = EventKind(
    "ospf-neighbor-up", "an interface", "A neighbour of OSPF is full.", data=_OSPF
)
OSPF_NEIGHBOR_DOWN = EventKind(
    "ospf-neighbor-down",
    "an interface",
    "A neighbour of OSPF is full no more.",
    data=_OSPF,
    warning=True,
)
PREFIX_ADVERTISED = EventKind(
    "prefix-advertised", "a prefix", "FRR sends it to a neighbour.", data=_PREFIX
)
PREFIX_WITHDRAWN = EventKind(
    "prefix-withdrawn", "a prefix", "FRR sends it to no neighbour any more.", data=_PREFIX
)
FRR_CONNECTED = EventKind("frr-connected", "FRR", "The daemons that are needed answer.")
FRR_DISCONNECTED = EventKind(
    "frr-disconnected", "FRR", "One of the daemons that are needed does not answer.", warning=True
)

EVENT_KINDS = {str(kind): kind for kind in tuple(vars().values()) if isinstance(kind, EventKind)}
