"""Units of systemd that another system made and its ledger names: they go, and nothing declares
them. Programs that Holdfast runs are services (`service`)."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, MadeOf
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

FOLDER = "/etc/systemd/system"


def _interrupts(operation: Operation) -> str:
    return "stops" if operation.verb is Verb.DELETE else ""


def _risk(verb: Verb, _subject: Artifact | Batch, _changes: Changes) -> Cost:
    if verb is Verb.DELETE:
        return Risk.MEDIUM, "what it serves is interrupted"
    return Risk.LOW, ""


def place(name: str) -> str:
    return f"{FOLDER}/{name}"


UNIT = ArtifactKind(
    name="unit",
    identity=f"name of a unit of systemd's whose file stands in {FOLDER}",
    # A claim that was imported holds the digest alone: who stops the unit by hand takes nothing
    # from the proof. The others are how it was, for a trial that is taken back.
    fields=("sha256", "mode", "enabled", "runs"),
    proof="a claim whose digest is that of its file",
    cleanup="stopped, disabled and its file deleted while that is still what was claimed",
    adoption="with the ledger that names it, by `holdfast ledger import`",
    imported=True,
    deletes_orphans=True,
    nonce_field="sha256",
    digests=("sha256",),
    survives_reboot=True,
    # It holds the ports that ours are to serve.
    makes_way_for=("service",),
    interrupts=_interrupts,
    risk=_risk,
    seen_by_name=True,
    made_of=MadeOf.CONTENT,
    runs=True,
    place=lambda key: place(key.name),
)
