"""All watches behind one face."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

from holdfast.agent.watch import services
from holdfast.agent.watch.files import FileWatch
from holdfast.agent.watch.frr import FrrWatch
from holdfast.agent.watch.hint import CONFIG, FACT, Hint, Writer
from holdfast.agent.watch.netlink import NetlinkWatch
from holdfast.agent.watch.nft import NftWatch
from holdfast.agent.watch.services import ServiceWatch
from holdfast.agent.watch.settings import HostnameWatch, SysctlWatch
from holdfast.agent.watch.watch_scope import watch_scope
from holdfast.agent.watch.wireguard import WireGuardWatch
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Result
from holdfast.engine.intent import Desired
from holdfast.engine.kinds import KINDS
from holdfast.engine.kinds.service import SERVICE
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.errors import DriverError
from holdfast.host.facts import leases, ppp_dns
from holdfast.paths import Paths
from holdfast.state.events import Event

# Where hooks write down what they learned.
_FACTS = {leases.FOLDER: Key(FACT, "lease"), ppp_dns.FOLDER: Key(FACT, "PPP session")}


class _Closes(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closes)


class Watch:
    """Made and used on the event loop; `told` is called there.

    ports: of the netlink sockets that our changes go over, just now (`Reconciler.ports`). What
    comes from them is no news. heard: told of what happens outside and is for no pass to repair.
    """

    def __init__(
        self,
        paths: Paths,
        tag: int,
        told: Callable[[Hint], None],
        ports: Callable[[], Collection[int]],
        heard: Callable[[Event], None],
    ) -> None:
        self.hints: Counter[str] = Counter()  # by kind, for metrics; "" where some were lost
        self._hear = told
        self._paths = paths
        self._config: frozenset[Path] = frozenset()
        self._at: dict[Path, tuple[Key | None, ...]] = {}
        self._unwatched: list[str] = []
        self._open = ExitStack()
        try:
            self._settings = self._keep(SysctlWatch(self._tell))
            self._hostname = self._keep(HostnameWatch(self._tell))
            self._wireguard = self._keep(WireGuardWatch(self._tell))
            self._files = self._keep(FileWatch(self._file, lambda: self._tell(Hint())))
            self._services = self._keep(ServiceWatch(self._tell))
            self._netlink = self._keep(NetlinkWatch(self._tell, tag, ports, self._settings.hurry))
            self._frr = self._keep(FrrWatch(paths.frr, self._tell, heard))
            nft = _nft_watch(self._tell)
            self._nft = self._keep(nft) if nft is not None else None
        except BaseException:
            self._open.close()
            raise

    @property
    def heard(self) -> int:
        """Messages that the kernel sent us."""
        return self._netlink.counts.heard + (self._nft.counts.heard if self._nft else 0)

    @property
    def lost(self) -> int:
        """How often it had more to say than could be kept."""
        return self.hints[""] + (self._nft.counts.lost if self._nft else 0)

    async def start(self) -> None:
        """What it takes to wait for. All else is watched from the beginning."""
        await self._services.start()

    def close(self) -> None:
        self._open.close()

    def _keep(self, t: T) -> T:
        self._open.callback(t.close)
        return t

    def follow(
        self, desired: Desired, claims: Iterable[Claim], tag: int, config: Iterable[Path] = ()
    ) -> list[str]:
        """What is declared and claimed, and the files that declare it. To be told before the look
        that is to see all that came before. Answers what cannot be watched, and why."""
        what = watch_scope(desired, claims, tag)
        self._netlink.follow(what)
        if self._nft is not None:
            self._nft.follow(what.keys)
        self._settings.follow(what.keys)
        self._services.follow(what.keys)
        self._wireguard.follow(what.keys)
        self._frr.follow(what.kinds, desired)
        return self._follow_files(what.keys, frozenset(config))

    def taken(self, keys: Set[Key]) -> None:
        """Places of ours in which a look found something of others': when that goes is told."""
        self._netlink.taken(keys)

    def wrote(self, results: Iterable[Result]) -> None:
        """What a pass has done: of settings, nothing tells whose a change was."""
        for result in results:
            subject = result.operation.subject
            if result.ok and isinstance(subject, Artifact) and subject.key.kind == SYSCTL.name:
                self._settings.wrote(subject.key.name, str(subject.fields["value"]))

    def _follow_files(self, keys: Collection[Key], config: frozenset[Path]) -> list[str]:
        at: dict[Path, tuple[Key | None, ...]] = {}
        for key in sorted(keys):
            for place in _places(key):
                path = self._paths.under(place)
                at[path] = (*at.get(path, ()), key)
        if any(key.kind == SERVICE.name for key in keys):
            at[self._paths.under(services.SUPERVISOR)] = (None,)
        if (at.keys(), config) == (self._at.keys(), self._config):
            self._at = at
        else:
            self._at, self._config = at, config
            folders = map(self._paths.under, _FACTS)
            self._unwatched = self._files.set(config | at.keys(), folders)
        return self._unwatched

    def _file(self, path: Path, writer: Writer | None, whole: bool) -> None:
        if path in self._config:
            self._tell(Hint(CONFIG, Key(CONFIG, str(path)), writer=writer, whole=whole))
        ours = writer is not None and writer.pid == os.getpid()
        for key in self._at.get(path, ()) if not ours else ():
            kind = key.kind if key is not None else SERVICE.name
            self._tell(Hint(kind, key, writer=writer))
        for folder, fact in _FACTS.items():
            if self._paths.under(folder) in (path, path.parent):
                self._tell(Hint(FACT, fact))

    def _tell(self, hint: Hint) -> None:
        self.hints[hint.kind] += 1
        self._hear(hint)


def _places(key: Key) -> Iterator[str]:
    """The files, before the root, that an artifact is or depends on."""
    kind = KINDS[key.kind]
    # What is only to go is not put back where somebody changes it.
    if not kind.imported and (place := kind.place(key)):
        yield place
    yield from services.places(key)


def _nft_watch(told: Callable[[Hint], None]) -> NftWatch | None:
    try:
        return NftWatch(told)
    except DriverError as error:
        if error.code == errno.EPROTONOSUPPORT:
            return None  # a kernel without netfilter has no tables
        raise
