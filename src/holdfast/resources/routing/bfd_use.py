"""BFD of whatever is told to use it: a BGP peer, an OSPF interface."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.config.document import Location
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds import bfd
from holdfast.resources.resource import Fault
from holdfast.resources.routing.bfd_profile import BFDProfile, Times, timing
from holdfast.resources.spec.shape import optional, reference

_TIMES = tuple((entry.attribute, entry.name, entry.default) for entry in Times.entries)


class BFDUse(Times):
    profile: str | None = optional(reference(BFDProfile), "the times, or else the fields beside it")


def check(use: BFDUse | None, location: Location) -> Iterator[Fault]:
    if use is None or use.profile is None:
        return
    for attribute, name, default in _TIMES:
        if getattr(use, attribute) != default:
            yield Fault((*location, name), "say it in the profile, or leave `profile` out")


def own_times(use: BFDUse) -> bool:
    return any(getattr(use, attribute) != default for attribute, _, default in _TIMES)


def profile(use: BFDUse | None) -> tuple[str | None, Key | None, Artifact | None]:
    """The name of the profile, what it requires, and the artifact where times are given without a
    name: then they are a profile that is called by its content, and shared."""
    if use is None:
        return None, None, None
    if use.profile is not None:
        return use.profile, bfd.profile_key(use.profile), None
    if not own_times(use):
        return None, None, None
    made = bfd.profile_of(timing(use))
    return made.key.name, made.key, made
