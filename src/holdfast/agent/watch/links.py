"""Links as the kernel last told of them, to know what is new in what it tells next.

Who changed a link is not told (the kernel names no port for it), and most messages about one are
about nothing that is compared: its carrier, a port of a bridge, a wireless signal. So a link is
told of when something of it is other than before, our own changes included.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from holdfast.agent.watch.hint import FACT, Hint
from holdfast.dataclass import dataclass, field
from holdfast.engine.artifact import Fields, Key
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.route import ROUTE
from holdfast.host.netlink import attributes
from holdfast.host.netlink.links import link_codec
from holdfast.host.netlink.links.link_names import dump_links, name_now
from holdfast.host.netlink.socket import NetlinkSocket

# A network that is on it may be there again, of which the kernel need not say more.
LINK_READY = Key(FACT, "link that came up")

_UNSPECIFIED = 0  # AF_UNSPEC
_READY = 0x1 | 0x40  # IFF_UP, IFF_RUNNING
# Of these containers and virtual machines have ends here, which come and go with them.
_GUESTS = frozenset({"veth", "tun", "macvtap", "ipvtap"})
# A port of these has no networks of its own.
_SWITCHES = frozenset({"bridge", "bond", "team"})


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    up: bool
    content: Fields
    # Which of up and running it is. That is nothing to compare: carriers come and go.
    ready: int = field(default=0, compare=False)


@dataclass(slots=True)
class KnownLinks:
    _links: dict[int, _Known] = field(default_factory=dict)

    def read(self) -> None:
        """All of them anew."""
        sock = NetlinkSocket()
        try:
            bodies = dump_links(sock)
        finally:
            sock.close()
        self._links.clear()
        for _ in range(2):  # masters and parents may come after those that name them
            for body in bodies:
                self._learn(body)

    def name(self, index: int) -> str:
        """ "" where there is none."""
        known = self._links.get(index)
        return known.name if known is not None else name_now(index)

    def is_guest(self, index: int, keys: Set[Key]) -> bool:
        """Is it a guest's, and nothing that is declared has to do with it?"""
        known = self._links.get(index)
        return known is not None and _is_guest(known, keys)

    def heard(
        self, body: bytes, gone: bool, keys: Set[Key], lacking: bool = False
    ) -> Iterator[Hint]:
        """keys: of what is declared and claimed. A guest's link is not told of, but while the link
        of a gateway is lacking: any that comes up may be it."""
        if body[0] != _UNSPECIFIED:
            return  # of a bridge about its port; what changes of the link itself is said apart
        index = attributes.to_int(body[4:8])
        before = self._links.pop(index, None) if gone else self._links.get(index)
        now = None if gone else self._learn(body)
        if gone and before is None:
            before = self._decode(body)
        concerned = [
            known for known in (before, now) if known is not None and not _is_guest(known, keys)
        ]
        if before != now:
            for name in sorted({known.name for known in concerned}):
                yield Hint(LINK.name, Key(LINK.name, name), gone=now is None or name != now.name)
        if lacking and now is not None and self._became_ready(before, now):
            yield Hint(FACT, LINK_READY)
        if before is not None and before.up and (now is None or not now.up):
            # With an IPv4 route that goes because its link does, the kernel says nothing of it.
            yield Hint(ROUTE.name)
        if now is None:
            yield Hint(NFT.name)  # nor of the hooks of tables that go with a link

    def _became_ready(self, before: _Known | None, now: _Known) -> bool:
        """The kernel has the IPv4 networks of a link again once it is up, and the IPv6 ones once it
        has its carrier, too."""
        if not now.up or (before is not None and not now.ready & ~before.ready):
            return False
        master = now.content.get("master")
        kinds = (link.content["type"] for link in self._links.values() if link.name == master)
        return not master or next(kinds, "") not in _SWITCHES

    def _learn(self, body: bytes) -> _Known:
        found = self._decode(body)
        self._links[attributes.to_int(body[4:8])] = found
        return found

    def _decode(self, body: bytes) -> _Known:
        seen = link_codec.decode(body, self.name)
        fields = {**seen.artifact.fields, "group": seen.group}
        ready = attributes.to_int(body[8:12]) & _READY
        return _Known(seen.artifact.key.name, seen.up, fields, ready)


def _is_guest(known: _Known, keys: Set[Key]) -> bool:
    return known.content["type"] in _GUESTS and Key(LINK.name, known.name) not in keys
