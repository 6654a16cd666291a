"""Programs that a configuration needs and this machine lacks, told before anything is changed."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.engine.intent import BulkIntent
from holdfast.engine.kinds import KINDS
from holdfast.errors import ConfigError, Problem
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.runtime.load import Loaded

# What leads to a program: most files have none of it, and need nothing of the host.
_ARTIFACTS = frozenset(name for name, kind in KINDS.items() if kind.needs_program)


def lacking(paths: Paths, loaded: Loaded) -> tuple[Problem, ...]:
    if not registry.having(loaded.router.resources, lambda kind: kind.program) and not any(
        intent.artifact.key.kind in _ARTIFACTS
        for intent in loaded.desired.intents
        if not isinstance(intent, BulkIntent)
    ):
        return ()
    from holdfast.host import programs

    return tuple(programs.lacking(paths, loaded.router, loaded.desired))


def check(paths: Paths, loaded: Loaded, warn: Callable[[str], None]) -> None:
    """ConfigError with all that is missing, of a configuration that is new here.

    What was begun already is only warned of: who lost a package is to have the rest repaired, as
    the daemon does, the route to where packages come from among it.
    """
    missing = lacking(paths, loaded)
    if not missing:
        return
    from holdfast.state.ledger import Ledger

    with Ledger.read(paths) as ledger:
        known = ledger.began_with(loaded.router.files)
    if not known:
        raise ConfigError(missing)
    for problem in missing:
        warn(str(problem))
