"""One resource kind in namespaces of its own: its example among all that it refers to.

The NICs are veths whose other ends take no part, and what a provider would tell is given by hand.
Programs, tables, files and the kernel are real.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from holdfast.engine.intent import Action, BulkIntent, Desired, Intent
from holdfast.engine.kinds import KINDS
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.frr.daemon import SETTLES_S
from holdfast.frr.vty import Vty
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.host.services import processes
from holdfast.host.services.client import Client
from holdfast.host.services.folder import Folder
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.router import Router, load_router
from holdfast.resources.spec.shape import references
from holdfast.runtime import drivers
from holdfast.state import journal
from holdfast.state.ledger import Ledger
from tests import lanes
from tests.frr.ground import VERSIONS, ground, needs_frr
from tests.namespace import Namespace, private_namespaces
from tests.resources.spec.test_reference import SECRETS
from tests.resources.surroundings import INTERFACES, everything_known, surrounded
from tests.safety import snapshot
from tests.safety.router_scene import Watched, links_of_gateways

TAG = 72
EXAMPLE = "example"
# Examples of routes and neighbours name gateways in these networks. The rest is there to stay.
_GROUND = """\
addr add 192.0.2.10/24 dev eth1
addr add 2001:db8::10/64 dev eth1 nodad
route add 10.98.0.0/16 via 192.0.2.99 proto static
route add 2001:db8:98::/48 via 2001:db8::99 proto static
rule add priority 50 fwmark 7 lookup 50
neigh add 192.0.2.77 dev eth1 lladdr 02:00:00:00:00:77 nud permanent
"""
_TABLE = "table inet others { chain input { type filter hook input priority 5; accept; }; }"
_FILES = {
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/sysctl.d/10-others.conf": "# others'\n",
    "etc/holdfast/others": "others'\n",
}

FRR_DAEMONS = ("bgpd", "bfdd", "ospfd", "ospf6d")
VERSION = VERSIONS[0]
_OF_EVERY_FRR = ("Building", "Current", "exit", "end", "frr ", "log ", "hostname ", "no ip")
GROUPS_OF_FRR = {"routing"}
_FRR_OF_OTHERS = """\
ip prefix-list OTHERS seq 5 permit 10.0.0.0/8
route-map OTHERS permit 10
 match ip address prefix-list OTHERS
exit
bfd
 peer 192.0.2.98
 exit
