"""Which plugin carries out actions of a provider."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.agent.actions.policy import Against
from holdfast.agent.plugins import runner
from holdfast.paths import Paths
from holdfast.resources.dynamic.plugin import EXECUTES
from holdfast.resources.resource import Resource


def executor(
    startup: Iterable[Resource], provider: str, paths: Paths
) -> tuple[Resource | None, list[Against]]:
    """The one named after the provider, else the only one that may; or why there is none."""
    plugins = {one.name: one for one in startup if one.kind == "Plugin"}
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
        need = f"there is no Plugin/{name}, nor a single one with the capability {EXECUTES}"
        return None, [_against(f"{need}: {why}")]
    refused = runner.objection(paths.under(chosen.spec.executable))
    return (None, [_against(refused)]) if refused else (chosen, [])


def _against(why: str) -> Against:
    return Against("executor", why)
