"""Every file in docs/examples is valid, is planned, and does its work where it can be tried."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from holdfast.resources.spec.reference import artifact_kind
from tests.docs import markdown
from tests.lanes import needs
from tests.namespace import Namespace
from tests.resources.surroundings import everything_known

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
FOLDER = markdown.ROOT / markdown.EXAMPLES
FILES = sorted(FOLDER.glob("*.yaml"))

# What each is there to show, and what is waited for before the provider has answered.
WAITING = {
    "dual-wan": {"IPv4DHCPAddress/fibre", "IPv4DHCPServer/lan", "IPv4DefaultRoutePolicy/out"},
    "home": {"IPv4DHCPAddress/wan", "IPv4DHCPServer/lan"},
    "ipv6": {"IPv6DHCPAddress/wan", "IPv6DelegatedAddress/lan", "IPv6PrefixDelegation/wan"},
    "pppoe": {"PPPoEInterface/wan", "IPv4DHCPServer/lan"},
}


@pytest.fixture
def rooted(root: Path) -> Path:
    """A root with the password that an example asks for."""
    secret = root / "etc" / "holdfast" / "pppoe.secret"
    secret.parent.mkdir(parents=True)
    secret.touch(mode=0o600)
    secret.write_text("secret\n")
    return root


def test_every_example_is_tested() -> None:
    assert [path.stem for path in FILES] == sorted(WAITING)


def test_pages_show_pieces_of_them() -> None:
    whole = [file.read_text() for file in FILES]
    for page in markdown.pages():
        for block in markdown.blocks(page.read_text()):
            if block.language == "yml":
                piece = "\n".join(block.lines)
                assert any(piece in text for text in whole), f"{page.name}:{block.line}"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_once_everything_is_known_nothing_is_waited_for(file: Path, rooted: Path) -> None:
    router = load_router(file, rooted)
    desired = compile_router(router, everything_known(router))
    assert not desired.waiting
    heard = {intent.owner for intent in desired.intents}
    silent = {one.id for one in router.resources if one.kind != "HealthCheck"} - heard
    assert not silent, "these resources do nothing"
    for intent in desired.intents:
        kind = registry.kind(intent.owner.partition("/")[0])
        assert artifact_kind(intent) in kind.emits, intent.owner


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_it_is_planned(file: Path, rooted: Path, netns: Namespace) -> None:
    for number in range(3):
        netns.ip(f"link add eth{number} type veth peer name far{number}")
    plan = _json("--root", str(rooted), "plan", str(file), "-o", "json")
    assert not plan["conflicts"]
    assert not plan["blocked"]
    assert plan["operations"]
    assert {one["owner"] for one in plan["pending"]} == WAITING[file.stem]


def _json(*words: str) -> dict[str, Any]:
    done = subprocess.run([HOLDFAST, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def tried(name: str, *around: str) -> str:
    """`home` and `ipv6` are tried by tests/cli. For PPPoE there is no stand-in yet."""
    allowed = subprocess.run(["unshare", "-rnu", "true"], capture_output=True, check=False)
    needs(allowed.returncode == 0, "user namespaces")
    command = [*around, HOLDFAST, "try", str(FOLDER / f"{name}.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_providers_are_both_reached() -> None:
    said = tried("dual-wan")
    resources, _, client = said.partition("Every resource")[2].partition("What a client on lan")
    assert "19 resources: 17 Healthy, 2 Unknown." in resources, "nobody probes: no daemon runs"
    assert "192.168.1.1 answers" in client
    for link in ("eth0", "eth2"):
        assert f"the provider behind {link} answers" in client


@pytest.mark.parametrize(
    ("name", "answers"), [("home", "192.168.1.1"), ("ipv6", "fd5e:6f1d:2c0a::1")]
)
def test_a_normal_user_can_try_one(name: str, answers: str) -> None:
    """In a user namespace there is one user and one group, whoever made it."""
    client = tried(name, "unshare", "-r").partition("What a client on lan")[2]
    assert f"{answers} answers" in client
    assert "the provider behind eth0 answers" in client
