"""The story that somebody asks for by a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from ipaddress import IPv4Address, IPv6Address

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.route import route_key
from holdfast.host.netlink.routes import route_lookup
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.render.documents import Members
from holdfast.render.explain import artifact
from holdfast.render.explain.findings import find
from holdfast.render.explain.selector import Selector, parse
from holdfast.render.style import Style
from holdfast.runtime.load import Loaded

_ALIKE = 5  # resources that are offered where an artifact was meant


@dataclass(frozen=True, slots=True)
class Told:
    found: bool
    absent: str  # what is said where nothing is found
    members: Callable[[], Members]
    lines: Callable[[Style], Iterator[str]]


def explain(paths: Paths, loaded: Loaded, name: str) -> Told:
    """Raises HoldfastError where the name can be about nothing, or about no such resource."""
    selector = parse(name)
    if selector.resource:
        from holdfast.render.explain import resource

        story = resource.tell(paths, loaded, selector.resource)
        return Told(found=True, absent="", members=story.members, lines=story.lines)
    view, findings = find(paths, loaded, selector)
    matched = ""
    if not findings and selector.address is not None:
        matched = _longest_match(selector.address)
        if matched:
            view, findings = find(paths, loaded, parse(f"route {matched}"))

    def lines(style: Style) -> Iterator[str]:
        if matched:
            yield f"{selector.text} is on nothing by itself; by the longest match it goes by this:"
        for number, finding in enumerate(findings):
            if number:
                yield ""
            yield from artifact.lines(finding, view.plan, style)

    return Told(
        bool(findings),
        _absent(loaded, selector),
        lambda: artifact.members(selector, findings, view.plan, matched),
        lines,
    )


def _longest_match(address: IPv4Address | IPv6Address) -> str:
    """As `explain` takes it; "" where no route leads there."""
    with closing(NetlinkSocket()) as sock:
        found = route_lookup.matched(sock, address)
    return "" if found is None else route_key(*found).name


def _absent(loaded: Loaded, selector: Selector) -> str:
    *others, last = sorted(kind.replace("_", " ") for kind in selector.kinds)
    kinds = f"{', '.join(others)} or {last}" if others else last
    said = f"{selector.text}: no {kinds} of this name is there, declared or claimed"
    word = selector.words[-1] if selector.words else ""
    alike = [one.id for one in loaded.router.resources if one.name == word]
    return f"{said}; did you mean {' or '.join(alike[:_ALIKE])}?" if alike else said
