"""Links: created exclusively, changed field by field, deleted by index. They carry no tag; a link
just created carries a random number in its group until its claim is settled."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.engine.artifact import Artifact, Fields, Key, Value
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Coming, Driver, Result, Scope
from holdfast.engine.kinds.link import LINK, TYPES, link_key
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.netlink import attributes, tags
from holdfast.host.netlink.links import link_codec, link_losses, link_types, obstacles
from holdfast.host.netlink.links.link_codec import (
    IFF_UP,
    IFLA_ADDRESS,
    IFLA_GROUP,
    IFLA_IFALIAS,
    IFLA_MASTER,
    IFLA_MTU,
    SeenLink,
    header,
)
from holdfast.host.netlink.links.link_effects import CYCLING_MASTERS
from holdfast.host.netlink.links.link_losses import LinkLosses, may_take
from holdfast.host.netlink.links.link_names import IFLA_IFNAME, dump_links
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkError, NetlinkSocket, Request

_RTM_NEWLINK, _RTM_DELLINK = 16, 17

# In this order: joining a bond overwrites MAC and MTU, so the master comes before them; up comes
# last.
_SETTABLE = (
    "stp", "vlan_filtering", "local", "remote", "learning", "miimon", "master", "mac", "mtu",
    "alias", "up",
)  # fmt: skip


class LinkDriver(Driver):
    """tag: whose routes and neighbours may go along with a link, or with a change of one. Without
    one, nobody's may. recorded: what else may, as it is put back afterwards."""

    def __init__(
        self,
        sock: NetlinkSocket,
        tag: int = tags.NOBODY,
        recorded: frozenset[Key] = frozenset(),
    ) -> None:
        self._sock = sock
        self._tag = tag
        self._recorded = recorded
        # What the last observation knew to be ours without a tag.
        self._claims: Mapping[Key, Claim] = {}
        # The links, while operations are carried out: a thousand ports must not read a thousand
        # links each.
        self._lately: dict[str, Fields] = {}
        self._agreed: frozenset[str] = frozenset()

    def observe(self, scope: Scope) -> Observed:
        self._claims = tags.untagged(scope.claims, self._tag)
        bodies = dump_links(self._sock)
        names = {
            attributes.to_int(body[4:8]): attributes.to_text(
                attributes.parse(body, 16)[IFLA_IFNAME]
            )
            for body in bodies
        }
        sightings: dict[Key, list[Sighting]] = {}
        changing: dict[Key, Coming] = {}
        for body in bodies:
            key = link_key(names[attributes.to_int(body[4:8])])
            if key not in scope.keys and key not in scope.claims:
                continue
            seen = link_codec.decode(body, lambda index: names.get(index, ""))
            sighting = Sighting(
                seen.artifact,
                holder=f"a {seen.kind or 'hardware'} link; links carry no mark of their maker",
                nonce=str(seen.group) if seen.group else "",
            )
            sightings[key] = [sighting]
            coming = scope.coming(seen.artifact)
            takes = any(may_take(change.field, change.after) for change in coming.changes)
            if key in scope.claims if coming.ends else takes:
                changing[key] = coming
        made = [link for link in _missing(scope, sightings) if link.fields.get("master")]
        if not changing and not made:
            return Observed(sightings, links=frozenset(names.values()))
        foreseen = self._foresee(link_losses.decode_links(bodies))
        losses = foreseen.of(changing, made)
        along = link_losses.along(foreseen.whoever(), changing, losses)
        return Observed(sightings, losses=losses, along=along, links=frozenset(names.values()))

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        self._lately = {}
        self._agreed = steps.agreed(operations)
        return steps.carry_out(operations, progress, self._step)

    def settle(self, marks: Mapping[Key, str]) -> None:
        """Take the number out of the group of links whose claims are recorded; only where it is
        still that number, for a link of that name may be another one by now."""
        requests = []
        for key, mark in marks.items():
            seen = self._find(key.name)
            if seen is not None and str(seen.group) == mark:
                requests.append(
                    Request(_RTM_NEWLINK, 0, header(seen.index) + attributes.u32(IFLA_GROUP, 0))
                )
        for error in self._sock.transact(requests).values():
            if error.errno != errno.ENODEV:
                named = ", ".join(key.name for key in marks)
                raise DriverError(f"cannot reset the group of links {named}: {error}")

    def _is_ours(self, key: Key) -> bool:
        return key in self._claims or key in self._recorded

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        match operation.verb:
            case Verb.CREATE:
                return self._create(operation, artifact)
            case Verb.UPDATE:
                return self._update(operation, artifact)
            case Verb.REPLACE:
                return self._replace(operation, artifact)
            case Verb.DELETE:
                return self._delete(operation, artifact)
            case _:
                return steps.done(operation)

    def _create(self, operation: Operation, artifact: Artifact) -> Result:
        """The kernel makes a link and its group in one go, so that none exists unmarked. What it
        takes along at that moment (type, MTU, MAC) leaves nothing behind when it fails."""
        name, fields = artifact.key.name, artifact.fields
        kind = str(fields.get("type", ""))
        if kind not in TYPES:
            return steps.failed(operation, f"links of type {kind!r} cannot be created")
        body = header() + attributes.text(IFLA_IFNAME, name)
        if operation.nonce:
            body += attributes.u32(IFLA_GROUP, int(operation.nonce))
        for field in ("mtu", "mac"):
            if field in fields:
                body += self._encode(field, fields[field])
        body += link_types.lower_link(kind, fields, self._index_of)
        # A kernel without VLANs on bridges refuses to be told that a bridge shall do without.
        said = {name: value for name, value in fields.items() if not _is_default(kind, name, value)}
        body += link_types.linkinfo(kind, said, self._index_of)
        error = steps.send(self._sock, _RTM_NEWLINK, CREATE | EXCL, body)
        if error is not None:
            return obstacles.not_made(self._sock, operation, error, self._is_ours)
        seen = self._find(name)
        if seen is None:
            return steps.failed(operation, "created, but gone again at once")
        rest = {field: fields[field] for field in ("master", "alias", "up") if field in fields}
        rest |= {
            name: value
            for name, value in fields.items()
            if _is_default(kind, name, value) and seen.artifact.fields[name] != value
        }
        if fields.get("mtu", seen.artifact.fields["mtu"]) != seen.artifact.fields["mtu"]:
            # A tunnel is made with an MTU of the kernel's choice where the one asked for is out of
            # its range, without a word; asked again, the kernel says why not.
            rest["mtu"] = fields["mtu"]
        problems = self._set(seen, rest)
        if problems:
            return steps.failed(operation, f"created, but {'; '.join(problems)}")
        return steps.done(operation)

    def _update(self, operation: Operation, artifact: Artifact) -> Result:
        seen = self._find(artifact.key.name)
        if seen is None:
            return steps.failed(operation, "the link is gone")
        departures = _another_link(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        wanted = {change.field: change.after for change in operation.changes}
        fixed = [
            field
            for field, value in wanted.items()
            if LINK.immutable(seen.artifact.fields, field, value)
        ]
        if fixed:
            return steps.failed(
                operation, f"cannot change {', '.join(fixed)} of a link that exists"
            )
        problems = self._set(seen, wanted)
        return steps.failed(operation, "; ".join(problems)) if problems else steps.done(operation)

    def _delete(self, operation: Operation, artifact: Artifact) -> Result:
        seen = self._find(artifact.key.name)
        if seen is None:
            return steps.done(operation)
        departures = _another_link(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        lost = self._foresee(link_losses.read_links(self._sock)).of_end(artifact.key.name)
        refusal = steps.takes_more(self._agreed, lost)
        if refusal:
            return steps.failed(operation, refusal)
        error = steps.send(self._sock, _RTM_DELLINK, 0, header(seen.index))
        if error is None or error.errno == errno.ENODEV:
            return steps.done(operation)
        return steps.failed(operation, str(error))

    def _replace(self, operation: Operation, artifact: Artifact) -> Result:
        peer = str(artifact.fields.get("peer", ""))
        if peer and peer != steps.before(operation).fields.get("peer") and self._find(peer):
            # Found out only by the create, when the old pair would be gone.
            return steps.failed(operation, f"the peer cannot be made: there is a link {peer}")
        removed = self._delete(operation, artifact)
        if not removed.ok:
            return removed
        try:
            made = self._create(operation, artifact)
            if made.ok or self._find(artifact.key.name) is not None:
                return made
            (failure,) = made.failures
            why = failure.error
        except DriverError as error:
            why = str(error)
        # What is wrong with the new one the kernel says only once the old one is gone.
        back = self._create(operation, steps.before(operation))
        fate = "the old one was put back" if back.ok else "and the old one could not be put back"
        return steps.failed(operation, f"{why}; {fate}")

    def _foresee(self, links: Mapping[str, Fields]) -> LinkLosses:
        return LinkLosses(self._sock, links, self._tag, self._is_ours)

    def _find(self, name: str) -> SeenLink | None:
        body = link_codec.find_link(self._sock, name)
        if body is None:
            return None
        return link_codec.decode(body, self._name_of)

    def _index_of(self, name: str) -> int:
        index = link_codec.find_index(self._sock, name)
        if index is None:
            raise DriverError(f"link {name} does not exist")
        return index

    def _set(self, seen: SeenLink, wanted: Fields) -> list[str]:
        """Each field on its own, so that one that fails does not keep the others back."""
        problems = []
        was_up, goes_down = seen.up, wanted.get("up") is False
        if goes_down and was_up:
            problems += self._set_one("up", False, seen)
            was_up = bool(problems)
        if seen.kind == "ip6tnl":
            tunnel = {field: wanted[field] for field in TYPES["ip6tnl"] if field in wanted}
            problems += self._change_tunnel(seen, tunnel) if tunnel else []
            wanted = {field: value for field, value in wanted.items() if field not in tunnel}
        for field in _SETTABLE:
            if field in wanted and not (field == "up" and goes_down):
                problems += self._set_one(field, wanted[field], seen, was_up=was_up)
        if goes_down and "master" in wanted and not was_up:
            problems += self._send("up", False, seen)  # a bond takes its members up
        return problems

    def _set_one(
        self, field: str, value: Value, seen: SeenLink, *, was_up: bool = True
    ) -> list[str]:
        """Unless others would lose more by it than was agreed to."""
        lost = self._lost_with(field, value, seen) if may_take(field, value) else []
        refusal = steps.takes_more(self._agreed, lost)
        if refusal:
            return [f"{field} {value}: {refusal}"]
        if field == "master" and was_up and self._cycles(seen, str(value)):
            return self._while_down(field, value, seen)
        error = self._try(field, value, seen)
        busy = isinstance(error, NetlinkError) and error.errno == errno.EBUSY
        if busy and field == "mac" and was_up:
            # Some drivers change the MAC only of a link that is down.
            return self._set_mac_while_down(value, seen)
        return [] if error is None else [f"{field} {value}: {error}"]

    def _lost_with(self, field: str, value: Value, seen: SeenLink) -> list[str]:
        links = self._links_now(seen, str(value) if field == "master" else "")
        return self._foresee(links).of_change(seen.artifact.key.name, field, value)

    def _links_now(self, seen: SeenLink, master: str) -> Mapping[str, Fields]:
        """The links as they were when first asked for in this apply, and as we changed them since;
        this one and those that hold it, as they are."""
        if not self._lately:
            self._lately = link_losses.read_links(self._sock)
            return self._lately
        for name in {seen.artifact.key.name, str(seen.artifact.fields["master"]), master} - {""}:
            body = link_codec.find_link(self._sock, name)
            if body is not None:
                _, self._lately[name] = link_losses.decode_link(body, self._name_of)
        return self._lately

    def _name_of(self, index: int) -> str:
        return link_codec.name_of(self._sock, index)

    def _cycles(self, seen: SeenLink, master: str) -> bool:
        masters = (master, str(seen.artifact.fields["master"]))
        found = [self._find(name) for name in masters if name]
        return any(link is not None and link.kind in CYCLING_MASTERS for link in found)

    def _set_mac_while_down(self, value: Value, seen: SeenLink) -> list[str]:
        lost = self._foresee(link_losses.read_links(self._sock)).of_change(
            seen.artifact.key.name, "up", False
        )
        refusal = steps.takes_more(self._agreed, lost)
        if refusal:
            return [
                f"mac {value}: the link must go down for that, which {refusal}; set it down first"
            ]
        return self._while_down("mac", value, seen)

    def _while_down(self, field: str, value: Value, seen: SeenLink) -> list[str]:
        problems = self._send("up", False, seen)
        problems += self._send(field, value, seen)
        return problems + self._send("up", True, seen)

    def _send(self, field: str, value: Value, seen: SeenLink) -> list[str]:
        error = self._try(field, value, seen)
        return [] if error is None else [f"{field} {value}: {error}"]

    def _try(self, field: str, value: Value, seen: SeenLink) -> NetlinkError | DriverError | None:
        flags, change = (IFF_UP if value else 0, IFF_UP) if field == "up" else (0, 0)
        try:
            body = header(seen.index, flags, change) + self._encode(field, value, seen.kind)
        except DriverError as missing:
            return missing
        error = steps.send(self._sock, _RTM_NEWLINK, 0, body)
        name = seen.artifact.key.name
        if error is None and name in self._lately:
            self._lately[name] = {**self._lately[name], field: value}
        return error

    def _encode(self, field: str, value: Value, kind: str = "") -> bytes:
        match field:
            case "up":
                return b""
            case "mtu":
                return attributes.u32(IFLA_MTU, int(str(value)))
            case "mac":
                return attributes.attribute(
                    IFLA_ADDRESS, bytes.fromhex(str(value).replace(":", ""))
                )
            case "master":
                return attributes.u32(IFLA_MASTER, self._index_of(str(value)) if value else 0)
            case "alias":
                return attributes.attribute(IFLA_IFALIAS, str(value).encode())
            case _:
                return link_types.linkinfo(kind, {field: value}, self._index_of)

    def _change_tunnel(self, seen: SeenLink, wanted: Fields) -> list[str]:
        """A change to a tunnel sets all its parameters, and those left out to zero; and it works
        out the MTU anew, before the kernel looks at the one in the message. So the rest is said
        again, as it is at this moment. All in one: between two, its ends might be those of
        another tunnel."""
        said = ", ".join(f"{field} {value}" for field, value in wanted.items())
        body = link_codec.get_link(self._sock, seen.index)
        if body is None:
            return [f"{said}: the link is gone"]
        link = attributes.parse(body, 16)
        try:
            info = link_types.changed_tunnel(link, wanted, self._index_of)
        except DriverError as missing:
            return [f"{said}: {missing}"]
        mtu = attributes.attribute(IFLA_MTU, link[IFLA_MTU])
        error = steps.send(self._sock, _RTM_NEWLINK, 0, header(seen.index) + info + mtu)
        return [] if error is None else [f"{said}: {error}"]


def _is_default(kind: str, field: str, value: Value) -> bool:
    return link_types.DEFAULTS.get((kind, field)) == value


def _another_link(operation: Operation, seen: SeenLink) -> list[str]:
    """How a link is not the one planned for: its index, its type, or what a link cannot change.
    Other fields don't tell: a bridge's MTU and MAC follow its ports, which the same pass may take
    away."""
    before = steps.before(operation).fields
    now = seen.artifact.fields
    telling = {
        name: value
        for name, value in before.items()
        if name == "ifindex" or LINK.immutable(now, name, value)
    }
    return steps.departures(telling, now)


def _missing(scope: Scope, seen: Mapping[Key, object]) -> Iterator[Artifact]:
    """Links that are declared, and not there."""
    for key in scope.keys:
        if key.kind == LINK.name and key not in seen:
            wanted = scope.declared(key)
            if wanted is not None:
                yield wanted
