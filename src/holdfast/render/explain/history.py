"""What the ledger's stored generations say about where something was declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.resources.locate import declarations
from holdfast.resources.router import Router
from holdfast.runtime.confirm import stored_configuration
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Past:
    generation: int  # the newest that declares it
    owner: str
    place: str


def last_declared(paths: Paths, key: Key) -> Past | None:
    """The newest generation that declares an artifact."""

    def owner_and_place(router: Router) -> tuple[str, str] | None:
        found = declarations(router, key)
        return (found[0].owner, found[0].place) if found else None

    return _search(paths, owner_and_place)


def last_resource(paths: Paths, identity: str) -> Past | None:
    """The newest generation that declares a resource."""

    def place(router: Router) -> tuple[str, str] | None:
        found = [resource for resource in router.resources if resource.id == identity]
        return (identity, found[0].place) if found else None

    return _search(paths, place)


def _search(paths: Paths, ask: Callable[[Router], tuple[str, str] | None]) -> Past | None:
    with Ledger.read(paths) as ledger:
        for number, router in _generations(paths, ledger):
            found = ask(router)
            if found is not None:
                return Past(number, *found)
    return None


def _generations(paths: Paths, ledger: Ledger) -> Iterator[tuple[int, Router]]:
    """What each declared, the newest first, with what other sources contributed to it."""
    from holdfast.resources.dynamic.effective import merge, recorded

    for generation in ledger.generations():
        number = generation.number
        try:
            _, startup = stored_configuration.load_generation(
                ledger, number, paths.root, paths.config
            )
        except Refused:
            continue  # written for an older Holdfast, or with a secret that is gone
        parts = recorded(ledger.generation_files(number))
        yield number, merge(startup, parts, 0.0).router if parts else startup
