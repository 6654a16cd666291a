"""A whole router in namespaces of its own: real passes over real files, from a YAML text.

The ground is what others made before: two NICs, addresses and routes that no pass may touch.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from holdfast.engine.intent import Desired
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.host.facts.on_link import read_on_link
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.questions import gateways
from holdfast.resources.router import Router, load_router
from holdfast.runtime import drivers
from holdfast.state import journal
from holdfast.state.ledger import Ledger
from tests.namespace import private_namespaces
from tests.safety import snapshot
from tests.safety.snapshot import Item

TAG = 72
HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
"""
GROUND = """\
link add nic0 type veth peer name far0
link add nic1 type veth peer name far1
link set nic0 up
link set far0 up
link set nic1 up
link set far1 up
addr add 10.99.0.1/24 dev nic0
addr add 2001:db8:99::1/64 dev nic0 nodad
route add 10.98.0.0/16 via 10.99.0.254 proto static
route add 2001:db8:98::/48 via 2001:db8:99::fe proto static
rule add priority 50 fwmark 7 lookup 50
neigh add 10.99.0.77 dev nic0 lladdr 02:00:00:00:00:77 nud permanent
"""


def document(resources: Mapping[str, str]) -> str:
    """A Router of resources given as `Kind/name: spec`."""
    text = HEAD if resources else HEAD.replace("resources:", "resources: []")
    for name, spec in resources.items():
        kind, _, short = name.partition("/")
        text += f"    - apiVersion: {_api_version(kind)}\n      kind: {kind}\n"
        text += f"      metadata: {{name: {short}}}\n      spec: {spec}\n"
    return text


def _api_version(kind: str) -> str:
    """Of a kind that is none: of any."""
    with suppress(LookupError):
        return registry.api_versions(kind)[0]
    return registry.api_versions("Interface")[0]


@cache
def load(text: str) -> tuple[Router, Desired]:
    """With no facts known."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "router.yaml")
        path.write_text(text)
        router = load_router(path)
    return router, compile_router(router)


def links_of_gateways(router: Router) -> Facts:
    """By the kernel, of those that nothing declared tells."""
    asked = gateways(router)
    if not asked:
        return NOTHING_KNOWN
    sock = NetlinkSocket()
    try:
        return Facts(on_link=read_on_link(sock, asked))
    finally:
        sock.close()


@dataclass(slots=True)
class Watched:
    """How a pass is watched, or disturbed, at its edges."""

    ledger: Callable[[Ledger], Ledger] = lambda ledger: ledger
    sock: Callable[[], NetlinkSocket] = NetlinkSocket
    before: Callable[[], object] = lambda: None  # after it was planned, before it is carried out
    facts: Callable[[Router], Facts] = links_of_gateways


@dataclass(slots=True)
class Scene:
    paths: Paths
    ground: Counter[Item] = field(default_factory=Counter)
    hostname: str = ""
    _nonces: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def apply(self, resources: Mapping[str, str], watched: Watched | None = None) -> Report:
        """One pass, recorded as the command does it."""
        watched = watched or Watched()
        router, desired = load(document(resources))
        facts = watched.facts(router)
        if facts is not NOTHING_KNOWN:
            desired = compile_router(router, facts)
        with (
            Ledger.open(self.paths, command="test") as opened,
            drivers.of_machine(self.paths, TAG, watched.sock()) as host,
        ):
            ledger = watched.ledger(opened)
            policy = Policy(host.epoch, allow_mass_delete=True)
            nonce = lambda: str(next(self._nonces))  # noqa: E731
            work = Pass(desired, host, ledger, policy, nonce=nonce)

            def approve(_plan: object) -> None:
                work.generation = ledger.begin_generation(router.files)
                watched.before()

            report = work.run(approve)
            journal.record(ledger, report, work.generation)
            return report

    def look(self) -> Counter[Item]:
        sock = NetlinkSocket()
        try:
            seen = snapshot.take(sock)
        finally:
            sock.close()
        return Counter(item for items in seen.values() for item in items)

    def files(self) -> dict[str, bytes]:
        """Every file below the root but those of the ledger."""
        ledger = {self.paths.state_dir, self.paths.under("/run/holdfast")}
        return {
            f"/{path.relative_to(self.paths.root)}": path.read_bytes()
            for path in sorted(self.paths.root.rglob("*"))
            if path.is_file() and not ledger.intersection(path.parents)
        }


@contextmanager
def scene() -> Iterator[Scene]:
    """Fresh namespaces with the ground in them, and a root in memory: fsync costs nothing there."""
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 (as said)
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        with private_namespaces():
            ip(GROUND)
            made = Scene(Paths(root))
            made.ground = made.look()
            made.hostname = socket.gethostname()
            yield made
    finally:
        shutil.rmtree(root)


def ip(commands: str, *options: str) -> None:
    """Others act. With `-force`, what the kernel refuses is passed over."""
    done = subprocess.run(
        ["ip", *options, "-batch", "-"],
        input=commands,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "-force" in options or done.returncode == 0, done.stderr
