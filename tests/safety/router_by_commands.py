"""A router that is managed by the commands alone, each in a process of its own.

Whose an object is, is told by who made it appear, as in `world`.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from holdfast.paths import Paths
from tests.cli import confirm_scene as trials
from tests.cli.conftest import Done, Holdfast
from tests.disks import small_disk
from tests.safety import resources, snapshot
from tests.safety.resources import Resources
from tests.safety.router_scene import document
from tests.safety.shared_namespace import TAG, SharedNamespace, all_of, assert_same
from tests.safety.snapshot import Item, Snapshot

# Without it, what others would lose by a change is not changed.
ALLOW = "--allow-side-effects"
_APPLY = ("apply", "router.yaml", "--yes", "--allow-mass-delete", "--allow-lockout")
_CODES = (0, 1, 4)  # converged, something is left, refused
_NO_PROMISE = 5  # what would have to be kept for good is refused while the ledger is not written
_FAULT = "a fault in Holdfast itself"
_NO_TRIAL = "no other configuration than before"
_UP = 1  # of the fields of a link


class RouterByCommands(SharedNamespace):
    def __init__(self) -> None:
        super().__init__()
        # Addresses are tentative for a second otherwise, and then no longer as they were.
        for links in ("all", "default"):
            Path("/proc/sys/net/ipv6/conf", links, "accept_dad").write_text("0")
        self._stack.callback(self._end_keepers)
        self.first, self.second = self._installation("first"), self._installation("second")
        self.disk = self._stack.enter_context(small_disk(Paths(self.first.root).state_dir))

    def _installation(self, name: str) -> Holdfast:
        made = Holdfast(self.root / name, self.root / name / "root")
        made.root.mkdir(parents=True)
        return made

    def _end_keepers(self) -> None:
        for one in (self.first, self.second):
            for pid in trials.keepers(one.root):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def look(self) -> Snapshot:
        """Without the fields of links that are declared here, or that follow from those."""
        seen = snapshot.take(self.sock)
        return seen | {"link": [_settled(item) for item in seen["link"]]}

    def look_at_all(self) -> Snapshot:
        """Links by name: one that was made anew has another index."""
        seen = snapshot.take(self.sock)
        links = [item._replace(where=item.where[:1]) for item in seen["link"]]
        return seen | {"link": sorted(links)}

    def run(self, holdfast: Holdfast, *words: str) -> Done:
        done = Done(*holdfast.forked(*words), "")
        promises = "--confirm-within" in words or "adopt" in words
        assert done.code in (*_CODES, _NO_PROMISE if promises else 0), (words, done)
        assert _FAULT not in done.out, (words, done)
        return done

    def apply(self, wanted: Resources, *options: str) -> Done:
        before = self.theirs(self.look())
        done = self._apply(self.first, wanted, *options)
        self.spares(before, *options)
        return done

    def spares(self, before: Snapshot, *options: str) -> None:
        """Nothing of others' has come, gone or changed, unless it was allowed to go."""
        now = self.look()
        kept = before if ALLOW not in options else _still_there(before, now)
        self.ours = all_of(now) - all_of(kept)
        assert_same(kept, self.theirs(now))

    def _apply(self, holdfast: Holdfast, wanted: Resources, *options: str) -> Done:
        (holdfast.folder / "router.yaml").write_text(document(wanted))
        return self.run(holdfast, *_APPLY, *options)

    def apply_elsewhere(self, wanted: Resources, *options: str) -> None:
        """By another installation, in a network namespace that is not its own."""
        before = self.look()
        self._apply(self.second, wanted, *options)
        assert_same(before, self.look())

    def begin_trial(self, wanted: Resources, *options: str, within: str = "1h") -> bool:
        """Whether it waits to be confirmed. Where not, it was refused or taken back, or it only
        repairs what the file has declared before."""
        before, theirs = self.look_at_all(), self.theirs(self.look())
        done = self._apply(self.first, wanted, "--confirm-within", within, *options)
        if trials.waiting(self.first.root):
            return True
        if _NO_TRIAL in done.out:
            self.spares(theirs, *options)
        else:
            assert_same(before, self.look_at_all())
        return False

    def end_trial(self, way: str, *, meanwhile: bool = False) -> None:
        """By itself once its time is over, or by a command, whether anybody keeps the time. What
        others made meanwhile may hold up the order of addresses, which is then said: to bring it
        back would take theirs."""
        if way == "killed":
            self._end_keepers()
        if way != "deadline":
            done = self.run(self.first, "rollback")
            held_up = done.out.partition("not brought back: ")[2]
            assert not held_up or (meanwhile and held_up.startswith("the order of addresses")), done
        trials.until(lambda: not trials.waiting(self.first.root), "taken back")

    def keeps(self, *theirs: Snapshot) -> None:
        """What others had at one time or the other is there, and the rest is ours."""
        now, known = self.look(), Counter[Item]()
        for one in theirs:
            assert_same(one, _still_there(one, now))
            known |= all_of(one)
        self.ours = all_of(now) - known

    def confirm(self) -> None:
        done = self.run(self.first, "confirm")
        assert done.code == 0, done

    def lose_ledger(self, wanted: Resources) -> None:
        """Whatever is there stays until it is said whose it is, ours too."""
        for path in Paths(self.first.root).state_dir.iterdir():
            path.unlink()
        before = self.look()
        self._apply(self.first, wanted)
        now = self.look()
        assert_same(before, _still_there(before, now))
        self._recover({item.where for item in set(now["link"]) - set(before["link"])})
        assert_same(now, self.look())

    def _recover(self, made: Set[tuple[object, ...]]) -> None:
        """What carries our mark first, then the links that are declared, which carry none. made:
        links that came since the ledger was lost, by name and index."""
        for words in (("--recover", "--apply"), ("--apply",)):
            self.run(self.first, "adopt", *words, "router.yaml")
            seen = self.look()
        tagged = [item for items in seen.values() for item in items if item.protocol == TAG]
        legs = [leg for tag, own in snapshot.routes6(self.sock) if tag == TAG for leg in own]
        # A link that was adopted is never deleted: it may have been somebody else's. One that was
        # made is.
        new = [item for item in seen["link"] if item.where in made]
        self.ours = Counter([*tagged, *legs, *new])

    def check_ledger(self) -> None:
        done = self.run(self.first, "ledger", "check")
        assert done.code == 0, done


