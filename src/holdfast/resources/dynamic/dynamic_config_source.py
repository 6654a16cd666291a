"""DynamicConfigSource: lets a source contribute resources: which, how many and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.resources import registry
from holdfast.resources.dynamic import route_policy, tokens
from holdfast.resources.dynamic.plugin import Plugin, Trigger, check_triggers
from holdfast.resources.dynamic.source_name import GRANTS, MANAGER, caller, plugin_source
from holdfast.resources.resource import Fault, Kind, Resource, nothing_alone
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    choice,
    flag,
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
    prefix_length: str = optional(
        choice(route_policy.HOST_ONLY, route_policy.SUBNET, route_policy.ANY),
        "how long the prefixes are that it advertises. `host_only`: /32 and /128. `subnet`: /8 to"
        " /28 of IPv4, and all but /128 of IPv6",
        default=route_policy.ANY,
    )
    peers: tuple[Network, ...] = optional(
        listed(prefix()),
        "the networks that the neighbours lie in which it speaks BGP or BFD to; without, it has"
        " none",
        default=(),
    )
    autonomous_systems: tuple[route_policy.Numbers, ...] = optional(
        listed(parsed(route_policy.parse_numbers, "number or range of AS numbers")),
        "the AS numbers of its neighbours, and of the instance where it may configure that;"
        " without, it names none",
        default=(),
    )
    overlap: str = optional(
        choice("refuse", "allow"),
        "whether its prefixes may cover those of another owner or lie within them: both policies"
        " have to allow it. The same prefix is always one owner's",
        default="refuse",
    )
    may_configure_instance: bool = optional(
        flag(),
        "it may say the AS and the router id of the BGP instance, which all owners share",
        default=False,
    )
    may_learn_routes: bool = optional(
        flag(),
        "routes to anywhere may come by its sessions: by a neighbour with `importAll`, and by an"
        " interface of OSPF that is not passive. Without, that takes `prefixes` with everything",
        default=False,
    )


class Lease(Spec):
    grace: float = required(
        duration(1.0, LONGEST_TTL_S),
        "how long what it declares over the API of routing control stays when nothing is heard of"
        " it: no call, and no stream that holds the lease. Time in which Holdfast does not run does"
        " not count",
    )


# What the name of the socket's file leaves of the 107 bytes that the kernel takes.
_LONGEST_NAME = 64


def _parse_path(text: str) -> str:
    if not text.startswith("/") or not text.isprintable() or "/../" in f"{text}/":
        raise ValueError(f"{text!r} is not an absolute path")
    if text.endswith("/") or len(text.rpartition("/")[2]) > _LONGEST_NAME:
        raise ValueError(f"{text!r} does not end with a name of 1 to {_LONGEST_NAME} characters")
    return text


def _read_socket(value: Any) -> str:
    """ "" for the place that it has by itself."""
    if value is True:
        return ""
    if not isinstance(value, str):
        raise ValueError("must be true, or an absolute path")
    return _parse_path(value)


_SOCKET = Shape(
    _read_socket,
    {"anyOf": [{"const": True}, {"type": "string", "pattern": "^/"}]},
    "`true` or absolute path",
)


def _parse_group(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", text):
        raise ValueError(f"{text!r} cannot be the name of a group")
    return text


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
    tokens: tuple[str, ...] | None = optional(
        listed(tokens.shape()),
        "digests of the tokens by which programs speak for this source on the daemon's API; two, so"
        " that one can take the place of the other. `${NAME}`: what that variable of the daemon's"
        " environment holds, a digest or the token itself",
        secret=True,
    )
    token_file: str | None = optional(
        parsed(_parse_path, "absolute path"),
        "instead of `tokens`: a file with a digest on each line, which nobody but root can write;"
        " read again when it changes",
    )
    socket: str | None = optional(
        _SOCKET,
        "a socket over which every call is this source's. `true`: /run/holdfast/owner-NAME.sock, or"
        " manager-NAME.sock",
    )
    socket_group: str | None = optional(
        parsed(_parse_group, "group"),
        "the group that may open that socket, besides root (mode 0660); without, root alone (0600)",
    )
    grants: tuple[str, ...] | None = optional(
        listed(choice(*GRANTS)),
        "what a Manager may do on the API besides handing in its own parts and reading status,"
        " events and explanations. `plan`: read what a pass would do. `config`: read the effective"
        " config, and what was applied before. `trials`: confirm or take back, by its number, a"
        " generation that an administrator applied with `--confirm-within`",
    )
    lease: Lease | None = optional(
        nested(Lease),
        "what it declares over the API of routing control is withdrawn when nothing is heard of it;"
        " without, it stays until it is withdrawn",
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
    yield from _check_callers(spec)
    for index, name in enumerate(spec.allow.kinds if spec.allow is not None else ()):
        at = ("allow", "kinds", index)
        trouble = registry.kind_trouble(name)
        if trouble:
            yield Fault(at, trouble)
        elif registry.kind(name).open_to_others is None:
            yield Fault(at, f"a {name} can stand in the startup file alone")


def _check_callers(spec: DynamicConfigSource) -> Iterator[Fault]:
    """Who may speak for it."""
    given = {
        "tokens": spec.tokens,
        "tokenFile": spec.token_file,
        "socket": spec.socket,
        "socketGroup": spec.socket_group,
        "grants": spec.grants,
        "lease": spec.lease,
    }
    if spec.source is None:
        for name, value in given.items():
            if value is not None:
                yield Fault((name,), "has no meaning with `pluginRef`: a plugin makes no calls")
        return
    if spec.tokens is not None and spec.token_file is not None:
        yield Fault(("tokenFile",), "has no meaning beside `tokens`: give one of them")
    if len(spec.tokens or ()) > tokens.MOST:
        yield Fault(("tokens",), f"are more than {tokens.MOST}: the one in use, and the next one")
    if spec.socket_group is not None and spec.socket is None:
        yield Fault(("socketGroup",), "has no meaning without `socket`")
    if spec.socket == "" and len(spec.source) > _LONGEST_NAME - len(".sock"):
        yield Fault(("socket",), f"cannot be called after {spec.source}: give a path")
    if spec.lease is not None and spec.source.startswith(f"{MANAGER}/"):
        yield Fault(("lease",), "has no meaning for a Manager, who owns no routes")
    if spec.grants is not None and not spec.source.startswith(f"{MANAGER}/"):
        yield Fault(("grants",), "has no meaning for an Owner, who hands in its own parts alone")


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
