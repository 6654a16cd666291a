"""After every apply that says `Converged`, a fresh plan is empty: whatever was edited before it.

The file is that of every kind, without what needs a provider or a kernel that few have; the edits
are those of people: a value changed, a resource moved to another interface, taken out, put back.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.document import SourceFile, parse
from holdfast.errors import ConfigError
from holdfast.host.services import driver as services
from holdfast.host.services.client import Client
from holdfast.paths import Paths
from holdfast.resources.router import load_router
from holdfast.runtime.load import load
from holdfast.runtime.preview import look
from tests.cli.conftest import Holdfast
from tests.cli.served import daemon
from tests.namespace import Namespace
from tests.router.edits import edit

BASE = Path(__file__).with_name("most-kinds.yaml")
LINKS = ("ens18", "ens19", "ens20")
_SHORT, _LONG = 6, 400
ALLOW = ("--allow-mass-delete", "--allow-lockout", "--allow-side-effects")


@pytest.fixture
def holdfast(netns: Namespace, tmp_path: Path, root: Path) -> Iterator[Holdfast]:
    for number, name in enumerate(LINKS):
        netns.veth(name, f"far{number}")
        # The far end hears what is served on the near one, and must not make anything of it.
        Path(f"/proc/sys/net/ipv6/conf/far{number}/disable_ipv6").write_text("1")
        netns.ip(f"link set far{number} up")
    yield Holdfast(tmp_path, root)
    Client(root).remove_all()


def _valid(holdfast: Holdfast, document: Any) -> bool:
    path = holdfast.folder / "candidate.yaml"
    path.write_text(json.dumps(document) + "\n")
    try:
        load_router(path, holdfast.root)
    except ConfigError:
        return False
    return True


def _edited(holdfast: Holdfast, document: Any, base: Any, chance: random.Random) -> tuple[str, Any]:
    """Where it makes the file invalid, another one."""
    while True:
        changed = deepcopy(document)
        said = [edit(changed, base, chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        if _valid(holdfast, changed):
            return "; ".join(said), changed


def _left(holdfast: Holdfast) -> list[str]:
    loaded = load(Paths(holdfast.root), holdfast.folder / "router.yaml", lambda _warning: None)
    plan = look(Paths(holdfast.root), loaded).plan
    return [f"{op.verb} {op.kind} {op.reason} {op.changes}" for op in plan.changes]


def _walk(holdfast: Holdfast, seed: int, steps: int) -> None:
    """A router that is edited again and again."""
    chance = random.Random(seed)  # noqa: S311 - the same again is what is wanted
    document = good = base = parse(SourceFile("base", BASE.read_bytes())).data
    said, converged = "the file as it is", 0
    path = holdfast.folder / "router.yaml"
    for step in range(steps):
        path.write_text(json.dumps(document) + "\n")
        code, told = holdfast.forked("apply", "--yes", *ALLOW, "router.yaml")
        assert code in (0, 1, 4), told
        if code == 0:
            good, converged = document, converged + 1
            assert "Converged" in told
            left = _left(holdfast)
            assert not left, f"seed {seed}, step {step}, {said}: {left}\n{told}"
        # What ended in a conflict, or waits for something, is left again.
        said, document = _edited(holdfast, good, base["spec"]["resources"], chance)
    assert converged > steps // 2


@pytest.mark.parametrize(
    "moved", [{"interface": "dmz", "exclusive": False}, None], ids=["moved", "taken out"]
)
def test_an_address_goes_from_under_a_scope(holdfast: Holdfast, moved: dict[str, Any]) -> None:
    """The scope was made for an address that was still there when it was looked at."""
    document = parse(SourceFile("base", BASE.read_bytes())).data
    path = holdfast.folder / "router.yaml"
    path.write_text(json.dumps(document) + "\n")
    holdfast.set_up("apply", "--yes", *ALLOW, "router.yaml")
    resources = document["spec"]["resources"]
    address = next(one for one in resources if one["spec"].get("address") == "192.168.160.3/24")
    if moved:
        address["spec"].update(moved)
    else:
        resources.remove(address)
    path.write_text(json.dumps(document) + "\n")
    code, told = holdfast.forked("apply", "--yes", *ALLOW, "router.yaml")
    assert (code, _left(holdfast)) == (0, []), told


def test_a_trial_says_what_is_left_by_what_it_changed(holdfast: Holdfast) -> None:
    """It has a way back for its first plan, and so does nothing besides that."""
    document = parse(SourceFile("base", BASE.read_bytes())).data
    path = holdfast.folder / "router.yaml"
    path.write_text(json.dumps(document) + "\n")
    holdfast.set_up("apply", "--yes", *ALLOW, "router.yaml")
    resources = document["spec"]["resources"]
    resources.remove(next(one for one in resources if "192.168.160.3/24" in str(one["spec"])))
    path.write_text(json.dumps(document) + "\n")
    try:
        words = ("--yes", *ALLOW, "--confirm-within", "1h", "router.yaml")
        done = holdfast.run("apply", *words)
        assert (done.code, "Not converged" in done.out) == (1, True), done.out + done.err
    finally:
        holdfast.ok("rollback")


def test_the_daemon_says_so_of_what_it_looked_at_since(holdfast: Holdfast) -> None:
    document = parse(SourceFile("base", BASE.read_bytes())).data
    path = holdfast.folder / "router.yaml"
    path.write_text(json.dumps(document) + "\n")
    with daemon(holdfast, path):
        resources = document["spec"]["resources"]
        address = next(one for one in resources if one["spec"].get("address") == "192.168.160.3/24")
        resources.remove(address)
        path.write_text(json.dumps(document) + "\n")
        holdfast.ok("apply", "--yes", *ALLOW)
        assert "Plan: nothing to do" in holdfast.ok("plan").out
        status = holdfast.run("status", "-o", "json").json
        phases = {one["resource"]: one["phase"] for one in status["resources"]}
        assert phases["IPv4DHCPScope/lan-dhcp4"] == "Pending"


@pytest.mark.parametrize("seed", range(2))
def test_a_converged_apply_leaves_nothing_to_do(
    holdfast: Holdfast, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "SETTLE_S", 0.05)
    _walk(holdfast, seed, _SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 104))
def test_nor_do_many(holdfast: Holdfast, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "SETTLE_S", 0.05)
    _walk(holdfast, seed, _LONG)
