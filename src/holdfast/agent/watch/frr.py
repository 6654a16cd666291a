"""FRR: what somebody types into it, daemons that end and come back, and sessions.

bgpd tells of its sessions by itself, and a daemon that ends closes its connection. Nothing tells of
lines that are typed: the configuration is read and compared, so that what we say ourselves is told
of, too. All this waits for sockets, in a thread of its own, which runs while anything of FRR's is
declared or claimed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.watch.hint import Hint
from holdfast.engine import event_kinds
from holdfast.engine.artifact import Key
from holdfast.engine.intent import BulkIntent, Desired
from holdfast.engine.kinds.bfd import BFD_PEER, BFD_PROFILE
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, BGP_NETWORK
from holdfast.engine.kinds.bgp_peer import BGP_PEER, BGP_PEER_GROUP, peer_key
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_INTERFACE
from holdfast.errors import DriverError
from holdfast.state.events import Event

if TYPE_CHECKING:
    from holdfast.frr.watch import Change, Watch

LOOK_S = 0.5
# Less often where the answers would take more of a core than this.
_SHARE = 0.1
_LONGEST_S = 10.0
# How long the thread waits at most before it sees that it is to end.
_WAIT_S = 0.25

_BGP = (BGP_INSTANCE, BGP_FILTER, BGP_PEER_GROUP, BGP_PEER, BGP_NETWORK, BGP_AGGREGATE)
_OSPF = (OSPF_INSTANCE, OSPF_INTERFACE)
KINDS = frozenset(kind.name for kind in (*_BGP, BFD_PROFILE, BFD_PEER, *_OSPF))
# What is looked at where a daemon is not as it was: full passes look at these.
_HINTS = {
    "bgpd": BGP_INSTANCE.name,
    "bfdd": BFD_PEER.name,
    "ospfd": OSPF_INSTANCE.name,
    "ospf6d": OSPF_INSTANCE.name,
}

Owners = Mapping[Key, tuple[str, ...]]


class FrrWatch:
    """On the event loop, but for its thread."""

    def __init__(
        self,
        folder: Path,
        told: Callable[[Hint], None],
        heard: Callable[[Event], None],
    ) -> None:
        self._folder = folder
        self._told = told
        self._heard = heard
        self._owners: Owners = {}
        self._loop = asyncio.get_running_loop()
        self._stop: threading.Event | None = None

    def close(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    def follow(self, kinds: Set[str], desired: Desired) -> None:
        """kinds: of what is declared or claimed."""
        if KINDS.isdisjoint(kinds):
            self.close()
            return
        self._owners = _owners(desired)
        if self._stop is None:
            self._stop = threading.Event()
            arguments = (self._stop,)
            threading.Thread(target=self._run, args=arguments, name="frr", daemon=True).start()

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._watch(stop)
            except Exception as error:  # nobody waits for this thread
                context = {"message": "FRR is not watched", "exception": error}
                self._call(stop, self._loop.call_exception_handler, context)
                stop.wait(LOOK_S)

    def _watch(self, stop: threading.Event) -> None:
        from holdfast.frr.watch import Watch  # only where something of FRR's is declared

        watch = Watch(self._folder)
        try:
            texts: dict[str, int] = {}
            due = 0.0
            while not stop.is_set():
                for change in watch.wait(_WAIT_S):
                    self._call(stop, self._changed, change)
                started = time.monotonic()
                if started < due:
                    continue
                for daemon in _typed(watch, texts):
                    self._call(stop, self._hint, daemon)
                now = time.monotonic()
                due = now + min(max(LOOK_S, (now - started) / _SHARE), _LONGEST_S)
        finally:
            watch.close()

    def _call(self, stop: threading.Event, what: Callable[..., None], *arguments: object) -> None:
        def call() -> None:
            if not stop.is_set():
                what(*arguments)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call)

    def _hint(self, daemon: str) -> None:
        self._told(Hint(_HINTS[daemon]))

    def _changed(self, change: Change) -> None:
        from holdfast.frr.daemon import SETTLES_S
        from holdfast.frr.watch import About

        if change.about is not About.DAEMON:
            event = _session_event(change, self._owners)
            if event is not None:
                self._heard(event)
            return
        if change.is_up:
            # Until then nobody knows whether it has read frr.conf.
            self._loop.call_later(SETTLES_S + 0.05, self._settled, change.name, self._stop)
        if change.is_back:
            self._heard(Event(event_kinds.DAEMON_BACK, change.name, "it answers again"))
        elif not change.is_up:
            self._heard(Event(event_kinds.DAEMON_ENDED, change.name, change.why))
        self._hint(change.name)

    def _settled(self, daemon: str, stop: threading.Event | None) -> None:
        if stop is not None and not stop.is_set():
            self._hint(daemon)


def _typed(watch: Watch, texts: dict[str, int]) -> Iterator[str]:
    """The daemons that are configured otherwise than when they were asked last. texts: digests, as
    passwords stand in them."""
    for daemon in _HINTS:
        try:
            text = hash(watch.configuration(daemon))
        except DriverError:
            continue  # its end is told by the connection
        before = texts.get(daemon)
        texts[daemon] = text
        if before is not None and before != text:
            yield daemon


def _owners(desired: Desired) -> Owners:
    found: dict[Key, tuple[str, ...]] = {}
    for intent in desired.intents:
        if not isinstance(intent, BulkIntent) and intent.artifact.key.kind in KINDS:
            key = intent.artifact.key
            found[key] = (*found.get(key, ()), intent.owner)
    return found


def _session_event(change: Change, owners: Owners) -> Event | None:
    """None where nobody declares it."""
    key = _key(change, owners)
    if key is None:
        return None
    kind = event_kinds.SESSION_UP if change.is_up else event_kinds.SESSION_DOWN
    said = "the session is up" if change.is_up else f"the session ended: {change.why}"
    return Event(kind, str(key), said.removesuffix(": "), data={"owners": list(owners[key])})


def _key(change: Change, owners: Owners) -> Key | None:
    from holdfast.frr.watch import About

    if change.about is About.PEER:
        key = peer_key(change.name, change.vrf)
        return key if key in owners else None
    if change.about is About.BFD:
        return _first(key for key in owners if _is_session(key, change.neighbour, change.interface))
    where = change.interface
    return _first(
        key for key in owners if key.kind == OSPF_INTERFACE.name and key.name.split()[1] == where
    )


def _is_session(key: Key, peer: str, link: str) -> bool:
    words = key.name.split()
    return key.kind == BFD_PEER.name and words[0] == peer and (not link or link in words)


def _first(keys: Iterable[Key]) -> Key | None:
    return next(iter(keys), None)
