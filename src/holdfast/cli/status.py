"""`holdfast status`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import arguments, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, counted, say, thousands
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.cli.phases import ResourceStatus
    from holdfast.engine.plan import Plan
    from holdfast.state.generations import Generation


@click.command()
@arguments.file
@output.option
@click.pass_obj
def command(paths: Paths, file: Path | None, output: str) -> int:
    """Show how every resource is doing, by a fresh look at the host. Changes nothing."""
    from holdfast.cli.load import load
    from holdfast.cli.output import write
    from holdfast.cli.phases import phases
    from holdfast.cli.preview import look

    loaded = load(paths, file)
    view = look(paths, loaded)
    status = _Status(
        loaded.router.name, phases(view.plan, loaded.router.resources), view.plan, *_past(paths)
    )
    if output == "table":
        say(status.lines(Style.of(sys.stdout)), sys.stdout)
    else:
        write(status.members(), output, sys.stdout)
    return Exit.OK if status.healthy else Exit.FAILED


def _past(paths: Paths) -> tuple[Generation | None, dict[str, Any] | None]:
    from holdfast.state.journal import LAST_PASS
    from holdfast.state.ledger import Ledger

    with Ledger.read(paths) as ledger:
        newest = ledger.generations(1)
        note = ledger.note(LAST_PASS)
    return (newest[0] if newest else None), (note if isinstance(note, dict) else None)


@dataclass(frozen=True, slots=True)
class _Status:
    router: str
    resources: Sequence[ResourceStatus]
    plan: Plan
    generation: Generation | None
    last_pass: dict[str, Any] | None

    @property
    def healthy(self) -> bool:
        """Every resource is, and nothing of ours is left that nobody declares."""
        well = all(one.phase == "Healthy" for one in self.resources)
        return well and not self.plan.changes and not self.plan.unknown

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in self.resources:
            counts[one.phase.value] = counts.get(one.phase.value, 0) + 1
        return counts

    def members(self) -> Iterator[tuple[str, Any]]:
        from holdfast.engine import document

        yield "format_version", document.FORMAT_VERSION
        yield "router", self.router
        yield "healthy", self.healthy
        yield (
            "generation",
            self.generation
            and {
                "number": self.generation.number,
                "state": self.generation.state,
            },
        )
        yield "last_pass", self.last_pass
        yield "counts", self.counts()
        yield "summary", document.summary(self.plan)
        yield (
            "resources",
            (
                {
                    "resource": one.resource,
                    "place": one.place,
                    "phase": one.phase.value,
                    "artifacts": one.artifacts,
                    "reason": one.reason,
                }
                for one in self.resources
            ),
        )

    def lines(self, style: Style) -> Iterator[str]:
        from holdfast.cli.phases import LOOKS

        yield f"{style(self.router, 'bold')}, {self._history()}"
        yield ""
        width = max((len(one.resource) for one in self.resources), default=0)
        for one in self.resources:
            phase = style(one.phase.value.ljust(8), LOOKS[one.phase])
            said = one.reason or counted(one.artifacts, "artifact") + " as declared"
            yield f"  {phase}  {one.resource.ljust(width)}  {style(said, 'dim')}"
        if self.resources:
            yield ""
        yield from self._orphans(style)
        said = ", ".join(f"{count} {phase}" for phase, count in self.counts().items())
        yield f"{counted(len(self.resources), 'resource')}: {said or 'nothing is declared'}."

    def _orphans(self, style: Style) -> Iterator[str]:
        from holdfast.engine import document

        leaving = document.summary(self.plan)["delete"]
        if leaving:
            text = f"{counted(leaving, 'artifact')} to be deleted by the next apply"
            yield style(text, "yellow")

    def _history(self) -> str:
        if self.generation is None or self.last_pass is None:
            return "never applied"
        age = max(0, int(time.time()) - int(self.last_pass["time"]))
        return (
            f"generation {self.generation.number}, last pass {_ago(age)}:"
            f" {self.last_pass['outcome']}"
        )


def _ago(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{thousands(seconds // length)} {unit} ago"
    return f"{seconds} s ago"
