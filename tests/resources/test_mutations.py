"""Files with a mistake, or two that are a few references apart: each is valid or refused with the
places of what is wrong, and none is ever a fault in Holdfast itself.

A fault would stop whoever reads the file. `make soak` looks at far more of them.
"""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.config.document import SourceFile, parse
from holdfast.engine import document
from holdfast.engine.observed import Observed
from holdfast.engine.planner import plan
from holdfast.engine.policy import Policy
from holdfast.errors import ConfigError
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic import effective
from holdfast.resources.dynamic.dynamic_config_part import API_VERSIONS, KIND, part_of
from holdfast.resources.facts import GONE, NOTHING_KNOWN, Facts
from holdfast.resources.router import Router, load_router
from holdfast.resources.site import site_of
from holdfast.resources.spec.moments import format_moment
from holdfast.runtime import part_checks
from tests.engine.memory_networks import Networks
from tests.engine.memory_routes import MemoryRoutes
from tests.resources.mutations import mistakes, mutants
from tests.resources.parts import NOW
from tests.resources.surroundings import everything_known, surrounded
from tests.resources.test_cases import CASES

pytestmark = pytest.mark.long

_HERE = Path(__file__).parents[2]
_FILES = [*sorted((_HERE / "docs/examples").glob("*.yaml")), _HERE / "tests/router/all-kinds.yaml"]
_FOLDERS = [case for case in CASES if case.name != "empty"]
_OF_KIND, _OF_FILE, _OF_FOLDER, _OF_PART = 90, 200, 30, 40  # how many of each
_OFTEN = 40  # times as many in `make soak`
_PLACE = re.compile(r".+:[1-9][0-9]*:[1-9][0-9]*", re.DOTALL)
_PARTS = [name for name in registry.names() if registry.kind(name).open_to_others]
# What files and examples name.
_SECRETS = {
    "secret": "secret\n",
    "wg0.key": f"{b64encode(bytes(range(32))).decode()}\n",
    "usr/local/etc/routerd/pppoe-password": "secret\n",
    "etc/holdfast/pppoe.secret": "secret\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in _SECRETS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o600)
    return tmp_path


def outcome(path: Path, root: Path) -> str:
    """What becomes of a file: it is valid and can be planned, or is refused for its mistakes."""
    try:
        router = load_router(path, root)
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            assert _PLACE.fullmatch(problem.place), problem
            assert problem.message
            str(problem).encode()
        return "refused"
    _plan(router, root)
    return "valid"


def _plan(router: Router, root: Path) -> None:
    """Whatever is known of the world outside."""
    for facts in (NOTHING_KNOWN, everything_known(router), _everything_over(router)):
        desired = compile_router(router, facts, str(root))
        observed = Observed(bulk={"route": MemoryRoutes(), "bgp_network": Networks()})
        planned = plan(desired, observed, {}, Policy())
        json.dumps([*document.operations(planned.operations)]).encode()


def _everything_over(router: Router) -> Facts:
    links = site_of(router.resources).links
    gone = dict.fromkeys(links, GONE)
    return Facts(leases4=gone, leases6=gone, sessions=gone, delegations=gone)


def _looked_at(data: Any, seed: str, count: int, path: Path, root: Path) -> None:
    found: Counter[str] = Counter()
    for mutant in mutants(data, seed, count):
        path.write_bytes(mutant.content)
        try:
            found[outcome(path, root)] += 1
        except Exception as error:
            error.add_note(f"{path}: {mutant.what}")
            raise
    assert found.total() == count


def _data(path: Path) -> Any:
    return parse(SourceFile(str(path), path.read_bytes())).data


def test_there_are_enough_of_them() -> None:
    kinds, files, folders = len(registry.names()), len(_FILES), len(_FOLDERS)
    assert kinds * _OF_KIND + files * _OF_FILE + folders * _OF_FOLDER >= 5_000


@pytest.mark.parametrize("name", list(registry.names()))
def test_example_of_a_kind(name: str, folder: Path) -> None:
    _looked_at(surrounded(name), name, _OF_KIND, folder / "router.yaml", folder)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_whole_file(file: Path, folder: Path) -> None:
    _looked_at(_data(file), file.name, _OF_FILE, folder / "router.yaml", folder)


@pytest.mark.parametrize("case", _FOLDERS, ids=lambda case: case.name)
def test_file_with_others_beside_it(case: Path, folder: Path) -> None:
    shutil.copytree(case, folder / "case")
    path = folder / "case" / "router.yaml"
    _looked_at(_data(path), case.name, _OF_FOLDER, path, folder)


@pytest.mark.parametrize("name", _PARTS)
def test_part(name: str, folder: Path) -> None:
    _parts_looked_at(name, name, _OF_PART, folder)


def _parts_looked_at(name: str, seed: str, count: int, folder: Path) -> None:
    """The same mistakes in what another source contributes to a good file."""
    whole = surrounded(name)
    one = whole["spec"]["resources"].pop()
    path = folder / "router.yaml"
    path.write_text(json.dumps(whole) + "\n")
    try:
        startup = load_router(path, folder)
    except ConfigError:  # it takes the part to be whole
        whole["spec"]["resources"] = []
        path.write_text(json.dumps(whole) + "\n")
        startup = load_router(path, folder)
    chance = Random(seed)  # noqa: S311 - the same again is what is wanted
    for _ in range(count):
        given = part_document(deepcopy([*whole["spec"]["resources"][-2:], one]))
        said = [*mistakes(given, chance)]
        try:
            _merged(startup, given, folder)
        except Exception as error:
            error.add_note("; ".join(said))
            raise


def part_document(resources: list[Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSIONS[0],
        "kind": KIND,
        "metadata": {"name": "one"},
        "spec": {
            "source": "Owner/tests",
            "generation": 3,
            "observedAt": format_moment(NOW),
            "expiresAt": format_moment(NOW + 300),
            "resources": resources,
            "directives": [],
        },
    }


def _merged(startup: Router, given: Any, root: Path) -> None:
    try:
        part = part_of(given)
    except ConfigError as error:
        assert all(problem.place and problem.message for problem in error.problems)
        return
    if list(part_checks.problems(part, NOW)):
        return
    merged = effective.merge(startup, [part], NOW)
    for rejected in merged.rejected:
        for reason in rejected.reasons:
            assert "fault in Holdfast" not in reason, reason
    _plan(merged.router, root)


@pytest.mark.soak
@pytest.mark.parametrize("name", list(registry.names()))
def test_many_of_a_kind(name: str, folder: Path) -> None:
    count = _OFTEN * _OF_KIND
    _looked_at(surrounded(name), f"soak {name}", count, folder / "router.yaml", folder)


@pytest.mark.soak
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_many_of_a_file(file: Path, folder: Path) -> None:
    count = _OFTEN * _OF_FILE
    _looked_at(_data(file), f"soak {file.name}", count, folder / "router.yaml", folder)


@pytest.mark.soak
@pytest.mark.parametrize("name", _PARTS)
def test_many_parts(name: str, folder: Path) -> None:
    _parts_looked_at(name, f"soak {name}", _OFTEN * _OF_PART, folder)
