"""Which startup config is in force: the file, or the last good one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.agent.confirm import stored
from holdfast.agent.confirm import window as confirm
from holdfast.agent.defaults import LEDGER_WAIT_S
from holdfast.dataclass import dataclass
from holdfast.errors import ConfigError, LedgerError, Refused
from holdfast.paths import Paths
from holdfast.resources.router import Router, load_router
from holdfast.state.database import OlderLedgerError
from holdfast.state.generations import REVERTED, Generation
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Loaded:
    router: Router | None  # None: there never was a valid one
    said: tuple[str, ...]  # for the log, now
    trouble: str = ""  # what stands in the way of the file; empty where it is in force
    error: ConfigError | Refused | None = None  # the same, for who asked


@dataclass(slots=True)
class Startup:
    """The file is in force if it is valid and was not reverted. Otherwise what was in force
    stays; at the start, when nothing was, the last good generation of the ledger is taken. What is
    there is never taken down because a file cannot be read."""

    paths: Paths
    file: Path
    writes: bool = True  # a ledger of an older format may be brought up to date
    router: Router | None = None
    _trial: tuple[int, Router] | None = None  # the generation that waits to be confirmed

    def read(self) -> Loaded:
        """Reads the file again. LedgerError where it cannot be told whether it was reverted."""
        on_trial = self._on_trial()
        if on_trial is not None:
            return on_trial
        try:
            router = load_router(self.file, self.paths.root, again=self.router)
        except ConfigError as error:
            said = [str(problem) for problem in error.problems]
            return self._fallback(f"{self.file} is invalid", said, error)
        with self._ledger() as ledger:
            latch = ledger.latch(router.files)
        if latch is not None:
            why = (
                f"{self.file} was reverted (generation {latch.generation}: {latch.reason}) and is"
                " not applied again by itself; `holdfast apply` applies it all the same"
            )
            return self._fallback(why, [], Refused(why))
        again = "read again" if self.router else "read"
        warnings = (f"warning: {warning}" for warning in router.warnings)
        self.router = router
        count = len(router.resources)
        return Loaded(router, (*warnings, f"{self.file} {again}: {count} resources"))

    def _on_trial(self) -> Loaded | None:
        """The generation that waits to be confirmed, whatever the file says meanwhile."""
        with self._ledger() as ledger:
            waiting = ledger.waiting()
            if waiting is None:
                self._trial = None
                return None
            number = waiting.generation
            said: tuple[str, ...] = ()
            if self._trial is None or self._trial[0] != number:
                _, router = stored.load_generation(
                    ledger, number, self.paths.root, Path(waiting.file)
                )
                self._trial = number, router
                said = (f"generation {number}, of {waiting.file}, is on trial",)
        why = confirm.told(waiting)
        return Loaded(
            self._trial[1],
            said,
            f"{self.file} is not read meanwhile: {why}",
            Refused(f"nothing was touched: {why}"),
        )

    def _fallback(self, why: str, said: list[str], error: ConfigError | Refused) -> Loaded:
        if self.router is not None:
            kept = "the last good one stays in force"
        else:
            number, self.router, skipped = self._last_good()
            said += skipped
            kept = f"generation {number} of the ledger is in force" if number else "nothing is done"
        trouble = f"{why}: {kept}"
        return Loaded(self.router, (*said, trouble), trouble, error)

    def _last_good(self) -> tuple[int, Router | None, list[str]]:
        """Its number and what it declared; and what was wrong with newer ones."""
        skipped: list[str] = []
        try:
            with self._ledger() as ledger:
                for generation in self._candidates(ledger):
                    try:
                        number = generation.number
                        _, router = stored.load_generation(
                            ledger, number, self.paths.root, self.file
                        )
                    except Refused as error:
                        skipped.append(str(error))
                        continue
                    if ledger.latch(router.files) is None:
                        return number, router, skipped
        except LedgerError as error:
            skipped.append(str(error))
        return 0, None, skipped

    def _ledger(self) -> Ledger:
        """To read. One of an older format is brought up to date first: no pass would otherwise
        ever come to do it."""
        try:
            return Ledger.read(self.paths)
        except OlderLedgerError:
            if not self.writes:
                raise
            Ledger.open(self.paths, command="holdfast serve", wait=LEDGER_WAIT_S).close()
            return Ledger.read(self.paths)

    def _candidates(self, ledger: Ledger) -> Iterator[Generation]:
        """Of this file, the newest first; before those whose pass failed, those whose did not."""
        name = str(self.file)
        ours = [
            one
            for one in ledger.generations()
            if one.state != REVERTED and any(file.path == name for file in one.files)
        ]
        yield from (one for one in ours if one.state in ("converged", "partial"))
        yield from (one for one in ours if one.state not in ("converged", "partial"))
