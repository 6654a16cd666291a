"""Whole files that Holdfast writes."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from holdfast.engine.artifact import (
    Artifact,
    ArtifactKind,
    Key,
    MadeOf,
    Naming,
    PartialLook,
    in_words,
)

FILE = ArtifactKind(
    name="file",
    identity="absolute path, before `--root`",
    fields=("sha256", "mode"),
    proof="a claim whose digest is that of the file",
    cleanup="deleted, whether created or adopted, while its content and mode are still what was"
    " claimed",
    nonce_field="sha256",
    digests=("sha256",),
    survives_reboot=True,
    deletes_orphans=True,
    partial_look=PartialLook.ONE,
    seen_by_name=True,
    made_of=MadeOf.CONTENT,
    place=lambda key: key.name,
    shown=lambda name, fields: ["file", name, "mode", in_words(fields.get("mode"))],
    naming=Naming(recognised=lambda word: word.startswith("/")),
)


def file(path: str, content: bytes, mode: int = 0o644, *, check: str = "") -> Artifact:
    """check: which program has to take it before it is put in its place (host/files.py)."""
    fields = {"sha256": digest(content, mode), "mode": f"{mode:04o}"}
    if check:
        fields["check"] = check
    return Artifact(Key(FILE.name, path), fields, payload=content)


def digest(content: bytes, mode: int) -> str:
    """Digests stand in plans and in the ledger. That of a file which its owner alone may read must
    not tell a password to whoever tries a dictionary, so it is made slow to compute."""
    if mode & 0o077:
        return hashlib.sha256(content).hexdigest()
    return _slow_digest(content)


@lru_cache(maxsize=64)
def _slow_digest(content: bytes) -> str:
    made = hashlib.scrypt(content, salt=b"holdfast file", n=1 << 13, r=8, p=1, dklen=32)
    return f"scrypt:{made.hex()}"
