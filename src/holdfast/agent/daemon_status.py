"""What the daemon holds to be true now: one value, replaced whole, that others read."""

from __future__ import annotations

from holdfast.dataclass import dataclass, field
from holdfast.engine.plan import Plan
from holdfast.resources import registry
from holdfast.resources.dynamic.effective import Effective, Suppressed
from holdfast.resources.facts import NOTHING_KNOWN, Facts, Verdict
from holdfast.resources.router import Router
from holdfast.runtime.log import Line


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """After the last pass. Whoever looks at it needs no lock: nothing in it changes."""

    router: Router | None = None  # the effective config; None until there was a valid one
    facts: Facts = NOTHING_KNOWN
    plan: Plan | None = None  # what is still to be done, by what was observed last
    generation: int = 0
    passes: int = 0  # since the daemon started
    last_pass: float = 0.0  # when it ended, in seconds since 1970; 0: there was none
    seconds: float = 0.0  # how long it took
    causes: tuple[str, ...] = ()
    effective: Effective | None = None  # how the router came about; None: of the file alone
    unloaded: tuple[str, ...] = ()  # sources that nothing is cleaned up without
    unwritten: str = ""  # why the ledger is not kept for good, and where it is instead
    troubles: tuple[Line, ...] = field(default=())  # what the log says stands in the way now

    @property
    def verdicts(self) -> dict[str, Verdict | None]:
        """Of every health check that is declared; None: it has not come to one yet."""
        return {
            resource.name: self.facts.verdicts.get(resource.name)
            for resource in registry.having(
                self.router.resources if self.router is not None else (),
                lambda kind: kind.has_verdict,
            )
        }

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        """What masks keep out of the effective config."""
        return self.effective.suppressed if self.effective is not None else ()
