"""RouteList: many routes as one resource, inline or from a text file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from ipaddress import ip_address, ip_network
from typing import Any

from holdfast.config.document import Place, SourceFile, decode
from holdfast.dataclass import dataclass, field
from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds.route import MAIN_TABLE, ROUTE, TYPES, batch
from holdfast.errors import ConfigError
from holdfast.resources.resource import (
    Content,
    Fault,
    Folder,
    Identity,
    Kind,
    Reach,
    Resource,
    nothing_against,
)
from holdfast.resources.routes import nexthops, route_lines
from holdfast.resources.routes.gateway_links import only_link
from holdfast.resources.routes.route import METRIC_MAX, MTU_MAX, MTU_MIN
from holdfast.resources.routes.route_line import Defaults
from holdfast.resources.routes.route_lines import Groups, LineFault, Lines
from holdfast.resources.routes.route_list_edit import edited
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    link_reference,
    listed,
    no_networks,
    optional,
    text,
)
from holdfast.resources.spec.values import Address, address, route_table

FAULTS_SHOWN = 50
_FOR_LINES = "for lines that do not say"


class RouteList(Spec):
    routes: tuple[str, ...] | None = optional(
        listed(text("routes as `ip route add` takes them", lines=True, reach=no_networks), least=0),
        "the routes, or else `file`",
    )
    file: str | None = optional(
        text("path"),
        "a text file with a route per line, blank lines and # comments; relative to the YAML file",
    )
    gateway: Address | None = optional(
        address(), "for lines that name neither gateway nor interface"
    )
    interface: str | None = optional(
        link_reference(), "for lines that name neither gateway nor interface"
    )
    type: str = optional(choice(*TYPES), _FOR_LINES, default="unicast")
    table: int = optional(route_table(), _FOR_LINES, default=MAIN_TABLE)
    metric: int = optional(integer(0, METRIC_MAX), _FOR_LINES, default=0)
    mtu: int | None = optional(integer(MTU_MIN, MTU_MAX), _FOR_LINES)
    preferred_source: Address | None = optional(
        address(), "for lines of its family that do not say"
    )


@dataclass(frozen=True, slots=True)
class RouteLines:
    """The routes of a list, and the file they came from ("" where they stand in the YAML)."""

    groups: Groups
    path: str
    # What they were read from, for when the file is read again.
    content: bytes = field(default=b"", repr=False)
    defaults: Defaults = field(default_factory=Defaults)
    repeats: bool = True  # a route stands there more than once


def defaults(spec: RouteList) -> Defaults:
    return Defaults(
        str(spec.gateway or ""),
        spec.interface or "",
        spec.table,
        spec.metric,
        spec.type,
        spec.mtu or 0,
        str(spec.preferred_source or ""),
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: RouteList = resource.spec
    if (spec.routes is None) == (spec.file is None):
        yield Fault((), "needs either `routes` or `file`, one of them")
    for index, line in enumerate(spec.routes or ()):
        if "\n" in line:
            yield Fault(("routes", index), "must be one line")
    if spec.type != "unicast":
        for name, value in (
            ("gateway", spec.gateway),
            ("interface", spec.interface),
            ("mtu", spec.mtu),
            ("preferredSource", spec.preferred_source),
        ):
            if value is not None:
                yield Fault((name,), f"has no meaning where `type` is {spec.type}")


def read(resource: Resource, folder: Folder) -> Content:
    spec: RouteList = resource.spec
    if spec.file is None:
        inline = [spec.routes or ()]
        read = _lines(lambda: inline, defaults(spec))
        found = [Fault(("routes", fault.line), fault.message) for fault in read.faults]
        return Content(RouteLines(read.groups, ""), faults=_capped(found))
    try:
        file = folder.read(spec.file)
        known = _again(folder.before.get(resource.id), file, defaults(spec))
        if known is not None:
            return Content(known, _file_of(known), tuple(_doubts(known.groups, file)))
        content = decode(file)
    except ConfigError as error:
        return Content(None, faults=tuple(_unreadable(error)))
    read = _lines(lambda: route_lines.chunks(content), defaults(spec))
    found = [_in_file(file, fault) for fault in read.faults]
    lines = RouteLines(read.groups, file.path, file.content, defaults(spec), read.repeats)
    return Content(lines, file, (*_capped(found), *_doubts(read.groups, file)))


def _lines(lines: Callable[[], Iterable[Sequence[str]]], shared: Defaults) -> Lines:
    found = route_lines.read_lines(lines(), shared)
    return found if found is not None else route_lines.read_exactly(lines(), shared)


def _again(before: Any, file: SourceFile, shared: Defaults) -> RouteLines | None:
    """What was read before, as far as the file is still so; None where all of it is to be read."""
    if not isinstance(before, RouteLines) or (before.path, before.defaults) != (file.path, shared):
        return None
    if before.content == file.content:
        return before
    if before.repeats:
        return None
    groups = edited(before.groups, before.content, file.content, shared)
    if groups is None:
        return None
    return RouteLines(groups, file.path, file.content, shared, repeats=False)


def _file_of(lines: RouteLines) -> SourceFile:
    return SourceFile(lines.path, lines.content)


def _unreadable(error: ConfigError) -> Iterator[Fault]:
    for problem in error.problems:
        yield Fault(("file",), f"{problem.place}: {problem.message}")


def _in_file(file: SourceFile, fault: LineFault) -> Fault:
    return Fault((), fault.message, at=Place(file.path, fault.line + 1, fault.column))


def _capped(found: list[Fault]) -> tuple[Fault, ...]:
    if len(found) <= FAULTS_SHOWN:
        return tuple(found)
    last = found[FAULTS_SHOWN]
    more = f"and {len(found) - FAULTS_SHOWN} more faulty lines from here on"
    return (*found[:FAULTS_SHOWN], Fault(last.location, more, at=last.at))


def _doubts(groups: Groups, file: SourceFile) -> Iterator[Fault]:
    if file.content and not file.content.endswith(b"\n"):
        message = f"{file.path} does not end with a newline: it may be cut short"
        yield Fault(("file",), message, warning=True)
    if not groups:
        yield Fault(("file",), f"{file.path} holds no routes", warning=True)


def intents(resource: Resource, site: Site) -> Iterator[BulkIntent]:
    lines: RouteLines = resource.content
    resolved: Groups = {}
    for template, keys in lines.groups.items():
        # Two spellings of one nexthop (resource name, kernel name, none) meet here.
        target = nexthops.resolve(template, site)
        known = resolved.get(target)
        resolved[target] = keys if known is None else list(dict.fromkeys([*known, *keys]))
    for template, keys in resolved.items():
        yield BulkIntent(
            resource.id,
            batch(template, keys),
            resource.place,
            nexthops.requires(template, site),
            nexthops.lacks(template),
        )


def lone_gateways(resource: Resource) -> Iterator[tuple[int, bytes]]:
    lines: RouteLines = resource.content
    for template in lines.groups:
        for hop in template.nexthops:
            if not hop.dev:
                yield template.table, ip_address(hop.gateway).packed


def on_link(resource: Resource, site: Site) -> Iterator[tuple[int, list[bytes], str]]:
    lines: RouteLines | None = resource.content
    for template, keys in lines.groups.items() if lines is not None else ():
        if ifname := only_link(template, site):
            yield template.table, keys, ifname


def lines_declaring(
    resource: Resource, files: Iterable[SourceFile], wanted: Set[Identity]
) -> Iterator[tuple[int, Identity]]:
    """The numbers, from 0, of the lines (or list items) that declare the wanted routes."""
    spec: RouteList = resource.spec
    lines: RouteLines = resource.content
    chunks: Iterable[Sequence[str]] = [spec.routes or ()]
    if lines.path:
        chunks = route_lines.chunks(next(decode(f) for f in files if f.path == lines.path))
    return route_lines.lines_of(chunks, defaults(spec), wanted)


def reaches(resource: Resource) -> Iterator[Reach]:
    """What stands in its lines."""
    lines: RouteLines = resource.content
    at = ("routes",)
    for template, keys in lines.groups.items():
        for hop in template.nexthops:
            if hop.gateway:
                yield Reach(at, ip_network(hop.gateway))
            if hop.dev:
                yield Reach(at, link=hop.dev)
        if template.prefsrc:
            yield Reach(at, ip_network(template.prefsrc))
        yield Reach(at, packed=keys)


def size(resource: Resource) -> int:
    """Each of its routes counts: a list is no way round a limit."""
    lines: RouteLines = resource.content
    return max(1, sum(map(len, lines.groups.values())))


KINDS = (
    Kind(
        RouteList,
        "Any number of routes as one resource. A line is what `ip route add` takes: `PREFIX"
        " [via GATEWAY] [dev INTERFACE] [metric N] [table N] [mtu N] [src ADDRESS] [onlink]`,"
        " `blackhole PREFIX`, or `PREFIX nexthop via A dev B weight N nexthop via C …`. `dev` names"
        " an Interface resource; where none has that name, it is the kernel's name of a link. A"
        " gateway without `dev` is reached over the link that has it in a network.",
        (ROUTE.name,),
        """\
gateway: 192.0.2.254
routes:
  - 198.51.100.0/24
  - 203.0.113.0/24 metric 50
  - blackhole 10.0.0.0/8
""",
        intents,
        check,
        read,
        open_to_others=nothing_against,
        reaches=reaches,
        size=size,
        cross_checks="routes.route_checks",
        lines_declaring=lines_declaring,
        lone_gateways=lone_gateways,
        on_link=on_link,
    ),
)
