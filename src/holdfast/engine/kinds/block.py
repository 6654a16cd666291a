"""Marked blocks inside files that belong to others: /etc/hosts."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, MadeOf

BLOCK = ArtifactKind(
    name="block",
    identity="absolute path of the file, before `--root`, and the name of the block",
    fields=("sha256",),
    proof="a claim whose digest is that of what stands between the marks",
    cleanup="the block goes when claimed and still what was written; the file around it stays",
    nonce_field="sha256",
    digests=("sha256",),
    survives_reboot=True,
    deletes_orphans=True,
    seen_by_name=True,
    made_of=MadeOf.CONTENT,
    place=lambda key: parts(key)[0],
)


def parts(key: Key) -> tuple[str, str]:
    """The path of the file, and the name of the block in it."""
    path, _, name = key.name.rpartition(" ")
    return path, name


def block(path: str, name: str, content: bytes) -> Artifact:
    """Whole lines between two marks. The rest of the file, its mode and owner stay as they are."""
    fields = {"sha256": hashlib.sha256(content).hexdigest()}
    return Artifact(Key(BLOCK.name, f"{path} {name}"), fields, payload=content)
