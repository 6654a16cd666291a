"""`holdfast` with a fault in the code for one kind: Neighbour.

HOLDFAST_FAULT says in which step; HOLDFAST_FAULT_FILE, if given, that there is one only while that
file exists.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.__main__ import main
from holdfast.dataclass import replace
from holdfast.engine import planner, reconcile
from holdfast.engine.intent import Desired, Intent
from holdfast.engine.plan import Plan
from holdfast.resources.links import neighbour
from holdfast.resources.resource import Resource
from holdfast.resources.site import Site

KIND = "Neighbour"
STEPS = ("check", "compile", "plan")
(_GOOD,) = neighbour.KINDS


def _fail() -> None:
    marker = os.environ.get("HOLDFAST_FAULT_FILE", "")
    if not marker or Path(marker).exists():
        raise KeyError("of the test")


def _check(resource: Resource) -> Any:
    _fail()
    return _GOOD.check(resource)


def _compile(resource: Resource, site: Site) -> Iterator[Any]:
    yield from _GOOD.intents(resource, site)
    if site.root:  # which checks do not know of
        _fail()


def _plan(desired: Desired, *others: Any) -> Plan:
    if any(isinstance(one, Intent) and one.owner.startswith(KIND) for one in desired.intents):
        _fail()
    return _PLAN(desired, *others)


_PLAN = planner.plan


def spoil(step: str) -> None:
    match step:
        case "check":
            neighbour.KINDS = (replace(_GOOD, check=_check),)
        case "compile":
            neighbour.KINDS = (replace(_GOOD, intents=_compile),)
        case "plan":
            vars(reconcile)["plan"] = _plan


if __name__ == "__main__":
    spoil(os.environ["HOLDFAST_FAULT"])
    sys.exit(main())
