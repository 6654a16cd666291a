"""Policy routing rules. A rule is all identity: any change is a new rule and the end of the old."""

from __future__ import annotations

from holdfast.engine.artifact import Artifact, ArtifactKind, Key, Naming, PartialLook, Value
from holdfast.engine.plan import Operation, Risk


def urgent(artifact: Artifact, _operation: Operation) -> str:
    """Without it, packets take another way, or one that they must not."""
    if artifact.fields.get("action") == "lookup":
        return f"the way by table {artifact.fields.get('table')}"
    return "what is to be held back"


def purposes(artifact: Artifact) -> frozenset[str]:
    fields = artifact.fields
    if fields.get("action") != "lookup":
        return frozenset()
    return frozenset({f"IPv{fields.get('family')} by table {fields.get('table')}"})


RULE = ArtifactKind(
    name="rule",
    identity="family, priority, selectors, action",
    fields=(),
    proof="the kernel tag FRA_PROTOCOL, which also guards the delete; where the kernel has none,"
    " a claim",
    cleanup="deleted when tagged (the kernel refuses to delete under another protocol) or claimed",
    deletes_orphans=True,
    writer_field="protocol",
    after=("link", "route"),
    coexists=True,
    urgent=urgent,
    purposes=purposes,
    risk=lambda *_operation: (Risk.MEDIUM, "changes how packets are treated at once"),
    tells_its_maker=True,
    partial_look=PartialLook.KIND,
    tagged=True,
    # By its priority.
    naming=Naming(short=lambda name: name.removeprefix("inet6 ").partition(":")[0]),
)

ACTIONS = ("lookup", "blackhole", "unreachable", "prohibit")


def rule(
    family: int,
    priority: int,
    *,
    source: str = "",
    destination: str = "",
    iif: str = "",
    oif: str = "",
    fwmark: int | None = None,
    fwmask: int = 0xFFFFFFFF,
    action: str = "lookup",
    table: int = 0,
    suppress: int | None = None,
) -> Artifact:
    """family: 4 or 6. source, destination: canonical prefixes, "" for any. table: for lookup.
    suppress: routes of the table with a prefix of at most this length do not count."""
    fields: dict[str, Value] = {
        "family": family,
        "priority": priority,
        "source": source,
        "destination": destination,
        "iif": iif,
        "oif": oif,
        "fwmark": fwmark,
        "fwmask": fwmask if fwmark is not None else None,
        "action": action,
        "table": table,
    }
    if suppress is not None:
        fields["suppress"] = suppress
    words = [f"inet6 {priority}:" if family == 6 else f"{priority}:", "from", source or "all"]
    if destination:
        words += ["to", destination]
    if fwmark is not None:
        words += ["fwmark", f"{fwmark:#x}" if fwmask == 0xFFFFFFFF else f"{fwmark:#x}/{fwmask:#x}"]
    if iif:
        words += ["iif", iif]
    if oif:
        words += ["oif", oif]
    words += ["lookup", str(table)] if action == "lookup" else [action]
    if suppress is not None:
        words += ["suppress_prefixlength", str(suppress)]
    return Artifact(Key(RULE.name, " ".join(words)), fields)
