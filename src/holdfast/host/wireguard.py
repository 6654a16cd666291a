"""The driver of WireGuard's keys and peers. Only what differs is written: the session of a peer
that is as declared goes on."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.dataclass import asdict, replace
from holdfast.engine import ownership
from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.wireguard import (
    WIREGUARD,
    Peer,
    endpoint_of,
    key_of,
    same_peer,
    secrets_of,
)
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.netlink import generic, wireguard_codec
from holdfast.host.netlink.links import link_codec
from holdfast.host.netlink.links.link_codec import SeenLink
from holdfast.host.netlink.socket import NetlinkSocket, Request
from holdfast.host.netlink.wireguard_codec import Device, SeenPeer

_GONE = (errno.ENODEV, errno.EOPNOTSUPP)
# The endpoint each peer was last told to be at, by public key.
Told = Mapping[str, str]


class WireGuardDriver(Driver):
    def __init__(
        self,
        sock: NetlinkSocket,
        epoch: str,
        connect: Callable[[], NetlinkSocket] = generic.connect,
    ) -> None:
        self._sock = sock  # for links
        self._epoch = epoch
        self._connect = connect
        self._generic: NetlinkSocket | None = None
        self._family: int | None = None
        self._scope = Scope()  # of the last observation
        # By index of the link. What was told before the last observation, and may not stand in the
        # claims it was given; and since.
        self._lately: dict[int, Told] = {}
        self._written: dict[int, Told] = {}

    def close(self) -> None:
        if self._generic is not None:
            self._generic.close()
            self._generic = None

    def observe(self, scope: Scope) -> Observed:
        self._scope = scope
        self._lately, self._written = self._written, {}
        sightings: dict[Key, Sequence[Sighting]] = {}
        for key in sorted({*scope.keys, *scope.claims}):
            if key.kind != WIREGUARD.name:
                continue
            link, device = self._find(key.name)
            if link is None or device is None:
                continue
            ours = self._owns(link)
            if device.blank and ours:
                continue  # as good as not there: to configure it is to create
            holder = "" if ours else "a WireGuard link that is not ours"
            sighting = Sighting(self._artifact(key, device), holder=holder, nonce=device.public_key)
            sightings[key] = (sighting,)
        return Observed(sightings)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def content(self, seen: Artifact) -> bytes:
        """Its keys and those of its peers."""
        try:
            _, device = self._find(seen.key.name)
        except DriverError as error:
            raise ValueError(str(error)) from error
        if device is None or device.public_key != seen.fields["public_key"]:
            raise ValueError("it changed while it was being read")
        told = seen.fields["peers"]
        texts = told if isinstance(told, tuple) else ()
        peers = [
            replace(device.peers[key_of(text)].peer, endpoint=endpoint_of(text))
            for text in texts
            if key_of(text) in device.peers
        ]
        if tuple(map(str, peers)) != texts:
            raise ValueError("it changed while it was being read")
        secrets = {"private_key": device.private_key, "peers": [asdict(peer) for peer in peers]}
        return json.dumps(secrets).encode()

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        _, device = self._find(artifact.key.name)
        if operation.verb is Verb.DELETE and (device is None or device.blank):
            return steps.done(operation)
        if device is None:
            return steps.failed(operation, "there is no WireGuard link of that name")
        if operation.verb is Verb.CREATE:
            if not device.blank and device.public_key != artifact.fields["public_key"]:
                error = "somebody configured it since the plan was made"
                return steps.failed(operation, error, exists=True)
            return self._write(operation, artifact, device)
        planned = steps.before(operation).fields
        telling = ("ifindex", "public_key") if operation.verb is Verb.DELETE else ("ifindex",)
        now: Fields = {"ifindex": device.index, "public_key": device.public_key}
        departures = steps.departures({name: planned.get(name) for name in telling}, now)
        if departures:
            return steps.changed(operation, departures)
        if operation.verb is Verb.DELETE:
            return self._send(operation, [("", wireguard_codec.blank(device.index))])
        return self._write(operation, artifact, device)

    def _write(self, operation: Operation, artifact: Artifact, device: Device) -> Result:
        private, wanted = secrets_of(artifact)
        fields = artifact.fields
        index = device.index
        messages: list[tuple[str, bytes]] = []
        # The key comes first: an interrupted create is known by it.
        if device.public_key != fields["public_key"]:
            messages.append(("private key: ", wireguard_codec.set_private_key(index, private)))
        port = fields.get("listen_port", device.listen_port)
        if port != device.listen_port:
            body = wireguard_codec.set_listen_port(index, int(str(port)))
            messages.append((f"listen port {port}: ", body))
        if device.fwmark != fields["fwmark"]:
            body = wireguard_codec.set_fwmark(index, int(str(fields["fwmark"])))
            messages.append((f"fwmark {fields['fwmark']}: ", body))
        told = self._told(artifact.key, index) or {}
        peers = _changes(device.peers, wanted, told)
        messages += [("peers: ", body) for body in wireguard_codec.set_peers(index, peers)]
        result = self._send(operation, messages)
        if result.ok:
            self._written[index] = {
                peer.public_key: peer.endpoint or told.get(peer.public_key, "") for peer in wanted
            }
        return result

    def _send(self, operation: Operation, messages: Sequence[tuple[str, bytes]]) -> Result:
        sock, family = self._open()
        if family is None:
            return steps.failed(operation, "the kernel has no WireGuard")
        failed = sock.transact([Request(family, 0, body) for _, body in messages])
        if not failed:
            return steps.done(operation)
        said = dict.fromkeys(f"{messages[index][0]}{error}" for index, error in failed.items())
        return steps.failed(operation, "; ".join(said))

    def _find(self, name: str) -> tuple[SeenLink | None, Device | None]:
        """The WireGuard link of a name, and how it is configured."""
        body = link_codec.find_link(self._sock, name)
        if body is None:
            return None, None
        link = link_codec.decode(body, lambda index: link_codec.name_of(self._sock, index))
        if link.kind != "wireguard":
            return None, None
        sock, family = self._open()
        if family is None:
            return link, None
        try:
            request = wireguard_codec.get_device(link.index)
            bodies = sock.dump(family, request, f"WireGuard link {name}")
        except DriverError as error:
            if error.code in _GONE:
                return None, None
            raise
        return link, wireguard_codec.decode(bodies, link.index)

    def _open(self) -> tuple[NetlinkSocket, int | None]:
        if self._generic is None:
            self._generic = self._connect()
        if self._family is None:  # it may come with the first link of its type
            self._family = generic.find_family(self._generic, "wireguard")
        return self._generic, self._family

    def _owns(self, link: SeenLink) -> bool:
        claim = self._scope.claims.get(link.artifact.key)
        sighting = Sighting(link.artifact, nonce=str(link.group) if link.group else "")
        return bool(ownership.proof(LINK, sighting, claim, self._epoch))

    def _artifact(self, key: Key, device: Device) -> Artifact:
        told = self._told(key, device.index)
        peers = sorted((_as_told(seen, told) for seen in device.peers.values()), key=_by_key)
        fields: dict[str, Value] = {
            "public_key": device.public_key,
            "fwmark": device.fwmark,
            "listen_port": device.listen_port,
            "peers": tuple(map(str, peers)),
            "ifindex": device.index,
        }
        return Artifact(key, fields)

    def _told(self, key: Key, index: int) -> Told | None:
        """None where nobody remembers: it is not ours."""
        if index in self._lately:
            return self._lately[index]
        claim = self._scope.claims.get(key)
        if claim is None or not ownership.in_force(claim, self._epoch):
            return None
        peers = claim.fields.get("peers")
        if claim.fields.get("ifindex", index) != index or not isinstance(peers, tuple):
            return None
        return {key_of(text): endpoint_of(text) for text in peers}


def _by_key(peer: Peer) -> str:
    return peer.public_key


def _as_told(seen: SeenPeer, told: Told | None) -> Peer:
    """The peer with the endpoint it was told, though it is elsewhere by now: the kernel follows a
    peer that moves. One that was never heard from cannot have moved; somebody else set that."""
    if told is None:
        return seen.peer
    endpoint = told.get(seen.peer.public_key, "")
    if endpoint and not seen.received:
        return seen.peer
    return replace(seen.peer, endpoint=endpoint)


def _changes(seen: Mapping[str, SeenPeer], wanted: Sequence[Peer], told: Told) -> Iterator[bytes]:
    """Peers to remove first, as their prefixes may be others' from now on."""
    for public_key in seen.keys() - {peer.public_key for peer in wanted}:
        yield wireguard_codec.removed_peer(public_key)
    for peer in wanted:
        there = seen.get(peer.public_key)
        if there is None:
            yield from wireguard_codec.new_peer(peer)
            continue
        before = _as_told(there, told)
        if not same_peer(str(peer), str(before)):
            yield from wireguard_codec.changed_peer(before, peer)
