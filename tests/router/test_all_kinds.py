"""The example of every kind of routerd.net: it validates, plans and applies.

The kernel of the host lane may lack ip6tnl and PPPoE, that of the uml lane nf_tables for IP: what
one lacks fails there with a reason, and nothing else does. That of the qemu lane has it all.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engine.artifact import Key
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests import lanes
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace
from tests.resources.surroundings import everything_known

FILE = "all-kinds.yaml"
PASSWORD = "of nobody's account"  # noqa: S105
EMPTY = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: e}
spec: {resources: []}
"""
_AF_PPPOX = 24


@pytest.fixture
def holdfast(netns: Namespace, tmp_path: Path, root: Path) -> Iterator[Holdfast]:
    netns.veth("ens18", "far18")
    netns.veth("ens19", "far19")
    shutil.copy(Path(__file__).with_name(FILE), tmp_path)
    secret = root / "usr/local/etc/routerd/pppoe-password"
    secret.parent.mkdir(parents=True)
    secret.touch(0o600)
    secret.write_text(PASSWORD)
    program = root / "usr/local/libexec/routerd/log-sinks/example"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec cat > /dev/null\n")
    program.chmod(0o755)
    yield Holdfast(tmp_path, root)
    Path(tmp_path, "empty.yaml").write_text(EMPTY)
    done = Holdfast(tmp_path, root).run("apply", "--yes", "--allow-mass-delete", "empty.yaml")
    assert done.code in (0, 1), done.err


def lacking() -> frozenset[str]:
    """What this kernel cannot make of the file: artifacts, or kinds of them."""
    found = set()
    try:
        socket.socket(_AF_PPPOX, socket.SOCK_STREAM, 0).close()
    except OSError:
        found |= {"service pppoe-wan-pppoe"}
    if not _succeeds("ip", "link", "add", "probe", "type", "ip6tnl", "remote", "2001:db8::1"):
        found |= {"link ds-transix-a", "link ds-transix-b"}
    if not _succeeds("nft", "add table inet probe"):
        found |= {"nft"}
    return frozenset(found)


def _succeeds(*command: str) -> bool:
    """In a namespace of its own, for what it makes to go with it."""
    done = subprocess.run(["unshare", "-n", *command], capture_output=True, check=False)
    return done.returncode == 0


def test_it_validates_and_plans(holdfast: Holdfast) -> None:
    valid = holdfast.ok("validate", FILE)
    assert "33 resources" in valid.out
    for client in ("dhclient", "networkd"):
        assert f"Holdfast does not drive {client}: dhcpcd is used instead" in valid.err
    plan = holdfast.ok("plan", "-o", "json", FILE).json
    kinds = {operation["artifact"]["kind"] for operation in plan["operations"]}
    assert kinds >= {"address", "file", "hostname", "link", "nft", "rule", "service", "sysctl"}
    assert not plan["conflicts"]
    assert not plan["blocked"]
    assert PASSWORD not in str(plan)


def test_the_command_applies_all_that_waits_for_nothing(holdfast: Holdfast) -> None:
    missing = lacking()
    for _ in range(2):
        done = holdfast.run("apply", "--yes", "-o", "json", FILE).json
        failed = {
            f"{one['kind']} {one['name']}"
            for result in done["results"]
            for one in (failure["artifact"] for failure in result["failures"])
        }
        left = {f"{one['artifact']['kind']} {one['artifact']['name']}" for one in done["left"]}
        # pppd may be seen before it has found out what the kernel lacks.
        assert failed | left <= missing & {"service pppoe-wan-pppoe"}
        assert not done["unknown"]
    assert done["as_declared"] > 30
    waiting = {one["owner"] for one in done["pending"]}
    assert waiting >= {"DSLiteTunnel/transix-a", "IPv6DelegatedAddress/lan-ipv6-pd-address"}


@pytest.mark.uml
@pytest.mark.qemu
def test_with_all_facts_everything_is_made(holdfast: Holdfast) -> None:
    missing = lacking()
    assert not missing or lanes.current() != "qemu", missing
    first, second = _apply(holdfast), _apply(holdfast)
    for report in (first, second):
        for operation, failure in report.failures:
            assert failure.error
            assert _excused(str(failure.key), operation.requires, missing), failure
    for operation in second.before.changes:
        key = getattr(operation.subject, "key", None)
        assert _excused(str(key), operation.requires, missing), operation
    made = {str(claim) for claim in _claims(holdfast)}
    if not missing & {"link ds-transix-a"}:
        assert {"link ds-transix-a", "link ds-transix-b"} <= made
    if not missing & {"nft"}:
        assert {key for key in made if key.startswith("nft ")} >= {
            "nft inet holdfast_filter",
            "nft ip holdfast_nat",
        }


def _excused(key: str, requires: tuple[Key, ...], missing: frozenset[str]) -> bool:
    names = (key, *map(str, requires))
    return any(name in missing or name.partition(" ")[0] in missing for name in names)


def _apply(holdfast: Holdfast) -> Report:
    paths = Paths(holdfast.root)
    router = load_router(holdfast.folder / FILE, holdfast.root)
    desired = compile_router(router, everything_known(router), str(holdfast.root))
    with Ledger.open(paths, command="test") as ledger, drivers.of_machine(paths, 72) as host:
        nonces = (str(number) for number in itertools.count(1000))
        return Pass(desired, host, ledger, Policy(host.epoch), nonce=lambda: next(nonces)).run(
            lambda _plan: None
        )


def _claims(holdfast: Holdfast) -> list[Key]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return list(ledger.claims())
