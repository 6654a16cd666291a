"""The host's name: the running one and /etc/hostname together."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, Naming, in_words

PLACE = "/etc/hostname"
_NAME = "system"

HOSTNAME = ArtifactKind(
    name="hostname",
    identity=f"always `{_NAME}`",
    fields=("hostname",),
    proof="a claim that remembers the name before",
    cleanup="never deleted: a host always has a name",
    survives_reboot=True,
    deletes_orphans=False,
    setting=True,
    # Seen as `NAME (…)` where the running name was not that of the next boot: that is no name.
    restores=lambda before: " " not in str(before["hostname"]),
    place=lambda _key: PLACE,
    shown=lambda _name, fields: ["hostname", in_words(fields.get("hostname"))],
    naming=Naming(sole=_NAME),
)


HOSTNAME_KEY = Key(HOSTNAME.name, _NAME)


def hostname(name: str) -> Artifact:
    return Artifact(HOSTNAME_KEY, {"hostname": name})
