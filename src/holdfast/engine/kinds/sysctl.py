"""Kernel settings under /proc/sys."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

SYSCTL = ArtifactKind(
    name="sysctl",
    identity="key, with dots",
    fields=("value",),
    proof="a claim that remembers the value before",
    cleanup="never deleted: it is a value of the running kernel, not an object of its own",
    deletes_orphans=False,
    after=("link",),
    setting=True,
    matches=lambda _field, desired, seen: str(desired).split() == str(seen).split(),
)


def sysctl(key: str, value: str) -> Artifact:
    return Artifact(Key("sysctl", key), {"value": value})
