"""What a command does not load: most of the time of a short one goes into what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.resources import registry
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon

ROUTER = (WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
# What the daemon is made of, and what one needs to speak to it.
DAEMON = ("asyncio", "google", "grpc", "jinja2", "starlette", "holdfast.api", "holdfast.agent.loop")
# For few commands, and each takes as long to import as a pass.
DEAR = ("subprocess", "difflib", "random", "dns.")
HOST = ("holdfast.host", "holdfast.frr")
FRR = "holdfast.frr"
LEDGER = ("holdfast.state.ledger", "holdfast.state.database")
CONFIG = ("yaml", "holdfast.config.document", "holdfast.config.yaml12")
ENGINE = ("holdfast.engine.planner", "holdfast.engine.reconcile")


def _loaded(holdfast: Holdfast, *words: str) -> set[str]:
    # Not `-X importtime`, which misses what importlib.import_module loads.
    code = (
        "import sys; from holdfast.__main__ import main; main();"
        "print('', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *holdfast.arguments(*words)[1:]],
        cwd=holdfast.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def _among(loaded: set[str], absent: tuple[str, ...]) -> list[str]:
    return sorted(name for name in loaded if name.startswith(absent))


def _kinds(loaded: set[str]) -> set[str]:
    """Modules of resource kinds, and of what is made or checked of several of them."""
    kinds = [registry.kind(name) for name in registry.names()]
    modules = {kind.spec.__module__.removeprefix("holdfast.resources.") for kind in kinds}
    modules |= {module for kind in kinds for module in (kind.combiner, kind.cross_checks)}
    return {module for module in modules if f"holdfast.resources.{module}" in loaded}


@pytest.mark.usefixtures("wan")
def test_where_no_daemon_runs(holdfast: Holdfast) -> None:
    holdfast.declare(*ROUTER)
    holdfast.set_up("apply", "router.yaml", "--yes")
    for command, absent in {
        "validate": (*DAEMON, *DEAR, *HOST, *LEDGER),
        "plan": (*DAEMON, *DEAR, FRR, "holdfast.cli.planfile"),
        "apply --yes": (*DAEMON, *DEAR, FRR, "holdfast.cli.planfile", "holdfast.cli.confirming"),
        "status": (*DAEMON, *DEAR, FRR),
    }.items():
        loaded = _loaded(holdfast, *command.split(), "router.yaml")
        assert not _among(loaded, absent), command
        assert _kinds(loaded) == {
            "links.interface",
            "links.interface_checks",
            "links.static_address",
            "routes.route",
            "routes.route_checks",
        }
    loaded = _loaded(holdfast, "events")
    assert not _among(loaded, (*DAEMON, *DEAR, *HOST, *CONFIG, *ENGINE, "holdfast.resources"))


@pytest.mark.usefixtures("wan")
def test_what_a_daemon_is_asked_it_alone_works_out(holdfast: Holdfast) -> None:
    file = holdfast.declare(*ROUTER)
    absent = (*HOST, *CONFIG, *LEDGER, *ENGINE, "jinja2", "starlette", "uvicorn")
    with daemon(holdfast, file):
        for command in ("status", "plan", "explain IPv4Route/a", "events"):
            loaded = _loaded(holdfast, *command.split())
            assert "grpc" in loaded, command
            assert not _among(loaded, absent), command
            assert not _kinds(loaded), command


def test_what_asks_for_nothing_loads_nothing(holdfast: Holdfast) -> None:
    version = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "holdfast" in version.stderr
    assert "click" not in version.stderr
    loaded = _loaded(holdfast, "plan", "--help")
    assert not _among(loaded, (*DAEMON, *HOST, *CONFIG, *LEDGER, *ENGINE, "holdfast.resources"))
