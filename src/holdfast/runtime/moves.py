"""What a configuration moves to links that are not there, by the one that was in force before."""

from __future__ import annotations

from holdfast.engine.policy import Moved
from holdfast.errors import Refused
from holdfast.host.link_names import read_link_names
from holdfast.paths import Paths
from holdfast.resources import moves
from holdfast.resources.router import Router
from holdfast.runtime.confirm import stored_configuration
from holdfast.state import latches
from holdfast.state.ledger import Ledger


def to_absent_links(paths: Paths, ledger: Ledger, router: Router) -> tuple[Moved, ...]:
    """The one before is read only where a link is declared and not there, which is seldom so. One
    that this version cannot read any more says nothing."""
    absent = moves.link_names(router.resources) - read_link_names()
    before = stored_configuration.carried_out(ledger) if absent else None
    if before is None or latches.digest_of(before) == latches.digest(router.files):
        return ()
    try:
        _, former = stored_configuration.load_generation(
            ledger, before.number, paths.root, paths.config, on_host=False
        )
    except Refused:
        return ()
    found = moves.moved(former.resources, router.resources)
    return tuple(moved for moved in found if moved.link in absent)
