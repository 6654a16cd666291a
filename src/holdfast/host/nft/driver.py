"""The driver of nftables tables: ours by their comment, each written in one transaction.

A table that was adopted has no such comment until it is first written. Until then the claim tells
it by its handle, which the kernel gives to no other table of a namespace.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.difference import Difference
from holdfast.engine.driver import Driver, Result, Scope
from holdfast.engine.kinds.nft import CHANGED, FOREIGN, MARK, NFT
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import steps
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.nft import nft_contents, nft_ruleset, nft_scratch, nft_script
from holdfast.host.nft.nft_ruleset import Listing, NoNftables, Ruleset, Table
from holdfast.host.nft.nft_written import WrittenTables

_COMMENT = re.compile(rf"{MARK} ([0-9a-f]{{16}})", re.ASCII)
_TAG = f"comment {MARK}"
_OWNER = 0x2  # flag of a table
# nft takes well under a second for 10 000 rules, and longer than that in proportion.
_TIMEOUT_S = 300.0


class _Written(NamedTuple):
    """A table right after it was written."""

    content: str
    listing: Listing


class _Compared(NamedTuple):
    """A foreign table and what was declared, and what came of comparing them."""

    handle: int
    listing: Listing
    declared: str
    content: str


class NftDriver(Driver):
    def __init__(
        self,
        epoch: str,
        written: WrittenTables,
        connect: Callable[[], NetlinkSocket] = nft_ruleset.connect,
    ) -> None:
        self._bodies = written
        self._epoch = epoch
        self._connect = connect
        self._opened: Ruleset | None = None
        self._written: dict[Key, _Written] = {}  # until claims remember it
        self._compared: dict[Key, _Compared] = {}

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def observe(self, scope: Scope) -> Observed:
        self._forget_claimed(scope)

        def known(table: Table) -> Listing | None:
            key = _key(table)
            if _digest(table):
                return self._expected(key, _digest(table), scope)
            adopted = self._adopted(key, table, scope)
            return adopted.listing if adopted is not None else None

        def listed(table: Table) -> bool:
            return bool(_digest(table)) or _key(table) in scope.keys or _key(table) in scope.claims

        try:
            _, tables, listings = self._ruleset().read(listed, known)
        except NoNftables:
            return Observed()
        except DriverError as error:
            if error.code == errno.EPERM and not _concerned(scope):
                # Tables are shown to those alone who may change them. A plan that has nothing to
                # do with tables is not worse for that.
                return Observed()
            raise
        sightings: dict[Key, Sequence[Sighting]] = {}
        for table in tables:
            if table.handle not in listings:
                continue
            key, listing = _key(table), listings[table.handle]
            if _digest(table):
                sightings[key] = (self._own(key, table, listing, scope),)
            else:
                sightings[key] = (self._others(key, table, listing, scope),)
        return Observed(sightings)

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def difference(self, operation: Operation) -> Difference:
        from holdfast.host.nft import nft_differences

        return nft_differences.read(operation, self._bodies, _nft, _listing)

    def _own(self, key: Key, table: Table, listing: Listing, scope: Scope) -> Sighting:
        content = _digest(table)
        expected = self._expected(key, content, scope)
        if expected is None:
            # Nobody remembers how it read: the ledger was lost, or somebody saved the table and
            # loaded it again. What it is made of tells whether it is as declared.
            declared = scope.declared(key)
            if declared is None or self._compare(table, listing, declared) != content:
                content = CHANGED
        elif not listing.same(expected):
            content = CHANGED
        elif not self._written:
            # Of a later generation it is the same, and nothing to write a claim for.
            listing = expected
        fields = {"content": content, "listing": str(listing), "writer": MARK}
        return Sighting(Artifact(key, fields), tag=_TAG)

    def _others(self, key: Key, table: Table, listing: Listing, scope: Scope) -> Sighting:
        """A table without our comment, which may have been adopted."""
        adopted = self._adopted(key, table, scope)
        if adopted is not None and listing.same(adopted.listing):
            content, listing = adopted
        elif adopted is not None:
            content = CHANGED
        else:
            content = self._compare(table, listing, scope.declared(key))
        fields = {"content": content, "listing": str(listing), "writer": _writer(table)}
        return Sighting(Artifact(key, fields), holder=_holder(table))

    def _adopted(self, key: Key, table: Table, scope: Scope) -> _Written | None:
        claim = scope.claims.get(key)
        if claim is None or claim.epoch != self._epoch:
            return None
        if claim.fields.get("writer") != _writer(table):
            return None  # it is gone, and another one has its name
        listing = Listing.parse(str(claim.fields.get("listing")))
        return _Written(str(claim.fields.get("content")), listing)

    def _compare(self, table: Table, listing: Listing, declared: Artifact | None) -> str:
        """The declared digest if the table is made of what is declared, else what to say of it."""
        if declared is None:
            return FOREIGN
        if int.from_bytes(table.flags, "big") & _OWNER:
            return "not known: a program holds it (flags owner), and nobody else can change it"
        wanted = str(declared.fields["content"])
        last = self._compared.get(declared.key)
        if (
            last is not None
            and (last.handle, last.declared) == (table.handle, wanted)
            and last.listing.same(listing)
        ):
            return last.content
        try:
            seen = nft_contents.read(self._ruleset(), table)
            other = nft_contents.difference(seen, nft_scratch.contents(declared, _nft))
            if other and not nft_contents.difference(
                seen, nft_scratch.contents(declared, _nft, _saved)
            ):
                other = ""  # the same table, saved and loaded again
            if self._ruleset().generation() != listing.generation:
                return "not known: the ruleset changed while it was read"
        except (DriverError, OSError) as error:
            return f"not known: {error}"
        content = f"other than declared: {other}" if other else wanted
        self._compared[declared.key] = _Compared(table.handle, listing, wanted, content)
        return content

    def _expected(self, key: Key, content: str, scope: Scope) -> Listing | None:
        """How the table read right after it was written with that content; None where nobody
        remembers."""
        written = self._written.get(key)
        if written is not None and written.content == content:
            return written.listing
        return _claimed(key, content, scope, self._epoch)

    def _forget_claimed(self, scope: Scope) -> None:
        for key, written in list(self._written.items()):
            claimed = _claimed(key, written.content, scope, self._epoch)
            if claimed is not None and claimed.same(written.listing):
                del self._written[key]

    def _step(self, operation: Operation, artifact: Artifact) -> Result:
        match operation.verb:
            case Verb.CREATE:
                return self._create(operation, artifact)
            case Verb.UPDATE | Verb.REPLACE:
                return self._replace(operation, artifact)
            case Verb.DELETE:
                return self._delete(operation, artifact)
            case _:
                return steps.failed(operation, f"a table cannot be subject of {operation.verb}")

    def _create(self, operation: Operation, artifact: Artifact) -> Result:
        script = nft_script.create(artifact)
        generation, _ = self._find(artifact.key)
        said = _nft(script)
        if said:
            _, there = self._find(artifact.key)
            return steps.failed(operation, said, exists=there is not None)
        self._bodies.keep(artifact)
        self._remember(artifact, generation)
        return steps.done(operation)

    def _replace(self, operation: Operation, artifact: Artifact) -> Result:
        generation, table = self._find(artifact.key)
        if table is None:
            return steps.failed(operation, "it is gone since the plan was made")
        if not (_digest(table) or _is_planned(operation, table)):
            return _foreign(operation, table)
        said = _nft(nft_script.replace(artifact, table.handle))
        if said:
            return steps.failed(operation, said)
        self._bodies.keep(artifact)
        self._remember(artifact, generation)
        return steps.done(operation)

    def _delete(self, operation: Operation, artifact: Artifact) -> Result:
        _, table = self._find(artifact.key)
        if table is None:
            return steps.done(operation)
        if not _digest(table):
            if not _is_planned(operation, table):
                return _foreign(operation, table)
            if not self._is_untouched(operation, table):
                return steps.failed(operation, "somebody changed it since the plan was made")
        said = _nft(nft_script.delete(table.family, table.handle))
        if said and self._find(artifact.key)[1] is not None:
            return steps.failed(operation, said)
        self._bodies.forget(artifact.key)
        return steps.done(operation)

    def _is_untouched(self, operation: Operation, table: Table) -> bool:
        _, _, listings = self._ruleset().read(lambda one: one.handle == table.handle)
        now = listings.get(table.handle)
        # Gone by now: the delete, which names its handle, finds that out.
        return now is None or now.same(Listing.parse(_seen(operation, "listing")))

    def _find(self, key: Key) -> tuple[int, Table | None]:
        """The generation, and the table of that name just now."""
        generation, tables, _ = self._ruleset().read(lambda _table: False)
        return generation, next((table for table in tables if _key(table) == key), None)

    def _remember(self, artifact: Artifact, before: int) -> None:
        """How the table reads as we wrote it. If anybody wrote since then, perhaps to this very
        table, nothing is remembered, and the next look has it written once more."""
        self._written.pop(artifact.key, None)
        ruleset = self._ruleset()
        try:
            if ruleset.is_next(before):
                now, _, listings = ruleset.read(lambda table: _key(table) == artifact.key)
                if now == before + 1:
                    (listing,) = listings.values()
                    content = str(artifact.fields["content"])
                    self._written[artifact.key] = _Written(content, listing)
        except DriverError:
            # It is written; that it cannot be read now is for the next observation to tell.
            return

    def _ruleset(self) -> Ruleset:
        if self._opened is None:
            try:
                self._opened = Ruleset(self._connect())
            except OSError as error:
                said = f"cannot open a netfilter socket: {error.strerror}"
                if error.errno == errno.EPROTONOSUPPORT:
                    raise NoNftables(said) from error
                raise DriverError(said, error.errno or 0) from error
        return self._opened


def _claimed(key: Key, content: str, scope: Scope, epoch: str) -> Listing | None:
    claim = scope.claims.get(key)
    # A claim with other content tells of another table, or of one that was found changed; one of
    # another boot of generations and handles that mean nothing now.
    if claim is None or claim.epoch != epoch or claim.fields.get("content") != content:
        return None
    return Listing.parse(str(claim.fields.get("listing")))


def _concerned(scope: Scope) -> bool:
    return any(key.kind == NFT.name for key in (*scope.keys, *scope.claims))


def _key(table: Table) -> Key:
    return Key(NFT.name, f"{table.family} {table.name}")


def _digest(table: Table) -> str:
    """The digest in the comment of a table of ours; empty where it is not ours."""
    found = _COMMENT.fullmatch(table.comment)
    return found[1] if found else ""


def _holder(table: Table) -> str:
    return f'comment "{table.comment}"' if table.comment else "no comment"


def _writer(table: Table) -> str:
    return f"another program, as handle {table.handle}"


def _is_planned(operation: Operation, table: Table) -> bool:
    """Is a table without our comment the very one that was seen when this was planned?"""
    return _seen(operation, "writer") == _writer(table)


def _seen(operation: Operation, field: str) -> str:
    seen = operation.observed
    return str(seen.fields.get(field, "")) if isinstance(seen, Artifact) else ""


def _foreign(operation: Operation, table: Table) -> Result:
    error = f"no longer what was planned for: its comment is not ours ({_holder(table)})"
    return steps.failed(operation, error)


def _nft(script: str) -> str:
    """Carries out a transaction; what nft complained of, or nothing."""
    from holdfast.host import process  # dear to import, and most passes change no table

    program = process.find("nft", "nftables")
    ended = process.run([program, "-f", "-"], given=script, timeout=_TIMEOUT_S)
    return nft_script.complaint(ended) if ended.status else ""


def _saved() -> str:
    """The ruleset as many save it, to load it again at the next boot."""
    return _asked("list", "ruleset")


def _listing(family: str, name: str) -> str:
    """A table, less what is counted in it."""
    return _asked("--stateless", "list", "table", family, name)


def _asked(*words: str) -> str:
    from holdfast.host import process  # as above

    program = process.find("nft", "nftables")
    ended = process.run([program, *words], timeout=_TIMEOUT_S)
    if ended.status:
        raise DriverError(nft_script.complaint(ended))
    return ended.out
