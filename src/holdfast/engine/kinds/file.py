"""Whole files that Holdfast writes."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

FILE = ArtifactKind(
    name="file",
    identity="absolute path, before `--root`",
    fields=("sha256", "mode"),
    proof="a claim whose digest is that of the file",
    cleanup="deleted when claimed as created and its content is still what was written",
    nonce_field="sha256",
    survives_reboot=True,
    deletes_orphans=True,
)


def file(path: str, content: bytes, mode: int = 0o644) -> Artifact:
    return Artifact(
        Key("file", path),
        {"sha256": hashlib.sha256(content).hexdigest(), "mode": f"{mode:04o}"},
        payload=content,
    )
