"""ActionPlan: what a part proposes to be done at a provider. Pure.

A plan is untrusted. It is read whole or not at all, by itself: one that cannot be read neither
keeps others out nor the part that it stands in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_interface
from typing import Any

from holdfast.config.part import Raw
from holdfast.errors import HoldfastError
from holdfast.resources.dynamic.provider_action_policy import ACTIONS, PROVIDERS
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.shape import (
    Shape,
    ShapeError,
    Spec,
    choice,
    listed,
    nested,
    optional,
    parsed,
    required,
    text,
)
from holdfast.runtime.actions.named_addresses import Named, named
from holdfast.runtime.plugins.redaction import redacted

UNDO = ":undo"
# Under which an undo finds what was observed when it was done.
OBSERVED = "observed"
DRY_RUN = "dry-run"
_KEY = r"[A-Za-z0-9][A-Za-z0-9._:/=@+-]{0,199}"
_MOST_TEXT = 1024
# All of it: the journal keeps many.
_MOST_BYTES = 16 << 10
_NEEDS = {
    "secondary-ip": ("address", "nicRef"),
    "route-table-route": ("address", "nicRef", "routeTableRef"),
}


class UnfitError(HoldfastError):
    """Why a plan is not taken; each reason with the path inside it."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


def _parse_word(written: str) -> str:
    if not written.isprintable() or not 0 < len(written) <= _MOST_TEXT:
        raise ValueError("must be one line of text")
    return written


def _parse_key(written: str) -> str:
    if not re.fullmatch(_KEY, written):
        raise ValueError(
            "must be up to 200 letters, digits and . _ : / = @ + -, a letter or digit first"
        )
    return written


def _read_mode(value: Any) -> str:
    if value == "execute":
        raise ValueError("a plan cannot ask to be executed; that is for ProviderActionPolicy")
    if value not in ("", DRY_RUN):
        raise ValueError(f"must be empty or {DRY_RUN}")
    return str(value)


def _read_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    return value


def _read_target(value: Any) -> dict[str, str]:
    for name, one in _read_object(value).items():
        if not isinstance(one, str):
            raise ValueError(f"{name} must be text")
        _parse_word(one)
    return dict(value)


_WORD = parsed(_parse_word, "text")
_OBJECT = Shape(_read_object, {"type": "object"}, "object", lines=True)


class Undo(Spec):
    action: str = required(choice(*ACTIONS), "what undoes it")
    parameters: dict[str, Any] | None = optional(_OBJECT, "for the executor")


class ActionPlan(Spec):
    name: str = required(_WORD, "for people")
    provider: str = required(choice(*PROVIDERS), "where")
    action: str = required(choice(*ACTIONS), "what")
    target: dict[str, str] = required(Shape(_read_target, {"type": "object"}, "object"), "to what")
    provider_ref: str | None = optional(_WORD, "which account")
    mode: str = optional(Shape(_read_mode, {"enum": ["", DRY_RUN]}, DRY_RUN), "", default="")
    description: str = optional(text(least=0, longest=4096, lines=True), "for people", default="")
    risk_level: str | None = optional(choice("low", "medium", "high"), "for whoever approves")
    idempotency_key: str | None = optional(parsed(_parse_key, "text"), "what makes it one action")
    parameters: dict[str, Any] | None = optional(_OBJECT, "for the executor")
    preconditions: tuple[str, ...] = optional(listed(_WORD, least=0), "for people", default=())
    expected_effects: tuple[str, ...] = optional(listed(_WORD, least=0), "for people", default=())
    undo: Undo | None = optional(nested(Undo), "how it is undone; it cannot be without")

    def __str__(self) -> str:
        at = self.target.get("address") or next(iter(self.target.values()))
        return f"{self.action} {at} at {self.provider}"


def read(raw: Raw) -> ActionPlan:
    """Raises UnfitError with all that is wrong with it."""
    try:
        plan = ActionPlan.read(dict(raw))
    except ShapeError as error:
        raise UnfitError(
            f"{dotted(complaint.location)}: {complaint.message}" for complaint in error.complaints
        ) from None
    wrong = list(_wrong(plan))
    if wrong:
        raise UnfitError(wrong)
    return plan


def read_proposed(raw: Raw) -> tuple[str, ActionPlan]:
    """A plan of a part, and its key. Raises UnfitError."""
    if len(json.dumps(raw)) > _MOST_BYTES:
        raise UnfitError([f"is more than {_MOST_BYTES >> 10} KiB"])
    plan = read(raw)
    key = plan.idempotency_key
    if key is None:
        raise UnfitError(["idempotencyKey: is missing; without it nobody can tell what was done"])
    if key.endswith(UNDO):
        raise UnfitError([f"idempotencyKey: ends with {UNDO}, which is for undoing"])
    return key, plan


def name_of(raw: Raw) -> str:
    """How people know a plan that may not be one."""
    name = raw.get("name")
    return name[:100] if isinstance(name, str) and name.isprintable() and name else "(no name)"


def undoing(raw: Raw, plan: ActionPlan, observed: Mapping[str, Any]) -> dict[str, Any]:
    """The plan that undoes one, which has an undo, with what was observed when it was done."""
    if plan.undo is None:
        raise TypeError("a plan that cannot be undone")
    kept = {name: raw[name] for name in ("provider", "target", "providerRef") if name in raw}
    return kept | {
        "name": f"undo of {plan.name}",
        "action": plan.undo.action,
        "idempotencyKey": f"{plan.idempotency_key}{UNDO}",
        "parameters": (plan.undo.parameters or {}) | {OBSERVED: dict(observed)},
    }


def addresses(plan: ActionPlan) -> Iterator[Named]:
    """Every address and prefix that the executor is told of, under whichever name and however it
    is written: a policy would be worth little if another word led around it."""
    told = {
        "name": plan.name,
        "providerRef": plan.provider_ref,
        "idempotencyKey": plan.idempotency_key,
        "target": plan.target,
    }
    for path, value in told.items():
        yield from named(path, value)
    parameters = dict(plan.parameters or {})
    if (plan.idempotency_key or "").endswith(UNDO):
        # What was observed is what the provider said, not what is to be done. No plan of a part
        # has such a key, so none can hide anything there.
        parameters.pop(OBSERVED, None)
    yield from named("parameters", parameters)
    if plan.undo is not None:
        yield from named("undo.parameters", plan.undo.parameters)


def secrets(value: Any) -> frozenset[str]:
    """Texts below fields that are named like secrets."""
    return frozenset(_texts(value)) - frozenset(_texts(redacted(value)))


def _wrong(plan: ActionPlan) -> Iterator[str]:
    if not plan.target:
        yield "target: names nothing"
    for ending, fields in _NEEDS.items():
        if plan.action.endswith(ending):
            for field in fields:
                if field not in plan.target:
                    yield f"target.{field}: is missing; {plan.action} needs it"
    address = plan.target.get("address")
    if address is not None and not _is_network(address):
        yield "target.address: is neither an address nor a prefix"
    if plan.undo is not None and OBSERVED in (plan.undo.parameters or {}):
        yield f"undo.parameters.{OBSERVED}: is put there by the journal"


def _is_network(written: str) -> bool:
    """As plainly as every executor reads it: target.address is what is acted on."""
    try:
        ip_interface(written)
    except ValueError:
        return False
    return True


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
        yield str(value)
