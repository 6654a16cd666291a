"""The configuration as commands and the daemon need it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.dataclass import dataclass, replace
from holdfast.engine.document import About, FileDigest
from holdfast.engine.intent import Desired
from holdfast.engine.policy import CUT_REMEDY, Policy
from holdfast.errors import ConfigError, Problem
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.questions import fact_kinds, gateways, lookups
from holdfast.resources.router import Router, load_router
from holdfast.runtime import trusted_configuration, unfinished_files
from holdfast.runtime.barriers import barred

if TYPE_CHECKING:  # most configurations have one source
    from holdfast.resources.dynamic.effective import Effective, Suppressed
    from holdfast.runtime.sources import Stored

# The format of the ledger that parts came with.
_WITH_PARTS = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    path: Path
    router: Router  # the effective config
    root: str  # what `--root` puts before every path
    facts: Facts
    desired: Desired
    effective: Effective | None = None  # how it came about; None: of the file alone
    unloaded: tuple[str, ...] = ()  # sources that a daemon waits for
    unfinished: str = ""  # why its files may not be whole: somebody is writing one

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        return self.effective.suppressed if self.effective is not None else ()

    def about(self, paths: Paths) -> About:
        files = tuple(
            FileDigest(file.path, hashlib.sha256(file.content).hexdigest())
            for file in self.router.files
        )
        return About(__version__, str(paths.root), str(self.path), files)

    def policy(
        self, epoch: str, *, allow_mass_delete: bool = False, allow_side_effects: bool = False
    ) -> Policy:
        cut = self.router.doubt
        return Policy(
            epoch=epoch,
            max_delete_share=self.router.ownership.max_delete_share,
            allow_mass_delete=allow_mass_delete,
            allow_side_effects=allow_side_effects,
            doubt=cut or self.unfinished,
            remedy=CUT_REMEDY if cut else unfinished_files.REMEDY,
            unloaded=self.unloaded,
        )


def load(
    paths: Paths,
    file: Path | None,
    warn: Callable[[str], None],
    *,
    facts: bool = True,
    on_host: bool = True,
) -> Loaded:
    """Raises ConfigError with every problem.

    facts: learn what the resources depend on, and what other sources contribute; without, all of
    it is unknown and the file stands alone. on_host: this is the machine that it is for.

    Files are known by their absolute paths, so that the ledger means the same from everywhere.
    """
    if file is None and not paths.config.exists():
        message = "there is no such file: write it, or name another one after the command"
        raise ConfigError([Problem(str(paths.config), "", message)])
    path = (paths.config if file is None else file).absolute()
    if on_host:
        trusted_configuration.refuse_untrusted(path, trusted_configuration.asking())
    router = load_router(path, paths.root, handed=True, on_host=on_host)
    doubt = unfinished_files.doubt(Path(file.path) for file in router.files)
    return replace(of_router(paths, path, router, warn, facts=facts), unfinished=doubt)


def of_router(
    paths: Paths, path: Path, router: Router, warn: Callable[[str], None], *, facts: bool = True
) -> Loaded:
    """The same of a startup file that was read already, or is read from the ledger."""
    stored = _stored(paths) if facts else None
    effective = None
    if stored is not None:
        effective = stored.merge(router, time.time())
        router = effective.router
    for warning in (*router.warnings, *(effective.findings if effective is not None else ())):
        warn(str(warning))
    known = _learn(paths, router) if facts else NOTHING_KNOWN
    for trouble in known.troubles:
        warn(str(trouble))
    for name, reason in barred(router.resources, known).items() if facts else ():
        warn(f"{name}: {reason}")
    root = str(paths.root).rstrip("/")
    return Loaded(path, router, root, known, compile_router(router, known, root), effective)


def learn_again(paths: Paths, loaded: Loaded) -> Loaded:
    """By what is known now; the very same where that is what was known. Names are not looked up
    again: what is changed here does not change them."""
    asked = gateways(loaded.router)
    if not fact_kinds(loaded.router) and not asked:
        return loaded
    from holdfast.host.facts.read import read_facts  # as below

    known = replace(read_facts(paths, (), asked), answers=loaded.facts.answers)
    if known == loaded.facts:
        return loaded
    desired = compile_router(loaded.router, known, loaded.root)
    return replace(loaded, facts=known, desired=desired)


def _stored(paths: Paths) -> Stored | None:
    """Parts in force count for every command, or an apply by hand would undo what they add."""
    from holdfast.state.database import OlderLedgerError  # a file is checked without
    from holdfast.state.ledger import Ledger

    try:
        with Ledger.read(paths) as ledger:
            if not ledger.part_index():
                return None
            from holdfast.runtime.sources import stored

            return stored(ledger)
    except OlderLedgerError as error:
        if error.version >= _WITH_PARTS:
            raise
        return None


def _learn(paths: Paths, router: Router) -> Facts:
    asked = gateways(router)
    if not fact_kinds(router) and not asked:
        return NOTHING_KNOWN
    from holdfast.host.facts.read import read_facts  # many configurations need none

    return read_facts(paths, lookups(router), asked)
