"""What changes in FRR, within milliseconds: sessions that come up or go down, daemons that end.

bgpd and the OSPF daemons tell over their monitors. bfdd would only under a debug that shows in its
configuration, so it is asked, while it has sessions. A daemon that ends closes its connection.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.dataclass import dataclass, replace
from holdfast.errors import DriverError
from holdfast.frr import facts
from holdfast.frr.monitor import Monitor, Record
from holdfast.frr.vty import Vty

BFD_S = 0.1
# A daemon that is not there is looked for again so often.
AGAIN_S = 0.1
# bfdd without sessions, and the OSPF daemons, which tell by themselves only where their
# configuration has `log-adjacency-changes`.
ASKED_S = 1.0
_PEER_UP, _PEER_DOWN = "N9HHH-F8H1M", "PXVXG-TFNNT"
_MONITORED = ("bgpd", "ospfd", "ospf6d")
_ASKED = ("bfdd", "ospfd", "ospf6d")


class About(StrEnum):
    DAEMON = "daemon"
    PEER = "peer"
    BFD = "bfd"
    OSPF = "ospf"


@dataclass(frozen=True, slots=True)
class Change:
    about: About
    name: str  # "bgpd", "192.0.2.2", "192.0.2.2 on eth0"
    is_up: bool
    why: str = ""  # FRR's own words
    vrf: str = "default"
    time: float = 0.0  # when FRR logged it, seconds since 1970; 0 where it was found by asking
    is_back: bool = False  # of a daemon: it answered before, and ended
    neighbour: str = ""  # of a session of BFD or OSPF: an address, or a router's id
    interface: str = ""  # and where it is; empty where FRR does not say


@dataclass(slots=True)
class _Watched:
    """One daemon, while it answers."""

    vty: Vty
    monitor: Monitor | None
    states: Mapping[Any, Any]  # last seen, of what is found by asking


class Watch:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watched: dict[str, _Watched] = {}
        self._known: set[str] = set()  # daemons that answered once
        self._next: dict[str, float] = {}

    def close(self) -> None:
        for daemon in list(self._watched):
            self._drop(daemon)

    def wait(self, timeout: float) -> list[Change]:
        """What changed, as soon as something did; empty once the time is over."""
        until = time.monotonic() + timeout
        while True:
            found = [*self._connect(), *self._asked()]
            if found:
                return found
            left = until - time.monotonic()
            if left <= 0:
                return []
            found = self._told(min(left, self._until_next()))
            if found:
                return found

    def peers(self) -> Mapping[tuple[str, str], facts.PeerState]:
        """DriverError where bgpd does not answer."""
        return facts.peers(self._vty("bgpd").show("show bgp vrf all summary json"))

    def configuration(self, daemon: str) -> str:
        """All lines of it. DriverError where it does not answer."""
        return self._vty(daemon).show("write terminal")

    def _vty(self, daemon: str) -> Vty:
        if daemon not in self._watched:
            raise DriverError(f"{daemon} of FRR does not answer")
        return self._watched[daemon].vty

    def _connect(self) -> Iterator[Change]:
        now = time.monotonic()
        for daemon in (*_MONITORED, "bfdd"):
            if daemon in self._watched or now < self._next.get(daemon, 0.0):
                continue
            self._next[daemon] = now + AGAIN_S
            path = self._folder / f"{daemon}.vty"
            if not path.exists():
                continue
            try:
                vty = Vty(path)
                monitor = vty.monitor() if daemon in _MONITORED else None
                states = _ask(daemon, vty)
            except DriverError:
                continue  # one that was killed leaves its socket
            self._watched[daemon] = _Watched(vty, monitor, states)
            is_back = daemon in self._known
            self._known.add(daemon)
            yield Change(About.DAEMON, daemon, is_up=True, is_back=is_back)

    def _told(self, timeout: float) -> list[Change]:
        """What daemons say by themselves."""
        ended = [daemon for daemon, watched in self._watched.items() if watched.vty.is_gone]
        if ended:  # while it was asked something, which closed the connection
            return [self._end(daemon) for daemon in ended]
        poll = select.poll()
        of: dict[int, str] = {}
        for daemon, watched in self._watched.items():
            for one in (watched.vty, watched.monitor):
                if one is not None:
                    poll.register(one.fileno(), select.POLLIN)
                    of[one.fileno()] = daemon
        ready = poll.poll(max(0.0, timeout) * 1000)
        found: list[Change] = []
        for daemon in dict.fromkeys(of[descriptor] for descriptor, _ in ready):
            watched = self._watched[daemon]
            if watched.monitor is not None:
                found += self._records(daemon, watched, watched.monitor)
            if watched.vty.is_gone:
                found.append(self._end(daemon))
        return found

    def _end(self, daemon: str) -> Change:
        self._drop(daemon)
        return Change(About.DAEMON, daemon, is_up=False, why="it ended")

    def _records(self, daemon: str, watched: _Watched, monitor: Monitor) -> Iterator[Change]:
        looked = daemon != "bgpd"  # what OSPF says of a neighbour is a hint to look
        for record in monitor.records():
            if record.id in (_PEER_UP, _PEER_DOWN) and daemon == "bgpd":
                yield _peer_change(record)
            looked = looked or record.lost > 0
        if looked and not watched.vty.is_gone:
            yield from self._compare(daemon, watched)

    def _asked(self) -> Iterator[Change]:
        for daemon in _ASKED:
            watched = self._watched.get(daemon)
            if watched is not None and time.monotonic() >= self._next.get(daemon, 0.0):
                yield from self._compare(daemon, watched)
                often = daemon == "bfdd" and watched.states
                self._next[daemon] = time.monotonic() + (BFD_S if often else ASKED_S)

    def _until_next(self) -> float:
        now = time.monotonic()
        waits = [AGAIN_S] if self._known - set(self._watched) else [ASKED_S]
        waits += (self._next.get(daemon, 0.0) - now for daemon in _ASKED if daemon in self._watched)
        return max(0.0, min(waits))

    def _compare(self, daemon: str, watched: _Watched) -> Iterator[Change]:
        try:
            states = _ask(daemon, watched.vty)
        except DriverError:
            return  # its end is told by the connection
        before, watched.states = watched.states, states
        for key in {**before, **states}:
            was, now = before.get(key), states.get(key)
            if (was is not None and was.is_up) != (now is not None and now.is_up):
                yield _change(now if now is not None else was, now)

    def _drop(self, daemon: str) -> None:
        watched = self._watched.pop(daemon)
        watched.vty.close()
        if watched.monitor is not None:
            watched.monitor.close()


_QUESTIONS: Mapping[str, tuple[str, Callable[[str], Mapping[Any, Any]]]] = {
    "bgpd": ("show bgp vrf all summary json", facts.peers),
    "bfdd": ("show bfd peers json", facts.bfd),
    "ospfd": ("show ip ospf neighbor json", facts.ospf),
    "ospf6d": ("show ipv6 ospf6 neighbor json", facts.ospf6),
}


def _ask(daemon: str, vty: Vty) -> Mapping[Any, Any]:
    question, read = _QUESTIONS[daemon]
    return read(vty.show(question))


def _peer_change(record: Record) -> Change:
    """`%ADJCHANGE: neighbor 192.0.2.2(Unknown) in vrf default Down Interface down`."""
    words = record.text.split()
    name = words[words.index("neighbor") + 1].partition("(")[0]
    vrf = words[words.index("vrf") + 1] if "vrf" in words else "default"
    is_up = record.id == _PEER_UP
    why = "" if is_up else record.text.partition(" Down ")[2]
    return Change(About.PEER, name, is_up, why, vrf, record.time)


def _change(state: Any, now: Any) -> Change:
    is_up = now is not None and now.is_up
    if isinstance(state, facts.PeerState):
        return Change(About.PEER, state.peer, is_up, "" if is_up else state.state, state.vrf)
    where = f" on {state.interface}" if state.interface else ""
    if isinstance(state, facts.BfdState):
        why = "" if is_up else state.diagnostic
        found = Change(About.BFD, f"{state.peer}{where}", is_up, why, state.vrf)
        return replace(found, neighbour=state.peer, interface=state.interface)
    found = Change(About.OSPF, f"{state.router_id}{where}", is_up, "" if is_up else state.state)
    return replace(found, neighbour=state.router_id, interface=state.interface)