def _still_there(before: Snapshot, now: Snapshot) -> Snapshot:
    there = all_of(now)
    return {what: [item for item in items if item in there] for what, items in before.items()}


def _settled(item: Item) -> Item:
    kind, up, _mtu, _mac, master, _alias, group = item.fields
    if item.where[0] in resources.IFNAMES.values():
        return item._replace(fields=(kind, group))
    if kind in ("veth", "bridge", "macvlan"):
        return item._replace(fields=(kind, up, master, group))
    return item


def wrong_links(world: RouterByCommands, wanted: Resources) -> Iterator[str]:
    """Declared routes that are missing, or that lead over another link than their gateway's. What
    was there before may stay while that link is down."""
    seen = world.look_at_all()
    up = {str(item.where[0]): bool(item.fields[_UP]) for item in seen["link"]}
    found: dict[tuple[object, ...], set[str]] = {}
    for item in seen["route4"]:
        table, prefix, length, *_ = item.where
        legs = item.fields[2]
        if item.protocol == TAG and isinstance(legs, tuple):
            found[table, f"{prefix}/{length}"] = {leg[1] for leg in legs}
    for protocol, legs6 in snapshot.routes6(world.sock):
        for leg6 in legs6:
            table, prefix, length, _metric, way = leg6.where
            if protocol == TAG and isinstance(way, tuple):
                found[table, f"{prefix}/{length}"] = {way[1]}
    for route in resources.routes(wanted):
        there = found.get((route.table, route.destination))
        if there != {route.link} and up.get(route.link):
            yield f"{route}: over {there}"
