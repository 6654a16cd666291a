"""Kernel settings under /proc/sys."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

UNSET = ""  # of a setting that has no value before it is given one, and cannot be without one after

SYSCTL = ArtifactKind(
    name="sysctl",
    identity="key, with dots",
    fields=("value",),
    proof="a claim that remembers the value before",
    cleanup="never deleted: it is a value of the running kernel, not an object of its own",
    deletes_orphans=False,
    after=("link",),
    setting=True,
    restores=lambda before: before["value"] != UNSET,
    matches=lambda _field, desired, seen: str(desired).split() == str(seen).split(),
)


def sysctl(key: str, value: str) -> Artifact:
    return Artifact(Key("sysctl", key), {"value": value})
