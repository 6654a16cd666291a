"""What became of operations, told as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from holdfast.dataclass import dataclass, field
from holdfast.engine import document
from holdfast.engine.driver import Result
from holdfast.engine.plan import Operation, Verb
from holdfast.numbers import thousands
from holdfast.render import artifact_words
from holdfast.render.style import Style

# As many of one kind are told one by one; of more than that, the first three.
_EACH, _FIRST = 10, 3


@dataclass(frozen=True, slots=True)
class Outcome:
    action: str
    artifact: str  # of several alike, the first
    count: int
    done: int  # how many of them were brought about
    error: str  # why the others were not: the system's own words about the first


def of(results: Sequence[Result]) -> Iterator[Outcome]:
    """Of the operations of one stage."""
    for _, run in groupby(results, lambda result: (result.operation.verb, _error(result))):
        alike = list(run)
        few = len(alike) if len(alike) <= _EACH else _FIRST
        yield from (_outcome([result]) for result in alike[:few])
        if alike[few:]:
            yield _outcome(alike[few:])


@dataclass(slots=True)
class Telling:
    """Lines as it goes on. Each round tries again what failed before: that is told once, and with
    its remedy and its place in the report at the end."""

    style: Style
    _failed: set[Outcome] = field(default_factory=set)

    def lines(self, told: Iterable[Outcome]) -> Iterator[str]:
        for outcome in told:
            if outcome not in self._failed:
                yield line(outcome, self.style)
            if outcome.error:
                self._failed.add(outcome)


def line(given: Outcome, style: Style) -> str:
    """`  created address 192.0.2.1/24 dev lan0`."""
    verb = Verb(given.action)
    more = f" and {thousands(given.count - 1)} more" if given.count > 1 else ""
    what = f"{given.artifact}{more}"
    if not given.error:
        return f"  {style(verb.past, *artifact_words.LOOKS[verb])} {what}"
    made = f" ({thousands(given.done)} {verb.past})" if given.done else ""
    return f"  {style('failed', 'bold', 'red')} to {verb} {what}{made}: {_words(given.error)}"


def _words(error: str) -> str:
    """The system's own, without what is said about them."""
    return error.partition("\n")[0].partition("; ")[0]


def _outcome(results: Sequence[Result]) -> Outcome:
    first = results[0]
    return Outcome(
        first.operation.verb.value,
        _shown(first.operation),
        sum(result.operation.count for result in results),
        sum(result.done for result in results),
        _error(first),
    )


def _error(result: Result) -> str:
    return result.failures[0].error if result.failures else ""


def _shown(operation: Operation) -> str:
    first = next(document.artifacts(operation.subject, 1))
    fields = first.fields if not operation.changes else None
    return artifact_words.artifact(document.name(first.key), fields)
