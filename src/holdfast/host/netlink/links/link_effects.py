"""What a change of one link does to links: the kernel passes much of it on to those that stand on
it, hold it or are its other end. All of it was seen on running kernels (6.1 and 6.18)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Fields, Value
from holdfast.host.netlink.links import following_macs
from holdfast.host.netlink.links.following_macs import Links

# What has a smaller MTU has no IPv6: no addresses, no routes, no neighbours.
IPV6_LEAST_MTU = 1280
# Joining or leaving these takes the link down for a moment: a bond takes no link that is up, and
# a VRF cycles its members itself. A bond that ends leaves them down.
CYCLING_MASTERS = ("bond", "vrf")
# Their MTU is never larger than that of what they stand on, and their carrier goes with its.
_RIDING = ("vlan", "macvlan")


@dataclass(frozen=True, slots=True)
class Effects:
    """What becomes of links, by name."""

    gone: frozenset[str] = frozenset()
    down: frozenset[str] = frozenset()  # for good, or for a moment
    disabled: frozenset[str] = frozenset()  # IPv6 is switched off on them
    mtus: Mapping[str, int] = field(default_factory=dict)  # of those that get another one
    moved: frozenset[str] = frozenset()  # they get another MAC
    dark: frozenset[str] = frozenset()  # they are up, and lose their carrier
    left: frozenset[str] = frozenset()  # ports that leave their bridge, and stay

    def __bool__(self) -> bool:
        lasting = self.gone or self.down or self.disabled or self.left
        return bool(lasting or self.mtus or self.moved or self.dark)


# Links that are changed, with their fields after that; None: they are gone.
Changed = Mapping[str, Fields | None]


class LinkStack:
    """Links as they are, and how they hang together.

    Besides the fields of artifacts each has `carrier` and, of a VLAN, `loose`: whether it stays up
    when what it stands on goes down.
    """

    def __init__(self, links: Links) -> None:
        self.links = links
        self._above: dict[str, list[str]] = defaultdict(list)
        self._ports: dict[str, list[str]] = defaultdict(list)
        for name, fields in links.items():
            self._above[str(fields.get("parent", ""))].append(name)
            self._ports[str(fields["master"])].append(name)

    def of_end(self, name: str) -> Effects:
        """The kernel deletes the links above a link, and the other end of a pair, along with it;
        tunnels through it stay but lead nowhere, and its ports are let go."""
        gone = [name]
        for lower in gone:  # grows while it is walked
            peer = str(self.links.get(lower, {}).get("peer", ""))
            others = [*self._above[lower], *([peer] if peer in self.links else [])]
            gone += [
                each
                for each in dict.fromkeys(others)
                if each not in gone and self.links[each]["type"] != "ip6tnl"
            ]
        ended = frozenset(gone)
        after = dict.fromkeys(ended)
        down = self._down(self._cycled_members(ended))
        masters = {str(self.links[each]["master"]) for each in ended if each in self.links}
        return Effects(
            gone=ended,
            down=down,
            moved=self._moved(masters - ended, after),
            dark=self._dark(ended | down, after),
            left=frozenset(port for each in ended for port in self._ports[each]) - ended,
        )

    def of_change(self, name: str, field: str, value: Value) -> Effects:
        """What another value of one field does; most do nothing to others."""
        fields = self.links.get(name)
        if fields is None or fields.get(field) == value:
            return Effects()
        after = {name: {**fields, field: value}}
        match field:
            case "up" if not value:
                down = self._down([name])
                return Effects(down=down, dark=self._dark(down, {}))
            case "mtu":
                return Effects(mtus=self._mtus({name: int(str(value))}, after))
            case "mac":
                moved = frozenset(following_macs.led(name, self.links).values())
                return Effects(moved=moved | self._moved([str(fields["master"])], after))
            case "master":
                return self._of_master(name, after)
        return Effects()

    def after_end(self, name: str) -> LinkStack:
        return self._after(self.of_end(name), {})

    def after_change(self, name: str, changed: Fields) -> LinkStack:
        """Links as they are once some fields of one have these values."""
        effects = [self.of_change(name, field, value) for field, value in changed.items()]
        down = frozenset(each for effect in effects for each in effect.down)
        dark = frozenset(each for effect in effects for each in effect.dark)
        return self._after(Effects(down=down, dark=dark), {name: changed})

    def _after(self, effects: Effects, changed: Mapping[str, Fields]) -> LinkStack:
        silent = effects.down | effects.dark
        found: dict[str, Fields] = {}
        for name, fields in self.links.items():
            if name in effects.gone:
                continue
            more: dict[str, Value] = {"carrier": False} if name in silent else {}
            if fields["master"] in effects.gone:
                more["master"] = ""
            found[name] = {**fields, **more, **changed.get(name, {})} if changed or more else fields
        return LinkStack(found)

    def of_new(self, name: str, fields: Fields) -> Effects:
        """What a link does to a bridge or bond that it is made for. A MAC that nobody declared is
        known only once the kernel chose it."""
        master = str(fields.get("master", ""))
        if master not in self.links or "mac" not in fields:
            return Effects()
        return Effects(moved=self._moved([master], {name: fields}))

    def _of_master(self, name: str, after: Mapping[str, Fields]) -> Effects:
        masters = {str(links[name]["master"]) for links in (self.links, after)} - {""}
        there = [master for master in masters if master in self.links]
        cycles = any(self.links[master]["type"] in CYCLING_MASTERS for master in there)
        down = self._down([name]) if cycles else frozenset()
        joined = str(after[name]["master"])
        mtus: Mapping[str, int] = {}
        if self._mtu_follows(joined):
            mtus = self._mtus({joined: self._least_mtu(joined, after, {})}, after)
        # One that left no longer holds up the carrier of its bridge.
        in_bridge = self.links.get(str(self.links[name]["master"]), {}).get("type") == "bridge"
        return Effects(
            down=down,
            mtus=mtus,
            moved=self._moved(there, after),
            dark=self._dark(down, after, frozenset(there)),
            left=frozenset({name}) if in_bridge else frozenset(),
        )

    def _cycled_members(self, ended: Iterable[str]) -> list[str]:
        return [
            port
            for master in ended
            if self.links.get(master, {}).get("type") in CYCLING_MASTERS
            for port in self._ports[master]
        ]

    def _down(self, names: Iterable[str]) -> frozenset[str]:
        """Links that are up and go down, VLANs with what they stand on."""
        found = [name for name in names if self.links[name]["up"]]
        for lower in found:  # grows while it is walked
            found += [
                upper
                for upper in self._above[lower]
                if self.links[upper]["type"] == "vlan"
                and self.links[upper]["up"]
                and not self.links[upper].get("loose")
                and upper not in found
            ]
        return frozenset(found)

    def _moved(self, masters: Iterable[str], after: Changed) -> frozenset[str]:
        """Bridges and bonds whose MAC follows their ports', and what follows them."""
        found: set[str] = set()
        for name in masters:
            fields = self.links.get(name)
            if fields is None or fields["type"] not in following_macs.MASTERS:
                continue
            old = [str(self.links[port]["mac"]) for port in self._ports[name]]
            new = [str(each["mac"]) for each in self._ports_after(name, after).values()]
            if following_macs.moves(name, fields, old, new):
                found |= set(following_macs.led(name, self.links).values())
        return frozenset(found)

    def _mtus(self, given: Mapping[str, int], after: Changed) -> dict[str, int]:
        """The MTUs that follow from these."""
        new = {name: mtu for name, mtu in given.items() if mtu != self.links[name]["mtu"]}
        todo = list(new)
        for name in todo:  # grows while it is walked
            for other, mtu in self._followed_mtus(name, new, after):
                if other not in new and mtu != self.links[other]["mtu"]:
                    new[other] = mtu
                    todo.append(other)
        return new

    def _followed_mtus(
        self, name: str, new: Mapping[str, int], after: Changed
    ) -> Iterable[tuple[str, int]]:
        for upper in self._above[name]:
            if self.links[upper]["type"] in _RIDING:
                yield upper, min(int(str(self.links[upper]["mtu"])), new[name])
        master = str((after.get(name) or self.links[name])["master"])
        if self._mtu_follows(master):
            yield master, self._least_mtu(master, after, new)
        if self.links[name]["type"] == "bond":
            yield from ((port, new[name]) for port in self._ports[name])

    def _mtu_follows(self, master: str) -> bool:
        """Whether the MTU of a bridge is that of its smallest port: until somebody sets another,
        which can be told only while it has ports."""
        fields = self.links.get(master)
        if fields is None or fields["type"] != "bridge":
            return False
        ports = [self.links[port]["mtu"] for port in self._ports[master]]
        return not ports or fields["mtu"] == min(int(str(mtu)) for mtu in ports)

    def _least_mtu(self, master: str, after: Changed, new: Mapping[str, int]) -> int:
        ports = self._ports_after(master, after)
        return min(new.get(port, int(str(fields["mtu"]))) for port, fields in ports.items())

    def _ports_after(self, master: str, after: Changed) -> dict[str, Fields]:
        ports: dict[str, Fields | None] = {port: self.links[port] for port in self._ports[master]}
        ports.update(after)
        return {
            port: fields
            for port, fields in ports.items()
            if fields is not None and fields.get("master") == master
        }

    def _dark(
        self, dead: frozenset[str], after: Changed, left: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Links that lose their carrier: with the other end of their pair, with what they stand on,
        with the last of their ports that had one.

        left: masters that a port of theirs may have left.
        """
        lost = set(dead)
        todo = [*dead, *left]
        for name in todo:  # grows while it is walked
            for other in self._leaning_on(name):
                fields = after.get(other, self.links.get(other))
                if fields is None or other in lost or not fields.get("carrier"):
                    continue
                if self._keeps_carrier(other, fields, dead, lost, after):
                    continue
                lost.add(other)
                todo.append(other)
        return frozenset(lost - dead)

    def _leaning_on(self, name: str) -> Iterable[str]:
        fields = self.links.get(name, {})
        yield from self._above[name]
        yield from (str(fields.get("peer", "")), str(fields.get("master", "")))
        yield name  # a master that was left leans on its ports

    def _keeps_carrier(
        self, name: str, fields: Fields, dead: Set[str], lost: Set[str], after: Changed
    ) -> bool:
        kind = fields["type"]
        if kind == "veth":
            return str(fields.get("peer", "")) not in lost
        if kind in _RIDING:
            parent = str(fields.get("parent", ""))
            # A loose VLAN cares for the carrier below it, and not for whether that is set down.
            return parent not in lost or bool(fields.get("loose") and parent in dead)
        if kind in following_macs.MASTERS and self._ports[name]:
            return any(
                port not in lost and each.get("carrier")
                for port, each in self._ports_after(name, after).items()
            )
        return True
