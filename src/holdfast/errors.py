"""Every error Holdfast raises on purpose, and the exit code each one leads to."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.dataclass import dataclass


class HoldfastError(Exception):
    """Something could not be done; the message says what, on what, and what to do."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the configuration, and where it stands."""

    place: str  # "router.yaml:12:5"
    path: str  # "spec.address"; empty where the whole document is meant
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.path, self.message) if part)


class ConfigError(HoldfastError):
    """The configuration is invalid. Carries every problem found, in file order."""

    exit_code = 3

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Refused(HoldfastError):  # noqa: N818 - it is a decision, not an error
    """Holdfast could do it and won't: a stale plan, a mass delete, a drifted adoption."""

    exit_code = 4


class LedgerError(HoldfastError):
    """The ledger cannot be used: corrupt, unreadable, from a newer version, or held."""

    exit_code = 5


class DriverError(HoldfastError):
    """A driver could not observe or change its artifacts; carries the system's own words."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code  # errno, where the system gave one
        super().__init__(message)
