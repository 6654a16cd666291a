"""nftables tables, each owned and replaced as a whole."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Batch,
    Key,
    MadeOf,
    Naming,
    PartialLook,
    Value,
)
from holdfast.engine.plan import Changes, Cost, Risk, Verb

# What stands before the digest in the comment of a table of ours.
MARK = "holdfast"


class Content(StrEnum):
    """What is seen in the place of a digest."""

    CHANGED = "changed by hand"


CHANGED = Content.CHANGED
# The content of a table that is not ours and was not compared with anything.
FOREIGN = "not known: it does not carry Holdfast's comment"

# Family and name of the tables that a router is not safe, or of no use, without.
FILTER, NAT = ("inet", "holdfast_filter"), ("ip", "holdfast_nat")
_FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
_VITAL = {" ".join(FILTER): "the firewall", " ".join(NAT): "NAT"}


def _matches(_field: str, desired: Value, seen: Value) -> bool:
    """What somebody changed is not even the same as when it was last found changed: nobody knows
    what it is, and an adopted table is deleted only while it is what was adopted."""
    return desired == seen and seen != CHANGED


def _risk(verb: Verb, _subject: Artifact | Batch, _changes: Changes) -> Cost:
    if verb is Verb.DELETE:
        return Risk.HIGH, "what its rules dropped, marked or translated passes as it is"
    if verb is Verb.CREATE:
        return Risk.HIGH, "new connections go by its rules at once"
    return Risk.MEDIUM, "replaced in one transaction; new connections go by the new rules"


NFT = ArtifactKind(
    name="nft",
    identity="family and name of the table",
    # `listing` is never declared. It stands for the rules of the table right after they were
    # written or adopted, and a claim remembers it.
    fields=("content", "listing"),
    proof="the comment on the table, which is made with it in one transaction; where it was"
    " adopted and not written since, a claim with its handle",
    cleanup="deleted when it carries our comment, or was adopted and nothing in it changed since",
    adoption="if its chains, rules, sets and all else in it are as declared, whatever its comment,"
    " and no program holds it (`flags owner`)",
    deletes_orphans=True,
    matches=_matches,
    digests=("content",),
    writer_field="writer",
    vital=lambda table: _VITAL.get(table.key.name, ""),
    # The others choose the way out, open ports and make packets fit.
    urgent=lambda table, _operation: _VITAL.get(table.key.name, f"what {table.key.name} does"),
    risk=_risk,
    tells_its_maker=True,
    partial_look=PartialLook.KIND,
    seen_by_name=True,
    made_of=MadeOf.DECLARATION,
    needs_program=True,
    naming=Naming(aliases=("table",), recognised=lambda word: word in _FAMILIES),
)


def nft_table(family: str, name: str, body: str) -> Artifact:
    """family: "ip", "ip6" or "inet". body: what stands between the braces of the table, as `nft`
    reads it, without a comment of the table's own.

    The digest in `content` stands in the table's comment. A driver that finds the rules of a table
    other than they were after it wrote them reports CHANGED instead of that digest. What changes
    by itself is not looked at: counters, the elements of a set with `flags dynamic`, and elements
    with a timeout.

    A chain that drops the rest must do so by a last rule, not by its policy. While a table is
    replaced the kernel has a moment in which the old chain is gone and the policy of the new one
    does not hold yet, and packets that no rule decides on pass; rules change all at once.
    """
    text = body.encode()
    key = Key(NFT.name, f"{family} {name}")
    return Artifact(key, {"content": digest(key, text)}, payload=text)


def digest(key: Key, body: bytes) -> str:
    made = hashlib.sha256(f"{key.name}\n".encode())
    made.update(body)
    return made.hexdigest()[:16]
