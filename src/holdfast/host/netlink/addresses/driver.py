"""Addresses: tagged by IFA_PROTO, re-read just before they are deleted because the kernel's delete
ignores the tag."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from holdfast.dataclass import replace
from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.claim import Claim
from holdfast.engine.driver import Coming, Driver, Failure, Result, Scope
from holdfast.engine.kinds.address import ADDRESS, LOST
from holdfast.engine.observed import Along, Loss, Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host import steps
from holdfast.host.netlink import tags
from holdfast.host.netlink.addresses import address_along, address_codec, primaries
from holdfast.host.netlink.addresses.address_codec import RTM_DELADDR, RTM_NEWADDR, SeenAddress
from holdfast.host.netlink.addresses.address_losses import (
    AddressLosses,
    Arriving,
    LinkPlace,
    Losses,
    arriving_placeholder,
)
from holdfast.host.netlink.addresses.address_read import AddressReader
from holdfast.host.netlink.links.link_codec import find_index
from holdfast.host.netlink.routes.prefix_routes import PrefixRoutes
from holdfast.host.netlink.socket import CREATE, EXCL, REPLACE, NetlinkError, NetlinkSocket, Request

_GONE = (errno.EADDRNOTAVAIL, errno.ENODEV)


class AddressDriver(Driver):
    def __init__(
        self,
        sock: NetlinkSocket,
        tag: int,
        former: frozenset[int] = frozenset(),
        recorded: frozenset[Key] = frozenset(),
    ) -> None:
        """former: tags of before. recorded: what others made that may go, as it is put back
        afterwards."""
        self._sock = sock
        self._tag = tag
        self._former = former
        self._recorded = recorded
        # What the last observation knew to be ours without a tag. Without one, all that is
        # untagged counts as somebody else's.
        self._claims: Mapping[Key, Claim] = {}
        self._reader = AddressReader(sock)
        self._agreed: frozenset[str] = frozenset()

    def observe(self, scope: Scope) -> Observed:
        self._claims = tags.untagged(scope.claims, self._tag, self._former)
        everything, places = self._reader.read()
        own = [a for a in everything if self._is_tagged(a) or a.key in self._claims]
        orphans = [address for address in own if address.key not in scope.keys]
        declared = [address for address in own if address.key in scope.keys]
        changing = [
            (address, coming)
            for address in declared
            if (coming := scope.coming(address.artifact)).verb is not Verb.KEEP
        ]
        losses: Losses = {}
        along: dict[Key, Sequence[Along]] = {}
        if orphans or changing:
            made = _arriving(scope, everything, places)

            def foresee(whose: Callable[[Collection[Arriving]], AddressLosses]) -> Losses:
                found = whose(made).of(orphans)
                for address, coming in changing:
                    # What is replaced goes at any time; what is deleted after all that is made.
                    before = made if coming.verb is Verb.DELETE else ()
                    found |= _lost_with(whose(before), address, coming)
                return found

            losses = foresee(partial(self._losses, everything, places))
            whoever = partial(address_along.whoever, self._sock, everything, places)
            gone = [*orphans, *(address for address, _ in changing)]
            swept = address_along.swept(gone, whoever(()), scope.keys, self._is_own)
            along = address_along.along(foresee(whoever), losses, swept)
        lost = PrefixRoutes(self._sock, everything, places).lost(declared) if declared else ()
        behind = self._displaced(scope, everything, places)
        sightings: dict[Key, list[Sighting]] = {}
        for address in everything:
            relevant = (
                self._is_tagged(address) or address.key in scope.keys or address.key in scope.claims
            )
            # What others have may speak against what is wanted; loopback and link-local never do.
            if not relevant and address.scope in ("host", "link"):
                continue
            artifact = address.artifact
            if address.key in lost:
                artifact = replace(artifact, fields={**artifact.fields, "no_prefix_route": LOST})
            if address.key in behind:
                said = {"secondary": behind[address.key]}
                artifact = replace(artifact, fields={**artifact.fields, **said})
            tagged, protocol = self._is_tagged(address), address.protocol
            sightings.setdefault(address.key, []).append(
                Sighting(
                    artifact,
                    tag=tags.tag_text(protocol, protocol) if tagged else "",
                    holder="" if tagged else tags.holder_text(protocol, address=True),
                    retag=tags.retag(protocol, self._tag) if tagged else None,
                )
            )
        return Observed(
            sightings,
            losses={key: [Loss(one) for one in lost] for key, lost in losses.items() if lost},
            along=along,
        )

    def _is_tagged(self, address: SeenAddress) -> bool:
        return address.protocol == self._tag or address.protocol in self._former

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        self._agreed = steps.agreed(operations)
        leaving = {
            operation.subject.key
            for operation in operations
            if operation.verb is Verb.DELETE and isinstance(operation.subject, Artifact)
        }

        def step(operation: Operation, artifact: Artifact) -> Result:
            match operation.verb:
                case Verb.CREATE:
                    return self._create(operation, artifact)
                case Verb.UPDATE | Verb.REPLACE:
                    return self._change(operation, artifact)
                case Verb.DELETE:
                    return self._delete(operation, artifact, leaving)
                case _:
                    return steps.done(operation)

        return steps.carry_out(
            operations, progress, step, lambda group: self._delete_together(group, leaving)
        )

    def _displaced(
        self, scope: Scope, everything: Sequence[SeenAddress], places: Mapping[int, LinkPlace]
    ) -> Mapping[Key, str]:
        kept = [arriving_placeholder(index) for index in places]
        return primaries.displaced(
            scope, everything, lambda: self._losses(everything, places, kept), self._is_own
        )

    def _is_own(self, seen_address: SeenAddress) -> bool:
        return self._is_tagged(seen_address) or seen_address.key in self._claims

    def _losses(
        self,
        everything: Sequence[SeenAddress],
        places: Mapping[int, LinkPlace],
        coming: Collection[Arriving] = (),
    ) -> AddressLosses:
        return AddressLosses(self._sock, everything, places, self._tag, self._is_ours, coming)

    def _is_ours(self, key: Key) -> bool:
        return key in self._claims or key in self._recorded

    def _create(self, operation: Operation, artifact: Artifact) -> Result:
        dev = artifact.fields["dev"]
        index = find_index(self._sock, str(dev))
        if index is None:
            return steps.failed(operation, f"link {dev} does not exist")
        body = address_codec.encode(artifact.fields, index, self._tag)
        error = steps.send(self._sock, RTM_NEWADDR, CREATE | EXCL, body)
        if error is None:
            return steps.done(operation)
        return steps.failed(operation, str(error), exists=error.errno == errno.EEXIST)

    def _delete_together(
        self, operations: Sequence[Operation], leaving: set[Key]
    ) -> list[Result] | None:
        """A few deletes after one reading. None, and nothing touched, where any of them would take
        something along: then each needs to see what the one before it has done."""
        everything, places = self._reader.read()
        there = {address.key: address for address in reversed(everything)}
        results: list[Result] = []
        doomed: list[tuple[int, SeenAddress]] = []
        for operation in operations:
            seen = there.get(steps.single(operation).key)
            departures = self._departures(operation, seen) if seen is not None else []
            if seen is not None and not departures:
                doomed.append((len(results), seen))
            results.append(
                steps.changed(operation, departures) if departures else steps.done(operation)
            )
        losses = self._losses(everything, places)
        addresses = [seen for _, seen in doomed]
        if any(losses.of(addresses).values()) or any(
            swept.key not in leaving for seen in addresses for swept in losses.secondaries(seen)
        ):
            return None
        requests = [Request(RTM_DELADDR, 0, address_codec.delete_body(seen)) for seen in addresses]
        for index, error in self._sock.transact(requests).items():
            if error.errno not in _GONE:
                at, _ = doomed[index]
                results[at] = steps.failed(operations[at], str(error))
        return results

    def _delete(self, operation: Operation, artifact: Artifact, leaving: set[Key]) -> Result:
        everything, places = self._reader.read()
        seen = _find(everything, artifact.key)
        if seen is None:
            return steps.done(operation)
        losses = self._losses(everything, places)
        refusal = self._refusal(operation, seen, losses)
        if refusal is not None:
            return refusal
        swept = [
            secondary for secondary in losses.secondaries(seen) if secondary.key not in leaving
        ]
        error = self._remove(seen)
        if error is not None:
            return steps.failed(operation, str(error))
        return self._put_back(operation, swept)

    def _change(self, operation: Operation, artifact: Artifact) -> Result:
        everything, places = self._reader.read()
        seen = _find(everything, artifact.key)
        if seen is None:
            return self._create(operation, artifact)
        if [change.before for change in operation.changes] == [LOST]:
            departures = self._departures(operation, seen)
            if departures:
                return steps.changed(operation, departures)
            problem = PrefixRoutes(self._sock, everything, places).put_back(seen)
            return steps.failed(operation, str(problem)) if problem else steps.done(operation)
        changed = {change.field for change in operation.changes}
        if changed == {ADDRESS.writer_field}:
            return self._retag(operation, artifact, seen)
        if "secondary" in changed:
            return self._put_first(operation, seen, everything, places)
        losses = self._losses(everything, places)
        body = address_codec.rebuild(seen, artifact.fields, self._tag)
        if not _must_go(seen, artifact.fields):
            refusal = self._refusal(operation, seen, losses, only_prefix_route=True)
            error = refusal or steps.send(self._sock, RTM_NEWADDR, REPLACE, body)
            if isinstance(error, NetlinkError):
                return steps.failed(operation, str(error))
            return error or steps.done(operation)
        refusal = self._refusal(operation, seen, losses)
        if refusal is not None:
            return refusal
        swept = losses.secondaries(seen)
        removal = self._remove(seen)
        if removal is not None:
            return steps.failed(operation, str(removal))
        failure = steps.send(self._sock, RTM_NEWADDR, CREATE | EXCL, body)
        if failure is None:
            return self._put_back(operation, swept)
        back = self._put_back(operation, [seen, *swept])
        fate = "the old one was put back" if back.ok else "and the old one could not be put back"
        return steps.failed(operation, f"{failure}; {fate}")

    def _retag(self, operation: Operation, artifact: Artifact, seen: SeenAddress) -> Result:
        """The kernel's replace changes the tag of an address in place, of either family."""
        departures = self._departures(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        body = address_codec.rebuild(seen, artifact.fields, self._tag)
        error = steps.send(self._sock, RTM_NEWADDR, REPLACE, body)
        return steps.failed(operation, str(error)) if error else steps.done(operation)

    def _put_first(
        self,
        operation: Operation,
        seen: SeenAddress,
        everything: Sequence[SeenAddress],
        places: Mapping[int, LinkPlace],
    ) -> Result:
        departures = self._departures(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        group = primaries.in_subnet(seen, everything)
        kept = [arriving_placeholder(seen.index)]
        losses = self._losses(everything, places, kept)
        lost = [one for each in losses.of(group).values() for one in each]
        strangers = [str(address.key) for address in group if not self._is_own(address)]
        if lost or strangers:
            said = "; ".join((*lost, *strangers))
            return steps.failed(operation, f"would take what others made: {said}")
        return primaries.put_first(self._sock, operation, seen, group, self._tag)

    def _refusal(
        self,
        operation: Operation,
        seen: SeenAddress,
        losses: AddressLosses,
        *,
        only_prefix_route: bool = False,
    ) -> Result | None:
        """Why an address is left alone after all."""
        departures = self._departures(operation, seen)
        if departures:
            return steps.changed(operation, departures)
        lost = losses.prefix_route(seen) if only_prefix_route else losses.of([seen])[seen.key]
        more = steps.takes_more(self._agreed, lost)
        return steps.failed(operation, more) if more else None

    def _departures(self, operation: Operation, seen: SeenAddress) -> list[str]:
        expected = steps.planned_for(operation, self._tag)
        # What was lost is a route: of the address itself that says nothing.
        kept = {name: value for name, value in expected.items() if value != LOST}
        return steps.departures(kept, seen.artifact.fields)

    def _remove(self, seen: SeenAddress) -> NetlinkError | None:
        error = steps.send(self._sock, RTM_DELADDR, 0, address_codec.delete_body(seen))
        return None if error is None or error.errno in _GONE else error

    def _put_back(self, operation: Operation, swept: Sequence[SeenAddress]) -> Result:
        """Secondaries that went with their primary and nobody asked to delete, ours or others'."""
        notes, failures = [], []
        for address in swept:
            error = steps.send(self._sock, RTM_NEWADDR, CREATE | EXCL, address.body)
            if error is None:
                notes.append(f"{address.key} went with it and was put back")
            else:
                failures.append(Failure(address.key, f"went with its primary: {error}"))
        return Result(operation, 1, tuple(failures), tuple(notes))


def _lost_with(losses: AddressLosses, seen: SeenAddress, coming: Coming) -> Losses:
    """What others lose with an address that is deleted or changed as declared."""
    wanted = {change.field: change.after for change in coming.changes}
    if coming.verb is Verb.DELETE or _must_go(seen, wanted):
        return losses.of([seen])
    return {seen.key: losses.prefix_route(seen)}


def _must_go(seen: SeenAddress, wanted: Fields) -> bool:
    """Whether an address can be as wanted only if it is deleted and made anew.

    The kernel's replace changes the flags of an IPv6 address, but neither a prefix length nor
    anything of an IPv4 address; those need the address out of the way. And it checks for duplicates
    only what is new.
    """
    same_length = wanted.get("prefix_length", seen.prefix_length) == seen.prefix_length
    return seen.version == 4 or not same_length or "duplicate" in seen.artifact.fields


def _arriving(
    scope: Scope, everything: Sequence[SeenAddress], places: Mapping[int, LinkPlace]
) -> frozenset[Arriving]:
    """The addresses that are declared and not there yet: they are made before others go."""
    there = {address.key for address in everything}
    indexes = {place.name: index for index, place in places.items()}
    found = set()
    for key in scope.keys:
        wanted = scope.declared(key) if key.kind == ADDRESS.name and key not in there else None
        if wanted is not None and wanted.fields["dev"] in indexes:
            index = indexes[str(wanted.fields["dev"])]
            fields = wanted.fields
            ip = ipaddress.ip_interface(f"{fields['address']}/{fields['prefix_length']}")
            subnet = index, ip.network.network_address.packed, ip.network.prefixlen
            found.add(Arriving(index, ip.packed, subnet))
    return frozenset(found)


def _find(everything: Sequence[SeenAddress], key: Key) -> SeenAddress | None:
    return next((address for address in everything if address.key == key), None)
