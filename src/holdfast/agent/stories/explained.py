"""The story that somebody asks for by a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.agent.load import Loaded
from holdfast.agent.stories import artifact
from holdfast.agent.stories.findings import find
from holdfast.agent.stories.members import Members
from holdfast.agent.stories.selector import Selector, parse
from holdfast.agent.stories.style import Style
from holdfast.dataclass import dataclass
from holdfast.paths import Paths

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
        from holdfast.agent.stories import resource

        story = resource.tell(paths, loaded, selector.resource)
        return Told(found=True, absent="", members=story.members, lines=story.lines)
    view, findings = find(paths, loaded, selector)

    def lines(style: Style) -> Iterator[str]:
        for number, finding in enumerate(findings):
            if number:
                yield ""
            yield from artifact.lines(finding, view.plan, style)

    return Told(
        bool(findings),
        _absent(loaded, selector),
        lambda: artifact.members(selector, findings, view.plan),
        lines,
    )


def _absent(loaded: Loaded, selector: Selector) -> str:
    *others, last = sorted(selector.kinds)
    kinds = f"{', '.join(others)} or {last}" if others else last
    said = f"{selector.text}: no {kinds} of this name is there, declared or claimed"
    word = selector.words[-1] if selector.words else ""
    alike = [one.id for one in loaded.router.resources if one.name == word]
    return f"{said}; did you mean {' or '.join(alike[:_ALIKE])}?" if alike else said
