"""The host's name: the running one and /etc/hostname together."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key

HOSTNAME = ArtifactKind(
    name="hostname",
    identity="always `system`",
    fields=("hostname",),
    proof="a claim that remembers the name before",
    cleanup="never deleted: a host always has a name",
    survives_reboot=True,
    deletes_orphans=False,
    setting=True,
)


def hostname(name: str) -> Artifact:
    return Artifact(Key("hostname", "system"), {"hostname": name})
