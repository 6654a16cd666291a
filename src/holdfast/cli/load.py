"""The configuration as the commands need it."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast import __version__
from holdfast.cli.terminal import Style, say
from holdfast.engine.document import About, FileDigest
from holdfast.engine.intent import Desired
from holdfast.engine.policy import Policy
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.router import Router, load_router


@dataclass(frozen=True, slots=True)
class Loaded:
    path: Path
    router: Router
    root: str  # what `--root` puts before every path
    facts: Facts
    desired: Desired

    def about(self, paths: Paths) -> About:
        files = tuple(
            FileDigest(file.path, hashlib.sha256(file.content).hexdigest())
            for file in self.router.files
        )
        return About(__version__, str(paths.root), str(self.path), files)

    def policy(self, epoch: str, *, allow_mass_delete: bool = False) -> Policy:
        return Policy(
            epoch=epoch,
            max_delete_share=self.router.ownership.max_delete_share,
            allow_mass_delete=allow_mass_delete,
            doubt=self.router.doubt,
        )


def load(paths: Paths, file: Path | None, *, facts: bool = True) -> Loaded:
    """Raises ConfigError with every problem; says warnings on stderr.

    facts: learn what the resources depend on; without, all of it is unknown.

    Files are known by their absolute paths, so that the ledger means the same from everywhere.
    """
    path = (paths.config if file is None else file).absolute()
    router = load_router(path, paths.root)
    style = Style.of(sys.stderr)
    say((f"{style('warning:', 'yellow')} {warning}" for warning in router.warnings), sys.stderr)
    known = _learn(paths, router) if facts else NOTHING_KNOWN
    say((f"{style('warning:', 'yellow')} {trouble}" for trouble in known.troubles), sys.stderr)
    root = str(paths.root).rstrip("/")
    return Loaded(path, router, root, known, compile_router(router, known, root))


def _learn(paths: Paths, router: Router) -> Facts:
    if not registry.FACT_KINDS.intersection(resource.kind for resource in router.resources):
        return NOTHING_KNOWN
    from holdfast.host.facts.read import read_facts  # many configurations need none
    from holdfast.resources.questions import lookups

    return read_facts(paths, lookups(router))
