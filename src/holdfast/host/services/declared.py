"""From a declared unit to a definition: what is safe to hand to a supervisor."""

from __future__ import annotations

import re

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.service import Unit, digest, unit_of
from holdfast.host import process
from holdfast.host.services.folder import Definition
from holdfast.host.services.processes import LABEL

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A line break would end a line of a unit file, whatever quotes stand around it.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def definition_of(
    artifact: Artifact, mark: str, files: tuple[str, ...] = (), read: str = ""
) -> Definition:
    """ValueError where the unit cannot be, or the plan does not carry it."""
    if not artifact.payload:
        raise ValueError("the plan does not carry the unit it declares")
    unit = unit_of(artifact)
    if digest(unit) != artifact.fields["unit"] or unit.name != artifact.key.name:
        raise ValueError("the plan does not carry the unit it declares")
    check(unit)
    if not re.fullmatch(r"[A-Za-z0-9-]+", mark):
        raise ValueError(f"{mark!r} cannot mark a service")
    return Definition(
        name=unit.name,
        description=unit.description,
        mark=mark,
        unit=digest(unit),
        reload=unit.reload,
        argv=unit.argv,
        environment={
            "PATH": process.PATH,
            "LC_ALL": "C.UTF-8",
            **dict(unit.environment),
        },
        folders=unit.folders,
        stop_timeout=unit.stop_timeout,
        files=files,
        read=read,
    )


def check(unit: Unit) -> None:
    if not _NAME.fullmatch(unit.name):
        raise ValueError(f"{unit.name!r} is not the name of a service: letters, digits, . _ - @")
    if not unit.argv or not unit.argv[0].startswith("/"):
        raise ValueError(f"service {unit.name}: the program must be an absolute path")
    for folder in unit.folders:
        if not folder.startswith("/"):
            raise ValueError(f"service {unit.name}: the folder {folder!r} is not an absolute path")
    for name, _ in unit.environment:
        if not _VARIABLE.fullmatch(name) or name == LABEL:
            raise ValueError(f"service {unit.name}: {name!r} cannot be set in its environment")
    texts = (unit.description, *unit.argv, *unit.folders, *(v for _, v in unit.environment))
    for text in (*texts, unit.config, unit.reload):
        if _CONTROL.search(text):
            raise ValueError(f"service {unit.name}: {text!r} has a control character in it")
