"""Metrics of routing control, under the names that dashboards for NovaRoute's agent have.

Sessions and prefixes count as active while FRR really has them up and tells them; what is only
declared does not. Labels are owners of the startup file, and words of the schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.status_of import Picture
from holdfast.runtime.routes.tally import UNKNOWN, Durations, Tally


@dataclass(frozen=True, slots=True)
class Counted:
    """One metric and its values by their labels."""

    name: str
    about: str
    labels: tuple[str, ...]
    values: Mapping[Any, float]  # by a tuple with a value of each label
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    name: str
    about: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], Durations]


@dataclass(frozen=True, slots=True)
class RouteNumbers:
    """What is counted, at one moment."""

    tally: Tally
    picture: Picture
    owners: frozenset[str]  # of the startup file
    registered: int
    unauthenticated: int = 0  # calls over the socket with a token of nobody's

    def counted(self) -> Iterator[Counted]:
        tally = self.tally
        yield Counted(
            "novaroute_intents",
            "Objects that owners declared and withdrew.",
            ("owner", "type", "operation"),
            tally.intents,
            counts=True,
        )
        yield Counted(
            "novaroute_policy_violations",
            "Calls that a policy, another owner or a wrong token was against.",
            ("owner", "reason"),
            tally.violations + Counter({(UNKNOWN, "invalid_token"): self.unauthenticated}),
            counts=True,
        )
        yield Counted(
            "novaroute_events",
            "Events of routing control.",
            ("type",),
            {(name,): count for name, count in tally.events.items()},
            counts=True,
        )
        yield Counted(
            "novaroute_events_dropped",
            "Events that subscribers were too slow for.",
            (),
            {(): tally.dropped},
            counts=True,
        )
        yield Counted(
            "novaroute_frr_transactions",
            "Batches that FRR was given.",
            ("result",),
            {(name,): count for name, count in tally.transactions.items()},
            counts=True,
        )
        yield Counted(
            "novaroute_monitoring_errors",
            "Looks at FRR that failed.",
            ("protocol",),
            {(name,): count for name, count in tally.monitoring_errors.items()},
            counts=True,
        )
        yield from self._live()

    def _live(self) -> Iterator[Counted]:
        picture = self.picture
        yield self._active("peers", "BGP sessions that are established.", documents.PEER)
        found: Counter[tuple[str, ...]] = Counter()
        for kind, protocol in ((documents.PREFIX, "BGP"), (documents.OSPF_PREFIX, "OSPF")):
            for owner in self.owners:
                found[owner, protocol] = 0
            for owner, up in picture.live(kind):
                found[self._label(owner), protocol] += up
        about = "Prefixes that FRR tells at least one neighbour."
        yield Counted("novaroute_active_prefixes", about, ("owner", "protocol"), found)
        yield self._active("bfd_sessions", "BFD sessions that are up.", documents.BFD)
        about = "Interfaces with a neighbour of OSPF that is full."
        yield self._active("ospf_interfaces", about, documents.OSPF)
        about = "Owners that began a session."
        yield Counted("novaroute_registered_owners", about, (), {(): self.registered})
        connected = float(picture.seen.frr.connected)
        about = "1 while the daemons of FRR that are needed answer."
        yield Counted("novaroute_frr_connected", about, (), {(): connected})

    def _active(self, what: str, about: str, kind: str) -> Counted:
        found: Counter[tuple[str, ...]] = Counter({(owner,): 0 for owner in self.owners})
        for owner, up in self.picture.live(kind):
            found[(self._label(owner),)] += up
        return Counted(f"novaroute_active_{what}", about, ("owner",), found)

    def _label(self, owner: str) -> str:
        """What others than owners declare is one label."""
        return owner if owner in self.owners else "_config"

    def timed(self) -> Iterator[Timed]:
        tally = self.tally
        yield Timed(
            "novaroute_grpc_request_duration_seconds",
            "How long calls took.",
            ("method",),
            {(name,): durations for name, durations in tally.calls.items()},
        )
        yield Timed(
            "novaroute_frr_transaction_duration_seconds",
            "How long batches of FRR took.",
            (),
            {(): tally.transaction_seconds},
        )
        yield Timed(
            "novaroute_reconcile_cycle_duration_seconds",
            "How long passes took.",
            (),
            {(): tally.pass_seconds},
        )
