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
    # Seen as `NAME (…)` where the running name was not that of the next boot: that is no name.
    restores=lambda before: " " not in str(before["hostname"]),
)


def hostname(name: str) -> Artifact:
    return Artifact(Key("hostname", "system"), {"hostname": name})
