"""Configuration files of ours that a program of others' reads."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, MadeOf, Value
from holdfast.engine.plan import Operation


def _interrupts(operation: Operation) -> str:
    assert isinstance(operation.subject, Artifact)  # noqa: S101 (drop-ins come one by one)
    return f"has {parts(operation.subject.key)[1]} restarted"


DROPIN = ArtifactKind(
    name="dropin",
    identity="absolute path, before `--root`, and `read by` a unit of systemd's",
    fields=("sha256", "read"),
    proof="a claim whose digest is that of the file",
    cleanup="deleted while its content is still what was claimed, and the unit that read it is"
    " restarted if it runs",
    nonce_field="sha256",
    digests=("sha256",),
    survives_reboot=True,
    deletes_orphans=True,
    after=("link", "file"),
    interrupts=_interrupts,
    seen_by_name=True,
    made_of=MadeOf.CONTENT,
    runs=True,
    place=lambda key: parts(key)[0],
)


_READ_BY = " read by "


def dropin(path: str, content: bytes, unit: str) -> Artifact:
    """The file is there, and the unit runs and has read it."""
    fields: dict[str, Value] = {"sha256": hashlib.sha256(content).hexdigest(), "read": True}
    return Artifact(Key(DROPIN.name, f"{path}{_READ_BY}{unit}"), fields, payload=content)


def parts(key: Key) -> tuple[str, str]:
    """Path and unit of a drop-in."""
    path, _, unit = key.name.rpartition(_READ_BY)
    return path, unit
