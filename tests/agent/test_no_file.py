"""What is put in the place of the file freezes nobody: the last good one stays in force."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety import named_files
from tests.safety.named_files import NO_FILES
from tests.safety.router_scene import document

INVALID = 3
ADDRESS = {
    "Interface/wan": "{ifname: wan0}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
}
LIST = {**ADDRESS, "RouteList/list": "{gateway: 192.0.2.254, interface: wan, file: routes}"}


@pytest.fixture
def file(netns: Namespace, root: Path) -> Path:
    root.mkdir()
    netns.veth("wan0", "far0")
    return root / "router.yaml"


def command(root: Path, *words: str) -> tuple[int, str]:
    argv = [sys.executable, "-m", "holdfast", "--root", str(root), *words]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def test_daemon_goes_on(file: Path, root: Path, netns: Namespace) -> None:
    """With each of them for the file, and then for a list that it names: it repairs, says what is
    wrong, and ends when it is told to."""
    routes = root / "routes"
    good = document(LIST)
    file.write_text(good)
    routes.write_text("10.1.0.0/16\n")
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        for path in (file, routes):
            content = path.read_text()
            for make, said in NO_FILES.items():
                named_files.put(make, path)
                daemon.wait_for(f"{path}: cannot be read: {said}")
                netns.ip("addr del 192.0.2.1/24 dev wan0")
                until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "repaired")
                named_files.take_away(path)
            path.write_text(content)
            until(lambda: "10.1.0.0/16" in netns.ip("route show"), "in force")
        named_files.put(named_files.pipe, file)
        assert daemon.end() == 0
    # One that starts falls back on what the ledger knows.
    netns.ip("addr del 192.0.2.1/24 dev wan0")
    with serve(root, file) as daemon:
        until(lambda: "192.0.2.1/24" in netns.ip("addr show dev wan0"), "the last good one")
        assert daemon.end() == 0


@pytest.mark.parametrize("make", NO_FILES, ids=lambda one: one.__name__)
def test_commands_end(file: Path, root: Path, make: Callable[[Path], None]) -> None:
    make(file)
    for words in (("validate",), ("plan",), ("apply", "--yes")):
        code, said = command(root, *words, str(file))
        assert code == INVALID, said
        assert NO_FILES[make] in said
        assert "Traceback" not in said
    for words in (("dynamic", "put"), ("ledger", "import")):
        code, said = command(root, *words, str(file))
        assert code in (1, INVALID), said
        assert NO_FILES[make].replace("256", "1024" if words[0] == "ledger" else "256") in said
        assert "fault" not in said
