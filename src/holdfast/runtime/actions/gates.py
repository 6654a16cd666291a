"""All that has to be passed before an executor is asked."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.dataclass import dataclass
from holdfast.host import confined_program
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.dynamic.plugin import EXECUTES, Plugin
from holdfast.resources.dynamic.provider_action_policy import ProviderActionPolicy, policy_of
from holdfast.resources.resource import Resource, id_of
from holdfast.runtime.actions import intake, policy
from holdfast.runtime.actions.plan import ActionPlan, UnfitError, read
from holdfast.runtime.actions.policy import Objection
from holdfast.state.actions import Action
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Ready:
    """An action with all that it takes to execute it."""

    action: Action
    plan: ActionPlan
    executor: Resource


@dataclass(frozen=True, slots=True)
class Gates:
    paths: Paths
    effective: Effective
    policy: ProviderActionPolicy | None
    now: float
    waiting: Confirmation | None  # a generation that waits to be confirmed

    @classmethod
    def of(cls, paths: Paths, effective: Effective, ledger: Ledger, now: float) -> Gates:
        policy = policy_of(effective.startup.resources)
        spec = policy.spec if policy is not None else None
        return cls(paths, effective, spec, now, ledger.waiting())

    @property
    def asks(self) -> bool:
        """Whether somebody has to approve."""
        return self.policy is None or self.policy.require_approval

    def against(self, action: Action, done_in_this_run: int) -> list[Objection]:
        """Everything that speaks against executing it now, its approval aside."""
        try:
            plan = read(action.plan)
        except UnfitError as error:
            return [Objection("plan", str(error))]
        found = policy.judge(plan, self.policy, self.now, done_in_this_run)
        if action.undoes:
            if self.policy is not None and not self.policy.allow_undo:
                found.append(Objection("allowUndo", "ProviderActionPolicy: allowUndo is false"))
        elif not self._proposed(action):
            found.append(Objection("part", intake.OVER))
        if self.waiting is not None:
            why = (
                f"generation {self.waiting.generation} waits to be confirmed, and going back would"
                " not undo it"
            )
            found.append(Objection("confirm", why, passing=True, dry_run_may=True))
        _, none = _executor(self.effective.startup.resources, plan.provider, self.paths)
        return [*found, *none]

    def lasting(self, action: Action) -> list[Objection]:
        """What will not go by itself, nor once the policy lets more than dry runs happen."""
        return [objection for objection in self.against(action, 0) if not objection.passing]

    def ready(self, action: Action) -> Ready:
        """Of an action that nothing speaks against."""
        plan = read(action.plan)
        chosen, _ = _executor(self.effective.startup.resources, plan.provider, self.paths)
        if chosen is None:
            raise TypeError(f"{action.key} has passed the gates without an executor")
        return Ready(action, plan, chosen)

    def _proposed(self, action: Action) -> bool:
        return any(
            part.source == action.source
            and not part.expired(self.now)
            and any(plan.get("idempotencyKey") == action.key for plan in part.action_plans)
            for part in self.effective.active
        )


def _executor(
    startup: Iterable[Resource], provider: str, paths: Paths
) -> tuple[Resource | None, list[Objection]]:
    """The one named after the provider, else the only one that may; or why there is none."""
    plugins = {plugin.name: plugin for plugin in startup if isinstance(plugin.spec, Plugin)}
    able = [plugin for plugin in plugins.values() if EXECUTES in (plugin.spec.capabilities or ())]
    name = f"{provider}-executor"
    if name in plugins:
        chosen = plugins[name]
        if chosen not in able:
            return None, [_against(f"{chosen.id} has not the capability {EXECUTES}")]
    elif len(able) == 1:
        chosen = able[0]
    else:
        many = ", ".join(plugin.name for plugin in able)
        why = f"more than one has it: {many}" if many else "no plugin has it"
        need = f"there is no {id_of(Plugin, name)}, nor a single one with the capability {EXECUTES}"
        return None, [_against(f"{need}: {why}")]
    refused = confined_program.objection(paths.under(chosen.spec.executable))
    return (None, [_against(refused)]) if refused else (chosen, [])


def _against(why: str) -> Objection:
    return Objection("executor", why)
