"""Which plugin carries out actions of a provider."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.host import confined_program
from holdfast.paths import Paths
from holdfast.resources.dynamic.plugin import EXECUTES, Plugin
from holdfast.resources.resource import Resource, id_of
from holdfast.runtime.actions.policy import Objection


def executor(
    startup: Iterable[Resource], provider: str, paths: Paths
) -> tuple[Resource | None, list[Objection]]:
    """The one named after the provider, else the only one that may; or why there is none."""
    plugins = {one.name: one for one in startup if isinstance(one.spec, Plugin)}
    able = [one for one in plugins.values() if EXECUTES in (one.spec.capabilities or ())]
    name = f"{provider}-executor"
    if name in plugins:
        chosen = plugins[name]
        if chosen not in able:
            return None, [_against(f"{chosen.id} has not the capability {EXECUTES}")]
    elif len(able) == 1:
        chosen = able[0]
    else:
        many = ", ".join(one.name for one in able)
        why = f"more than one has it: {many}" if many else "no plugin has it"
        need = f"there is no {id_of(Plugin, name)}, nor a single one with the capability {EXECUTES}"
        return None, [_against(f"{need}: {why}")]
    refused = confined_program.objection(paths.under(chosen.spec.executable))
    return (None, [_against(refused)]) if refused else (chosen, [])


def _against(why: str) -> Objection:
    return Objection("executor", why)
