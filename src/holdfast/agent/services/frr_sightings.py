"""What FRR says of what is declared, looked at again and again: no caller waits for it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING

from holdfast.agent.services.backend import Backend
from holdfast.config.part import Target
from holdfast.dataclass import dataclass, field
from holdfast.engine.plan import Plan, Verb
from holdfast.errors import DriverError
from holdfast.resources.spec.durations import format_duration
from holdfast.runtime.routes import documents
from holdfast.runtime.routes.conflicts import Claimed
from holdfast.runtime.routes.sessions import BFD, FRR, Neighbor, Peer, Seen
from holdfast.runtime.routes.status_of import Trouble

if TYPE_CHECKING:  # a router without routing loads nothing of FRR
    from holdfast.frr.daemon import Daemon

LOOK_S = 1.0
# Less often where looking takes long: it takes no more of a core than this.
_SHARE = 0.05
_VERSION = re.compile(r"^FRRouting (\S+)", re.MULTILINE)
_ASKED = {
    documents.INSTANCE: "bgpd",
    documents.PEER: "bgpd",
    documents.PREFIX: "bgpd",
    documents.BFD: "bfdd",
    documents.OSPF: "ospfd",
    documents.OSPF_PREFIX: "ospfd",
}


@dataclass(slots=True)
class FrrSightings:
    backend: Backend
    holders: Callable[[], Mapping[Target, Claimed]]  # of all objects that are declared
    _seen: Seen = field(default_factory=Seen)
    _daemons: dict[str, Daemon] = field(default_factory=dict)

    def seen(self) -> Seen:
        return self._seen

    def troubles(self) -> Mapping[str, Trouble]:
        """Why something is not as declared, by the last pass."""
        plan = self.backend.loop.status.plan
        if plan is None:
            return {}
        found = {held.owner: Trouble(held.reason) for held in plan.blocked}
        for conflict in plan.conflicts:
            trouble = Trouble(f"{conflict.observed.key} is held by {conflict.holder}")
            found.update(dict.fromkeys(conflict.owners, trouble))
        return found

    async def watch(self, looked: Callable[[], None]) -> None:
        """looked: called after each look."""
        while True:
            began = time.monotonic()
            if self.holders() or self._daemons:
                self._seen = await self.backend.in_thread(self._look)
                looked()
            spent = time.monotonic() - began
            await asyncio.sleep(max(LOOK_S, spent / _SHARE))

    def _look(self) -> Seen:
        objects, plan = dict(self.holders()), self.backend.loop.status.plan
        wanted = {_ASKED[target.kind] for target in objects}
        for name in self._daemons.keys() - wanted:
            self._daemons.pop(name).close()
        missing, told = [], {}
        for name in sorted(wanted):
            try:
                told[name] = self._ask(name)
            except DriverError:
                self._daemons.pop(name).close()
                missing.append(name)
        if missing or not wanted:
            return Seen(FRR(missing=tuple(missing)))
        try:
            return self._seen_of(objects, told, plan)
        except DriverError:  # bgpd has ended meanwhile
            return Seen(FRR(missing=("bgpd",)))

    def _seen_of(
        self,
        objects: Mapping[Target, Claimed],
        told: Mapping[str, tuple[str, tuple[str, str]]],
        plan: Plan | None,
    ) -> Seen:
        from holdfast.frr import facts

        version, uptime = next((about for _, about in told.values()), ("", ""))
        bfd = {state.peer: state for state in facts.bfd(_text(told, "bfdd", "[]")).values()}
        peers = {
            state.peer: Peer(
                state.state,
                state.remote_as,
                sum(state.received.values()),
                sum(state.sent.values()),
                _since(state.since),
                bfd[state.peer].status if state.peer in bfd else "",
            )
            for state in facts.peers(_text(told, "bgpd", "{}")).values()
            if _is_held(state.peer, documents.peer_target, objects)
        }
        sessions = {
            peer: BFD(state.status)
            for peer, state in bfd.items()
            if peer in peers or _is_held(peer, documents.bfd_target, objects)
        }
        neighbors = {
            state.router_id: Neighbor(state.state, state.interface)
            for state in facts.ospf(_text(told, "ospfd", "{}")).values()
        }
        advertised = dict(self._advertised(objects)) if "bgpd" in told else {}
        frr = FRR(True, version, uptime)
        return Seen(frr, peers, sessions, neighbors, advertised, _applied(plan))

    def _ask(self, name: str) -> tuple[str, tuple[str, str]]:
        """What it says of its sessions, its version, and how long it runs. Raises DriverError."""
        from holdfast.frr.daemon import Daemon, age

        if name not in self._daemons:
            self._daemons[name] = Daemon(self.backend.paths.frr, name)
        vty = self._daemons[name].connection()
        version = _VERSION.search(vty.show("show version"))
        about = (version[1] if version else "", format_duration(int(age(vty.fileno()))))
        command = {
            "bgpd": "show bgp vrf all summary json",
            "bfdd": "show bfd peers json",
            "ospfd": "show ip ospf neighbor json",
        }[name]
        return vty.show(command), about

    def _advertised(
        self, objects: Mapping[Target, Claimed]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        from holdfast.frr import facts

        bgpd = self._daemons["bgpd"].connection()
        for target, claimed in objects.items():
            if target.kind == documents.PREFIX:
                prefix = claimed.document["spec"]["prefix"]
                peers = facts.advertised_to(bgpd, prefix)
                if peers:
                    yield prefix, peers


def _text(told: Mapping[str, tuple[str, object]], daemon: str, nothing: str) -> str:
    return told[daemon][0] if daemon in told else nothing


def _is_held(peer: str, target: Callable[..., Target], objects: Mapping[Target, Claimed]) -> bool:
    try:
        return target(ip_address(peer)) in objects
    except ValueError:
        return False  # a link: the calls know addresses alone


def _since(moment: float) -> str:
    return format_duration(int(time.time() - moment)) if moment else ""


def _applied(plan: Plan | None) -> frozenset[str]:
    """Resources of which the last pass saw all that they declare."""
    if plan is None:
        return frozenset()
    kept = {owner for op in plan.operations if op.verb is Verb.KEEP for owner in op.owners}
    left = {owner for op in plan.operations if op.verb is not Verb.KEEP for owner in op.owners}
    return frozenset(kept - left)
