"""Passes that somebody asked for: the next one answers all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.agent.passes import Done
from holdfast.dataclass import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    answer: asyncio.Future[Done]
    progress: Callable[[int, int], None]  # called in the thread of the pass
    allow_mass_delete: bool = False
    allow_lockout: bool = False
    allow_side_effects: bool = False


@dataclass(slots=True)
class Asked:
    """On the event loop, but for `progress`."""

    _waiting: list[Question] = field(default_factory=list)

    def add(self, question: Question) -> None:
        self._waiting.append(question)

    def take(self) -> Questions:
        """Those whom the pass that begins now answers."""
        taken, self._waiting = self._waiting, []
        return Questions(tuple(taken))


@dataclass(frozen=True, slots=True)
class Questions:
    questions: tuple[Question, ...] = ()

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

    def settle(self, done: Done) -> None:
        for question in self.questions:
            if not question.answer.done():
                question.answer.set_result(done)

    def fail(self, error: Exception) -> None:
        for question in self.questions:
            if not question.answer.done():
                question.answer.set_exception(error)
