"""A disk that gives back other bits than it was given: whatever the ledger says then, a command
works or tells that the ledger is damaged, and nothing that is there goes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from holdfast.config.part import Part
from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.runtime import sources
from holdfast.state.actions import PENDING, Action
from holdfast.state.confirmations import Confirmation
from holdfast.state.ledger import Ledger
from holdfast.state.plugin_runs import FAILED, PluginRun
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.resources.parts import NOW, admitting, part, raw
from tests.safety.router_scene import document
from tests.state.samples import claim

RESOURCES = {
    "Interface/wan": "{ifname: wan0, adminUp: true, mtu: 1400}",
    "Interface/lan": "{ifname: br0, type: bridge, adminUp: true, alias: home}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "RoutingRule/one": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "Neighbour/one": "{interface: wan, address: 192.0.2.9, mac: 02:00:00:00:00:09}",
    "DynamicConfigSource/tests": json.dumps(admitting("Owner/tests")[2]),
}
PART = part(
    "Owner/tests",
    raw("IPv4Route", "two", {"destination": "10.2.0.0/16", "gateway": "192.0.2.254"}),
    lasts=None,
)
COMMANDS = (
    ("status",), ("plan",), ("apply", "--yes"),
    ("explain", "IPv4Route/one"), ("events",), ("generations",),
    ("ledger", "check"), ("ledger", "show"), ("ledger", "export"), ("dynamic", "list"),
    ("action", "list"),
)  # fmt: skip
SHOWN = (
    "link show", "-4 addr show", "-4 route show table all", "-4 rule show",
    "neigh show nud permanent",
)  # fmt: skip
LEDGER_IS_DAMAGED = 5
SOUND = (0, 1, LEDGER_IS_DAMAGED)


def flipped(content: bytes, chance: Random) -> bytes:
    """A bit or a few, where something stands."""
    data = bytearray(content)
    used = [place for place, byte in enumerate(content) if byte]
    for place in chance.choices(used, k=chance.choice((1, 1, 2, 8))):
        data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


def put(ledger: Path, content: bytes) -> None:
    for name in (ledger.name, f"{ledger.name}-wal", f"{ledger.name}-shm"):
        ledger.with_name(name).unlink(missing_ok=True)
    ledger.touch(0o600)
    ledger.write_bytes(content)


def fill(paths: Paths) -> None:
    """What only some routers have in it."""
    with Ledger.open(paths, command="test") as ledger:
        sources.put(ledger, PART, NOW)
        ledger.put_run(PluginRun("one", "interval", NOW, 0.5, FAILED, None, "no", "none"))
        ledger.write_actions([Action("key", "Owner/tests", 1, PENDING, NOW, NOW, {"a": [1]})])
        waiting = Confirmation(1, NOW, NOW + 60, "boot", 5.0, 0, "router.yaml", "", "0" * 64, b"")
        ledger.begin_confirmation(waiting)
        ledger.confirm(1)


def kernel(namespace: Namespace) -> dict[str, str]:
    return {command: namespace.ip(command) for command in SHOWN}


@pytest.mark.parametrize("chunk", range(3))
def test_commands(chunk: int, holdfast: Holdfast, wan: Namespace) -> None:
    _flip_and_ask(holdfast, wan, Random(f"commands {chunk}"), 4)  # noqa: S311 (places, no secrets)


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(20))
def test_many_commands(chunk: int, holdfast: Holdfast, wan: Namespace) -> None:
    _flip_and_ask(holdfast, wan, Random(f"soak {chunk}"), 100)  # noqa: S311 (places, no secrets)


def _flip_and_ask(holdfast: Holdfast, wan: Namespace, chance: Random, times: int) -> None:
    paths = Paths(holdfast.root)
    paths.config.parent.mkdir(parents=True)
    paths.config.write_text(document(RESOURCES))
    fill(paths)
    holdfast.set_up("apply", "--yes")
    good, there = paths.ledger.read_bytes(), kernel(wan)
    assert "10.2.0.0/16" in there["-4 route show table all"]
    for number in range(times):
        put(paths.ledger, flipped(good, chance))
        for words in COMMANDS:
            code, said = holdfast.forked(*words)
            assert "fault in Holdfast" not in said, (number, words, said)
            assert "Traceback" not in said, (number, words, said)
            assert code in SOUND, (number, words, said)
        assert kernel(wan) == there, number
    put(paths.ledger, good)
    assert "Converged: 7 artifacts as declared." in holdfast.ok("apply", "--yes").out


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.fixture
def wan(netns: Namespace) -> Namespace:
    netns.veth("wan0", "isp0")
    return netns


def test_what_is_read(paths: Paths) -> None:
    """Every table, many more times: what comes out is whole, or LedgerError."""
    chance = Random("reads")  # noqa: S311 (places, no secrets)
    _fill_more(paths)
    good = paths.ledger.read_bytes()
    damaged = 0
    for _ in range(200):
        put(paths.ledger, flipped(good, chance))
        try:
            with Ledger.read(paths) as ledger:
                _read_all(ledger)
        except LedgerError:
            damaged += 1
    assert damaged


@pytest.fixture
def paths(root: Path) -> Paths:
    return Paths(root)


def _fill_more(paths: Paths) -> None:
    fill(paths)
    with Ledger.open(paths, command="test") as ledger:
        ledger.write_claims([claim(n, original={"value": "1"}) for n in range(20)])
        ledger.remember("routes", frozenset({"100", "254"}))
        ledger.put_note("report", {"converged": True, "operations": [1, 2]})


def _read_all(ledger: Ledger) -> None:
    ledger.check()
    for read in (
        ledger.claims, ledger.generations, ledger.events, ledger.parts, ledger.part_index,
        ledger.runs, ledger.actions, ledger.confirmations, ledger.latches, ledger.remembered,
        ledger.export,
    ):  # fmt: skip
        try:
            found = read()
        except LedgerError:
            continue
        assert isinstance(hash(repr(found)), int)
    one: Part | None = ledger.part("Owner/tests", 1)
    assert one is None or one == PART
