"""BFD: profiles, and sessions that are asked for by themselves.

A BGP peer or an OSPF interface with BFD makes its session by itself."""

from __future__ import annotations

from holdfast.dataclass import asdict, dataclass
from holdfast.engine.artifact import Artifact, ArtifactKind, Key, NamedBy, Naming, Value
from holdfast.engine.kinds.bgp_attributes import name_of
from holdfast.engine.kinds.bgp_instance import DEFAULT_VRF
from holdfast.engine.plan import Operation, Risk, Verb

# What FRR takes where nothing is said, times in milliseconds.
DETECT_MULTIPLIER = 3
INTERVAL = 300
ECHO_INTERVAL = 50
MINIMUM_TTL = 254


@dataclass(frozen=True, slots=True)
class Timing:
    """The lines of a profile, or of a session that has its own.

    | field | line | without a line |
    |-------|------|----------------|
    | detect_multiplier | `detect-multiplier N` | 3 |
    | receive_interval | `receive-interval MS` | 300 |
    | transmit_interval | `transmit-interval MS` | 300 |
    | echo_mode | `echo-mode` | off |
    | echo_interval | `echo transmit-interval MS` and `echo receive-interval MS`, both | 50 |
    | passive_mode | `passive-mode` | off |
    | minimum_ttl | `minimum-ttl N`; several hops only | 254 |

    Fields hold what is in force, with or without a line.
    """

    detect_multiplier: int = DETECT_MULTIPLIER
    receive_interval: int = INTERVAL
    transmit_interval: int = INTERVAL
    echo_mode: bool = False
    echo_interval: int = ECHO_INTERVAL
    passive_mode: bool = False
    minimum_ttl: int = MINIMUM_TTL


_TIMING = Timing.__slots__

BFD_PROFILE = ArtifactKind(
    name="bfd_profile",
    identity="name of the profile",
    fields=_TIMING,
    proof="a claim; for profiles that are called by their content, the name with its digest",
    cleanup="deleted when claimed and still what was claimed, or by its name; sessions that use it"
    " go on with FRR's own times",
    deletes_orphans=True,
    urgent=lambda profile, _operation: f"how soon sessions by {profile.key.name} see a failure",
    risk=lambda verb, _subject, _changes: (
        (Risk.LOW, "")
        if verb is Verb.CREATE
        else (Risk.MEDIUM, "sessions by it take other times while they go on")
    ),
    survives_reboot=True,
    needs_program=True,
    shown=lambda name, _fields: ["bfd", "profile", name],
)


def _interrupts(operation: Operation) -> str:
    """It ends for a moment where it is shut, or is another one."""
    if operation.verb is Verb.DELETE:
        return "ends its session"
    changed = {change.field for change in operation.changes}
    return "stops or starts its session" if "shutdown" in changed else ""


BFD_PEER = ArtifactKind(
    name="bfd_peer",
    identity="address of the peer, and whatever else of several hops, own address, VRF and link it"
    " is told by, as FRR writes it",
    fields=("profile", "shutdown", *_TIMING),
    proof="a claim. FRR has no place for a tag on it",
    cleanup="deleted when claimed and still what was claimed",
    deletes_orphans=True,
    after=("link", "address", "bfd_profile"),
    urgent=lambda peer, _operation: f"the sight of {peer.key.name}",
    interrupts=_interrupts,
    risk=lambda verb, _subject, _changes: (
        (Risk.LOW, "")
        if verb is not Verb.DELETE
        else (Risk.MEDIUM, "a failure of the peer is seen later, or not at all")
    ),
    survives_reboot=True,
    needs_program=True,
    shown=lambda name, _fields: ["bfd", "peer", name],
    naming=Naming(by=NamedBy.ADDRESS),
)


def profile_key(name: str) -> Key:
    return Key(BFD_PROFILE.name, name)


def bfd_profile(name: str, timing: Timing) -> Artifact:
    """`profile NAME` below `bfd`, with the lines of `Timing`."""
    fields: dict[str, Value] = asdict(timing)
    return Artifact(profile_key(name), fields)


def profile_of(timing: Timing) -> Artifact:
    """The profile for times that a peer is given by themselves: it is called by its content, and
    shared."""
    name = name_of(f"{field} {value}" for field, value in asdict(timing).items())
    return bfd_profile(name, timing)


def bfd_peer_name(
    peer: str,
    *,
    multihop: bool = False,
    local_address: str = "",
    vrf: str = DEFAULT_VRF,
    interface: str = "",
) -> str:
    """As FRR writes it behind `peer `: `192.0.2.1 multihop local-address 192.0.2.2 vrf red
    interface eth0`, each where it was given."""
    words = [peer]
    if multihop:
        words.append("multihop")
    if local_address:
        words += ["local-address", local_address]
    if vrf != DEFAULT_VRF:
        words += ["vrf", vrf]
    if interface:
        words += ["interface", interface]
    return " ".join(words)


def bfd_peer(
    name: str, *, profile: str | None = None, timing: Timing | None = None, shutdown: bool = False
) -> Artifact:
    """`peer NAME` below `bfd`; name: of `bfd_peer_name`.

    `profile` is the line `profile NAME`, None for none. `shutdown` is true unless `no shutdown` is
    in force: FRR may or may not write that line. The fields of `Timing` are what the session's own
    lines say, and each is None without a line of its own where there is a profile, as the profile
    gives it then; without a profile they hold what is in force, as those of a profile do.
    """
    own: dict[str, Value] = asdict(timing or Timing())
    if profile is not None:
        own = {field: value if timing is not None else None for field, value in own.items()}
    return Artifact(Key(BFD_PEER.name, name), {"profile": profile, "shutdown": shutdown, **own})
