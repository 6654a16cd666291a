"""DynamicConfigSource: lets a source contribute resources: which, how many and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.resources import registry
from holdfast.resources.dynamic.plugin import Plugin, Trigger, check_triggers
from holdfast.resources.dynamic.source_name import caller, plugin_source
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    listed,
    nested,
    optional,
    parsed,
    reference,
    required,
)
from holdfast.resources.spec.values import Network, prefix

LONGEST_TTL_S = 30 * 86400.0
_MOST = 1_000_000  # more than fit into a part
_PATTERN = r"[A-Za-z0-9._*@-]+"


class MergePolicy(Spec):
    conflict: str = optional(
        choice("reject"),
        "a part that conflicts with the startup file or with an earlier part is rejected",
        default="reject",
    )


def _parse_pattern(text: str) -> str:
    if not re.fullmatch(_PATTERN, text):
        raise ValueError(f"{text!r} is neither a name nor a pattern such as app-*")
    return text


_PATTERNS = listed(parsed(_parse_pattern, "name, `*` for any text", {"pattern": f"^{_PATTERN}$"}))


class Allowance(Spec):
    kinds: tuple[str, ...] = required(
        listed(parsed(str, "kind that is open to other sources")), "what it may declare"
    )
    names: tuple[str, ...] = required(_PATTERNS, "what its resources may be called")
    max_resources: int = required(
        integer(1, _MOST), "how many it may declare at a time; each route of a RouteList counts"
    )
    prefixes: tuple[Network, ...] = optional(
        listed(prefix()),
        "the networks that every address and prefix in its resources lies in; without, they have"
        " none",
        default=(),
    )
    interfaces: tuple[str, ...] = optional(
        _PATTERNS,
        "the links that its resources are about, by the name of the resource that stands for the"
        " link or by the kernel's name; without, they name none. To cut a link off (`adminUp:"
        " false`, `state: absent`; `master`, `mac` or an `mtu` below 1280 of one that is there"
        " already) it has to be named in full, without `*`; `lo` always stays as it is",
        default=(),
    )
    lifetime: float | None = optional(
        duration(1.0, LONGEST_TTL_S),
        "how long its parts may say that they are in force, from `observedAt` to `expiresAt`: one"
        " that says more, or no end, is rejected, where `ttl` only cuts it short",
    )


class DynamicConfigSource(Spec):
    plugin_ref: str | None = optional(
        reference(Plugin), "the plugin whose parts are taken in, or else `source`"
    )
    source: str | None = optional(caller(), "who hands in the parts that are taken in")
    ttl: float | None = optional(
        duration(1.0, LONGEST_TTL_S),
        "how long a part of it is in force at most, counted from when it was observed. A plugin"
        " needs one; without, parts of a `source` are in force until they expire or are withdrawn",
    )
    allow: Allowance | None = optional(
        nested(Allowance),
        "what it may declare. Without, a plugin may declare every kind that is open to other"
        " sources but cut no link off, and a `source` nothing: it may mask what a"
        " DynamicOverridePolicy allows, and propose actions",
    )
    merge_policy: MergePolicy = optional(
        nested(MergePolicy), "what becomes of conflicts", default=MergePolicy(conflict="reject")
    )
    triggers: tuple[Trigger, ...] | None = optional(
        listed(nested(Trigger)), "when the plugin runs, besides what it says itself"
    )

    @property
    def contributor(self) -> str:
        """The source whose parts are taken in."""
        return self.source or plugin_source(self.plugin_ref or "")


def check(resource: Resource) -> Iterator[Fault]:
    spec: DynamicConfigSource = resource.spec
    if (spec.plugin_ref is None) == (spec.source is None):
        yield Fault((), "needs either `pluginRef` or `source`, one of them")
    if spec.plugin_ref is not None and spec.ttl is None:
        yield Fault(("ttl",), "is missing: parts of a plugin are in force for a bounded time")
    if spec.source is not None and spec.triggers is not None:
        yield Fault(("triggers",), "has no meaning with `source`: only plugins are run")
    yield from check_triggers(spec.triggers or ())
    for index, name in enumerate(spec.allow.kinds if spec.allow is not None else ()):
        at = ("allow", "kinds", index)
        trouble = registry.kind_trouble(name)
        if trouble:
            yield Fault(at, trouble)
        elif registry.kind(name).open_to_others is None:
            yield Fault(at, f"a {name} can stand in the startup file alone")


KINDS = (
    Kind(
        DynamicConfigSource,
        "Lets a source contribute to the effective config, and says what: a plugin (`pluginRef`),"
        " or an Owner or Manager that hands parts in (`source`). A source that no"
        " DynamicConfigSource names contributes nothing. A part with anything that `allow` does not"
        " cover is rejected.",
        (),
        """\
pluginRef: inventory
ttl: 5m
mergePolicy: {conflict: reject}
allow:
  kinds: [IPv4Route]
  names: [app-*]
  maxResources: 20
  prefixes: [10.0.0.0/8]
""",
        nothing_alone,
        check,
        effect="lets what its source contributes be in force",
        maskable=False,
        groups=("plugin",),
        cross_checks="dynamic.dynamic_checks",
        admits_parts=True,
    ),
)
