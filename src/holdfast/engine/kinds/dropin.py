"""Configuration files of ours that a program of others' reads."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, Value

DROPIN = ArtifactKind(
    name="dropin",
    identity="absolute path, before `--root`, and `read by` a unit of systemd's",
    fields=("sha256", "read"),
    proof="a claim whose digest is that of the file",
    cleanup="deleted while its content is still what was claimed, and the unit that read it is"
    " restarted if it runs",
    nonce_field="sha256",
    survives_reboot=True,
    deletes_orphans=True,
    after=("link", "file"),
)


_READ_BY = " read by "


def dropin(path: str, content: bytes, unit: str) -> Artifact:
    """The file is there, and the unit runs and has read it."""
    fields: dict[str, Value] = {"sha256": hashlib.sha256(content).hexdigest(), "read": True}
    return Artifact(Key("dropin", f"{path}{_READ_BY}{unit}"), fields, payload=content)


def parts(key: Key) -> tuple[str, str]:
    """Path and unit of a drop-in."""
    path, _, unit = key.name.rpartition(_READ_BY)
    return path, unit
