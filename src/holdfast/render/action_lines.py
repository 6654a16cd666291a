"""Provider actions for people: renderings of the documents of `agent.actions.listing`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.render.style import Style
from holdfast.runtime.plugins.sanitize import line
from holdfast.state.actions import (
    APPROVED,
    FAILED,
    PENDING,
    ROLLED_BACK,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
)

_LOOKS = {
    PENDING: "yellow",
    APPROVED: "cyan",
    RUNNING: "cyan",
    SUCCEEDED: "green",
    FAILED: "red",
    SKIPPED: "dim",
    ROLLED_BACK: "magenta",
    "late": "yellow",
}
_HEAD = ("KEY", "STATE", "PROVIDER", "ACTION", "TARGET", "RISK", "SOURCE")
_JOURNAL = ("CHANGED", "KEY", "STATE", "ATTEMPTS", "ACTION", "TARGET", "APPROVED BY")
_STATE = "STATE"


def list_lines(found: Mapping[str, Any], style: Style) -> Iterator[str]:
    yield from _policy(found["policy"], style)
    actions = found["actions"]
    if not actions:
        yield "No part in force proposes an action."
    rows = [
        (
            action["key"],
            action["state"],
            str(action["provider"]),
            str(action["action"]),
            _target(action),
            action["risk"] or "-",
            action["source"],
        )
        for action in actions
    ]
    told = _table(_HEAD, rows, style) if rows else iter(())
    if rows:
        yield next(told)
    for one, text in zip(actions, told, strict=True):
        yield text
        if one["reason"]:
            yield style(f"    {one['reason']}", "dim")
        for held in one["held"]:
            yield style(f"    held: {held['why']}", "yellow")
    for one in found["rejected"]:
        yield f"{style('rejected', 'red')} {one['name']} of {one['source']}:"
        for reason in one["reasons"]:
            yield f"    {line(reason)}"


def show_lines(one: Mapping[str, Any], style: Style) -> Iterator[str]:
    state = style(one["state"], _LOOKS[one["state"]])
    yield f"{style(one['key'], 'bold')}  {state}"
    plan = one["plan"]
    facts = [
        ("what", f"{plan.get('name')}: {one['action']} at {one['provider']}"),
        ("account", one["providerRef"] or ""),
        ("proposed by", f"{one['source']}, {one['created']}"),
        ("description", line(str(plan.get("description", "")))),
        ("risk", one["risk"] or ""),
        ("undoes", one["undoes"] or ""),
        ("approved by", one["approvedBy"] or ""),
        ("attempts", str(one["attempts"] or "")),
        ("last change", one["changed"]),
        ("reason", one["reason"]),
        ("undo", "can be undone" if one["undoAvailable"] else ""),
        ("plan digest", one["planDigest"]),
    ]
    for name, value in facts:
        if value:
            yield f"  {name.ljust(12)} {value}"
    for name in ("target", "parameters", "undo"):
        if plan.get(name):
            yield f"  {name.ljust(12)} {json.dumps(plan[name])}"
    for name, title in (("preconditions", "needs"), ("expectedEffects", "effects")):
        for said in plan.get(name) or ():
            yield f"  {title.ljust(12)} {said}"
    if one["result"].get("observed"):
        yield f"  {'observed'.ljust(12)} {json.dumps(one['result']['observed'])}"
    for held in one["held"]:
        yield style(f"  {'held'.ljust(12)} {held['why']}", "yellow")
    for event in one["events"]:
        yield style(f"  {event['time']}  {event['kind']}: {event['message']}", "dim")


def journal_lines(found: Mapping[str, Any], style: Style) -> Iterator[str]:
    rows = [
        (
            one["changed"],
            one["key"],
            one["state"],
            str(one["attempts"]),
            str(one["action"]),
            _target(one),
            one["approvedBy"] or "-",
        )
        for one in found["actions"]
    ]
    if not rows:
        yield "The journal is empty."
        return
    told = _table(_JOURNAL, rows, style)
    yield next(told)
    for one, text in zip(found["actions"], told, strict=True):
        yield text
        if one["reason"]:
            yield style(f"    {one['reason']}", "dim")


def approved_lines(one: Mapping[str, Any], style: Style) -> Iterator[str]:
    """What was approved is said: it may have changed since it was last looked at."""
    what = f"{one['action']} {_target(one)} at {one['provider']}"
    yield f"{one['key']} is {style('approved', 'green')}: {what}"


def done_lines(found: Mapping[str, Any], style: Style) -> Iterator[str]:
    if not found["results"]:
        yield "There is nothing to execute."
    for one in found["results"]:
        outcome = style(one["outcome"], _LOOKS[one["outcome"]])
        dry = " (dry run)" if found["dryRun"] else ""
        yield f"{one['key']} {outcome}{dry}{': ' if one['reason'] else ''}{one['reason']}"
        if one.get("undoes"):  # of others, `action show` has told it
            yield style(f"    asks for {json.dumps(one['asked'])}", "dim")
        for held in one.get("held", ()):
            yield style(f"    held: {held['why']}", "yellow")


def _policy(policy: Mapping[str, Any] | None, style: Style) -> Iterator[str]:
    if policy is None:
        yield style("There is no ProviderActionPolicy: nothing is executed.", "yellow")
        return
    from holdfast.resources.dynamic.provider_action_policy import ProviderActionPolicy
    from holdfast.resources.resource import id_of

    name = id_of(ProviderActionPolicy, policy["name"])
    if not policy["enabled"]:
        yield style(f"{name} is not enabled: nothing is executed.", "yellow")
    elif policy["dryRunOnly"]:
        yield style(f"{name} allows dry runs only.", "yellow")


def _target(one: Mapping[str, Any]) -> str:
    target = one["target"]
    return target.get("address") or next(iter(target.values()), "-")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    yield style("  ".join(map(str.ljust, head, widths)).rstrip(), "bold")
    at = head.index(_STATE)
    for row in rows:
        cells = [*map(str.ljust, row, widths)]
        cells[at] = style(cells[at], _LOOKS[row[at]])
        yield "  ".join(cells).rstrip()