exit
"""

# Everything there is, by what it is called, links and settings as their keys are.
State = dict[str, str]


@dataclass(frozen=True, slots=True)
class ServicePasses:
    """What is declared at one time."""

    router: Router
    desired: Desired

    def intents(self, owner: str) -> list[Intent | BulkIntent]:
        return [one for one in self.desired.intents if one.owner == owner and _ensures(one)]

    @property
    def settings(self) -> list[str]:
        """The keys of all that has a value to be kept or set back."""
        return sorted(
            {str(one.artifact.key) for one in _single(self.desired) if _is(one, "sysctl")}
        )

    @property
    def kept(self) -> set[str]:
        """What is there after all of this is declared no more, by the rules of cleanup."""
        found = set()
        for one in _single(self.desired):
            kind = KINDS[one.artifact.key.kind]
            stays = not kind.deletes_orphans and not one.revert
            if stays and not (one.creates and kind.deletes_created(one.artifact.fields)):
                found.add(str(one.artifact.key))
        return found | ({"file /etc/hostname"} if "hostname system" in found else set())


def _single(desired: Desired) -> Iterator[Intent]:
    return (one for one in desired.intents if isinstance(one, Intent) and _ensures(one))


def _ensures(one: Intent | BulkIntent) -> bool:
    return isinstance(one, BulkIntent) or one.action is Action.ENSURE


def _is(intent: Intent, kind: str) -> bool:
    return intent.artifact.key.kind == kind


@dataclass(frozen=True, slots=True)
class KindScene:
    kind: str
    paths: Paths
    namespace: Namespace
    without: ServicePasses  # all that the example refers to
    full: ServicePasses  # and the example itself
    empty: ServicePasses

    @property
    def owner(self) -> str:
        return f"{self.kind}/{EXAMPLE}"

    @property
    def intents(self) -> list[Intent | BulkIntent]:
        """What the example asks for, each once."""
        return self.full.intents(self.owner)

    def apply(self, stage: ServicePasses, watched: Watched | None = None) -> Report:
        """One pass, recorded as the command does it."""
        watched = watched or Watched()
        with (
            Ledger.open(self.paths, command="test") as opened,
            drivers.of_machine(self.paths, TAG, watched.sock()) as host,
        ):
            ledger = watched.ledger(opened)
            policy = Policy(host.epoch, allow_mass_delete=True)
            nonce = lambda: str(secrets.randbelow(2**31 - 1) + 1)  # noqa: E731
            work = Pass(stage.desired, host, ledger, policy, nonce=nonce)

            def approve(_plan: object) -> None:
                work.generation = ledger.begin_generation(stage.router.files)

            report = work.run(approve)
            journal.record(ledger, report, work.generation)
            return report

    def look(self) -> State:
        found = {**_kernel_objects(), **_tables(), "hostname system": socket.gethostname()}
        for setting in self.full.settings:
            key = setting.removeprefix("sysctl ").replace(".", "/")
            found[setting] = Path("/proc/sys", key).read_text().strip()
        for path in sorted(self.paths.under("/etc").rglob("*")):
            if path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                name = f"file /{path.relative_to(self.paths.root)}"
                found[name] = f"{path.stat().st_mode:o} {content}"
        folder = Folder(self.paths.root)
        for name in folder.names():
            definition, running = folder.definition(name), folder.running(name)
            runs = running is not None and processes.alive(running.process)
            found[f"service {name}"] = f"{definition and definition.started_as} runs: {runs}"
        return found | frr_lines(self.paths)

    def running(self) -> set[int]:
        """Every process that was started as a service below the root."""
        label = f"{processes.LABEL}={self.paths.root}:".encode()
        found = set()
        for one in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if label in (one / "environ").read_bytes():
                    found.add(int(one.name))
        return found


def frr_lines(paths: Paths) -> State:
    """What FRR is configured with, line by line, each with the lines that it stands below."""
    found: Counter[str] = Counter()
    for daemon in FRR_DAEMONS:
        socket_ = paths.frr / f"{daemon}.vty"
        if not socket_.exists():
            continue
        vty = Vty(socket_)
        text = vty.show("write terminal")
        vty.close()
        below: list[str] = []
        for line in text.splitlines():
            depth = len(line) - len(line.lstrip())
            said = line.strip()
            if said and said != "!" and not said.startswith(_OF_EVERY_FRR):
                below = [*below[:depth], *[""] * (depth - len(below)), said]
                found[" / ".join((f"frr {daemon}", *below))] += 1
    return {name: str(count) for name, count in found.items()}


def _kernel_objects() -> State:
    sock = NetlinkSocket()
    try:
        items = [item for items in snapshot.take(sock).values() for item in items]
    finally:
        sock.close()
    found: State = {}
    links = [item for item in items if item.what == "link"]
    found.update((f"link {item.where[0]}", _link(item)) for item in links)
    for link in links:
        if link.fields[0] == "wireguard":
            found[f"wireguard {link.where[0]}"] = _output("wg", "showconf", str(link.where[0]))
    rest = Counter(str(item) for item in items if item.what != "link")
    found.update((name, str(count)) for name, count in rest.items())
    return found


def _link(item: snapshot.Item) -> str:
    """Without its number. One that was made again has another, and another MAC."""
    kind, up, mtu, mac, *rest = item.fields
    return str((kind, up, mtu, mac if kind in ("", "veth") else "", *rest))


def _tables() -> State:
    listed = json.loads(_output("nft", "-j", "list", "tables"))["nftables"]
    tables = [one["table"] for one in listed if "table" in one]
    return {
        f"nft {one['family']} {one['name']}": _output(
            "nft", "-s", "list", "table", one["family"], one["name"]
        )
        for one in tables
    }


def _output(*command: str) -> str:
    return Namespace().run(*command)


@contextmanager
def kind_scene(kind: str, spec: dict[str, Any] | None = None) -> Iterator[KindScene]:
    """In memory, where fsync costs nothing. Services of other users read below the root."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
    folder.chmod(0o755)
    paths = Paths(folder / "root")
    for name, content in _FILES.items():
        path = paths.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    # Where IPv6 is a module, `ip` would find it missing: a socket has it loaded.
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    try:
        with private_namespaces() as namespace, ExitStack() as ending:
            _lay_ground(namespace)
            if GROUPS_OF_FRR & set(registry.kind(kind).groups):
                ending.enter_context(_frr(paths))
            whole = surrounded(kind, spec)
            full = _stage(folder, paths, whole)
            without = _stage(folder, paths, _without_example(whole))
            empty = _stage(folder, paths, {**whole, "spec": {"resources": []}})
            try:
                yield KindScene(kind, paths, namespace, without, full, empty)
            finally:
                Client(paths.root).remove_all()
    finally:
        shutil.rmtree(folder)


@contextmanager
def _frr(paths: Paths) -> Iterator[None]:
    """FRR, and what somebody has configured in it."""
    needs_frr(VERSION)
    with TemporaryDirectory(prefix="hf-frr-") as folder:
        Path(folder).chmod(0o755)  # the daemons run as frr
        place = paths.frr
        place.parent.mkdir(parents=True, exist_ok=True)
        with ground(VERSION, Path(folder)) as made:
            started = made.frr(*FRR_DAEMONS)
            place.symlink_to(started.folder)
            started.configure(_FRR_OF_OTHERS)
            time.sleep(SETTLES_S)  # until the daemons are known to have read frr.conf
            yield
        place.unlink()


def _lay_ground(namespace: Namespace) -> None:
    for name in INTERFACES.values():
        namespace.veth(name, f"far-{name}")
        # The far end hears what is served on the near one, and must not make anything of it.
        Path(f"/proc/sys/net/ipv6/conf/far-{name}/disable_ipv6").write_text("1")
    for line in _GROUND.splitlines():
        namespace.ip(line)
    if lanes.current() != "uml":  # whose kernel has no tables
        namespace.run("nft", _TABLE)
    socket.sethostname("before")


def _stage(folder: Path, paths: Paths, document: Mapping[str, Any]) -> ServicePasses:
    for name, content in SECRETS.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o600)
    path = folder / "router.yaml"
    path.write_text(json.dumps(document) + "\n")
    router = load_router(path)
    known = replace(everything_known(router), on_link=links_of_gateways(router).on_link)
    desired = compile_router(router, known, str(paths.root))
    return ServicePasses(router, desired)


def _without_example(document: Mapping[str, Any]) -> dict[str, Any]:
    """The example is the last; a field of another that names it goes with it."""
    *others, example = json.loads(json.dumps(document["spec"]["resources"]))
    for other in others:
        spec = registry.kind(other["kind"]).spec.read(other["spec"])
        for location, asked, name in references(spec):
            if asked in registry.referred_as(example["kind"]) and name == EXAMPLE:
                del other["spec"][str(location[0])]
    return {**document, "spec": {"resources": others}}
