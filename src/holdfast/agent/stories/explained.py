"""The story that somebody asks for by a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.agent.load import Loaded
from holdfast.agent.stories import artifact
from holdfast.agent.stories.findings import find
from holdfast.agent.stories.members import Members
from holdfast.agent.stories.selector import parse
from holdfast.agent.stories.style import Style
from holdfast.dataclass import dataclass
from holdfast.paths import Paths


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
        f"{selector.text}: not there, not declared and not claimed",
        lambda: artifact.members(selector, findings, view.plan),
        lines,
    )
