"""BFDProfile: how soon BFD sees a failure."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds import bfd
from holdfast.engine.kinds.bfd import BFD_PROFILE, Timing
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.routing.bgp_instance import GROUPS
from holdfast.resources.site import Site
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import Spec, flag, integer, optional


class Times(Spec):
    """Of a profile, and of whatever has its own."""

    detect_multiplier: int = optional(
        integer(2, 255), "packets that may be lost before the peer is down", default=3
    )
    receive_interval: float = optional(
        duration(0.01, 60), "shortest time between packets of the peer's", default=0.3
    )
    transmit_interval: float = optional(
        duration(0.01, 60), "shortest time between own packets", default=0.3
    )


class BFDProfile(Times):
    echo_mode: bool = optional(
        flag(), "send packets that the peer sends back; not over several hops", default=False
    )
    echo_interval: float = optional(duration(0.01, 60), "between those", default=0.05)
    passive: bool = optional(flag(), "wait until the peer begins", default=False)
    minimum_ttl: int = optional(
        integer(1, 254),
        "packets over several hops with less are dropped",
        name="minimumTTL",
        default=254,
    )


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def check(resource: Resource) -> Iterator[Fault]:
    spec: BFDProfile = resource.spec
    if not spec.echo_mode and spec.echo_interval != 0.05:
        yield Fault(("echoInterval",), "has no meaning without `echoMode: true`")


def timing(times: Times) -> Timing:
    return Timing(
        times.detect_multiplier,
        milliseconds(times.receive_interval),
        milliseconds(times.transmit_interval),
    )


def intents(resource: Resource, _site: Site) -> Iterator[Intent]:
    spec: BFDProfile = resource.spec
    told = Timing(
        spec.detect_multiplier,
        milliseconds(spec.receive_interval),
        milliseconds(spec.transmit_interval),
        spec.echo_mode,
        milliseconds(spec.echo_interval),
        spec.passive,
        spec.minimum_ttl,
    )
    yield Intent(resource.id, bfd.bfd_profile(resource.name, told), resource.place)


KINDS = (
    Kind(
        BFDProfile,
        "Times of BFD, for the peers and interfaces that name it. FRR knows the profile by the name"
        " of the resource.",
        (BFD_PROFILE.name,),
        "detectMultiplier: 3\nreceiveInterval: 100ms\ntransmitInterval: 100ms\n",
        intents,
        check,
        groups=GROUPS,
        open_to_others=nothing_against,
    ),
)
