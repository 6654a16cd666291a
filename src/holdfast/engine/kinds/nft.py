"""nftables tables, each owned and replaced as a whole."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

# What stands before the digest in the comment of a table of ours.
MARK = "holdfast"
CHANGED = "changed by hand"
# The content of a table that is not ours, which equals no digest.
FOREIGN = "not known: it does not carry Holdfast's comment"

NFT = ArtifactKind(
    name="nft",
    identity="family and name of the table",
    # `listing` is never declared. It stands for the rules of the table right after they were
    # written, and a claim remembers it.
    fields=("content", "listing"),
    proof="the comment on the table, which is made with it in one transaction",
    cleanup="deleted when it carries our comment",
    adoptable=False,
    adoption="nothing in a table tells what it was made of, and a comment cannot be put on one that"
    " exists",
    deletes_orphans=True,
    writer_field="writer",
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
    digest = hashlib.sha256(f"{family} {name}\n".encode() + text).hexdigest()[:16]
    return Artifact(Key("nft", f"{family} {name}"), {"content": digest}, payload=text)
