"""Passes that somebody asked for: the next one answers all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.agent.reconciler import Done
from holdfast.dataclass import dataclass, field
from holdfast.engine.driver import Result


@dataclass(frozen=True, slots=True)
class PassRequest:
    answer: asyncio.Future[Done]
    progress: Callable[[int, int], None]  # called in the thread of the pass, as `told` is
    told: Callable[[Sequence[Result]], None]  # what became of operations
    allow_mass_delete: bool = False
    allow_lockout: bool = False
    allow_side_effects: bool = False


@dataclass(slots=True)
class WaitingRequest:
    """On the event loop, but for `progress` and `told`."""

    _waiting: list[PassRequest] = field(default_factory=list)

    def add(self, question: PassRequest) -> None:
        self._waiting.append(question)

    def put_back(self, questions: PassRequests) -> None:
        """They wait for a later pass."""
        self._waiting[:0] = questions.questions

    def take(self) -> PassRequests:
        """Those whom the pass that begins now answers."""
        taken, self._waiting = self._waiting, []
        return PassRequests(tuple(taken))


@dataclass(frozen=True, slots=True)
class PassRequests:
    questions: tuple[PassRequest, ...] = ()

    @property
    def allow_mass_delete(self) -> bool:
        return any(question.allow_mass_delete for question in self.questions)

    @property
    def allow_lockout(self) -> bool:
        return any(question.allow_lockout for question in self.questions)

    @property
    def allow_side_effects(self) -> bool:
        return any(question.allow_side_effects for question in self.questions)

    def progress(self, done: int, total: int) -> None:
        for question in self.questions:
            question.progress(done, total)

    def told(self, results: Sequence[Result]) -> None:
        for question in self.questions:
            question.told(results)

    def settle(self, done: Done) -> None:
        for question in self.questions:
            if not question.answer.done():
                question.answer.set_result(done)

    def fail(self, error: Exception) -> None:
        for question in self.questions:
            if not question.answer.done():
                question.answer.set_exception(error)
