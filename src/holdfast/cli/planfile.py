"""Stored plans: applied exactly as they were shown, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.cli import private_file
from holdfast.config import regular_file
from holdfast.dataclass import dataclass
from holdfast.engine import document
from holdfast.engine.artifact import in_words
from holdfast.engine.document import About, Entry, FileDigest
from holdfast.engine.plan import Plan
from holdfast.errors import Refused
from holdfast.paths import Paths
from holdfast.render import artifact_words
from holdfast.render.documents import json_text

_MAJOR = document.FORMAT_VERSION.partition(".")[0]
_CHANGING = ("create", "update", "replace", "delete")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class StoredPlan:
    path: Path
    config: Path
    files: tuple[FileDigest, ...]
    digest: str
    operations: frozenset[str]  # what each one that changes the host does, as JSON
    side_effects: bool  # others lose something by it

    def refuse_changed_config(self, about: About) -> None:
        """Raises where the configuration is no longer the one the plan was made from."""
        then = {file.path: file.sha256 for file in self.files}
        now = {file.path: file.sha256 for file in about.files}
        if then == now:
            return
        said = [f"{path} changed" for path in then if path in now and then[path] != now[path]]
        said += [f"{path} is no longer part of it" for path in then if path not in now]
        said += [f"{path} is new in it" for path in now if path not in then]
        raise Refused(
            f"{self.path}: the plan is stale: the configuration is another one: {'; '.join(said)}."
            " Nothing was touched; make the plan again"
        )

    def refuse_changed_plan(self, plan: Plan, about: About) -> None:
        """Raises where what would be done now is not what the plan says."""
        now = {_deed(entry) for entry in document.operations(plan.changes)}
        said = [f"no longer to do: {_say(deed)}" for deed in sorted(self.operations - now)]
        said += [f"to do besides: {_say(deed)}" for deed in sorted(now - self.operations)]
        if not said and document.digest(plan, about.files) == self.digest:
            return
        if not said:
            said = ["the objects that the plan is about have been replaced, or the file edited"]
        raise Refused(
            f"{self.path}: the plan is stale, because the host is no longer as it was:\n"
            + "\n".join(_few(said))
            + "\nnothing was touched; make the plan again"
        )


def write(path: Path, plan: Plan, about: About) -> None:
    private_file.write(path, json_text(document.members(plan, about)))


def read(path: Path, paths: Paths) -> StoredPlan | None:
    """The plan a file holds; None where it holds something else (a configuration)."""
    data = _plan_data(path)
    if data is None:
        return None
    version = str(data["format_version"])
    if version.partition(".")[0] != _MAJOR:
        raise Refused(
            f"{path}: this plan has format {version}, and this Holdfast applies format"
            f" {_MAJOR}.x; make the plan again"
        )
    try:
        if data["root"] != str(paths.root):
            raise Refused(
                f"{path}: this plan was made with --root {data['root']}, and this is --root"
                f" {paths.root}; nothing was touched"
            )
        return StoredPlan(
            path,
            Path(data["config"]["path"]),
            tuple(FileDigest(file["path"], file["sha256"]) for file in data["config"]["files"]),
            data["digest"],
            frozenset(_deed(e) for e in data["operations"] if e["action"] in _CHANGING),
            any(e.get("losses") for e in data["operations"]),
        )
    except (KeyError, TypeError) as error:
        raise Refused(f"{path}: not a whole plan ({error}); make it again") from None


def _plan_data(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(regular_file.read(path))
    except (OSError, ValueError):
        return None  # whoever loads it as a configuration says what is wrong with it
    if isinstance(data, dict) and {"format_version", "digest", "operations"} <= data.keys():
        return data
    return None


def _deed(entry: Entry) -> str:
    """All that an operation does, in a form that can be compared."""
    deed = {key: entry[key] for key in ("action", "artifact", "fields", "changes")}
    deed["losses"] = sorted(entry.get("losses", ()))
    return json.dumps(deed, sort_keys=True)


def _say(deed: str) -> str:
    entry = json.loads(deed)
    changes = ", ".join(
        f"{change['field']} {in_words(change['before'])} → {in_words(change['after'])}"
        for change in entry["changes"]
    )
    shown = artifact_words.artifact(entry["artifact"], None if changes else entry["fields"])
    lost = f", by which others lose {', '.join(entry['losses'])}" if entry["losses"] else ""
    return f"{entry['action']} {shown}" + (f" ({changes})" if changes else "") + lost


def _few(lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    yield from (f"  {line}" for line in every[:_SHOWN])
    if len(every) > _SHOWN:
        yield f"  … and {len(every) - _SHOWN} more"
