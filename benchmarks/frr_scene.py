"""FRR with a neighbour that watches, for the benchmarks of routing control; FRR=10 for 10.3."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Run, timed
from holdfast.engine.artifact import Artifact, Batch
from holdfast.engine.kinds.bgp_attributes import NO_ATTRIBUTES, Attributes
from holdfast.engine.kinds.bgp_instance import bgp_instance
from holdfast.engine.kinds.bgp_network import NetworkTemplate, batch
from holdfast.engine.kinds.bgp_peer import Session, bgp_peer
from holdfast.engine.kinds.route import pack_key
from tests.frr.drive import Drive, driver_of
from tests.frr.ground import Bird, Frr, bird_bgp, bird_config, ground, programs, wait_until
from tests.namespace import private_namespaces

COUNT = 10_000
VERSION = "10.3" if os.environ.get("FRR", "").startswith("10") else "8.4"
INSTANCE = bgp_instance(65001, router_id="192.0.2.1")
PEER = bgp_peer("192.0.2.2", Session(remote_as="65002", ipv4_unicast=("activate",)))
_LOCAL = "local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;"
_STEP_S = 0.002


def keys(count: int, start: int = 0) -> list[bytes]:
    """Networks 10.0.0.0/24, 10.0.1.0/24, and so on."""
    return [
        pack_key(bytes((10, number >> 8, number & 255, 0)), 24)
        for number in range(start, start + count)
    ]


def networks(count: int, start: int = 0, attributes: Attributes = NO_ATTRIBUTES) -> Batch:
    return batch(NetworkTemplate(4, attributes=attributes), keys(count, start))


def network_lines(count: int, start: int = 0) -> str:
    """The same as FRR's lines, with their map."""
    name = NO_ATTRIBUTES.map_name
    told = "".join(
        f"  network 10.{number >> 8}.{number & 255}.0/24 route-map {name}\n"
        for number in range(start, start + count)
    )
    head = f"route-map {name} permit 10\nexit\nrouter bgp 65001\n address-family ipv4 unicast\n"
    return f"{head}{told} exit-address-family\nexit\n"


def unreachable_peers(count: int) -> list[Artifact]:
    session = Session(remote_as="65100", passive=True, ipv4_unicast=("activate",), keepalive=10,
                      hold_time=30, description="a peer that never answers")  # fmt: skip
    return [bgp_peer(f"198.18.{number}.1", session) for number in range(count)]


@dataclass
class Scene:
    frr: Frr
    bird: Bird
    drive: Drive

    def settle(self, *declared: Artifact | Batch) -> None:
        for result in self.drive.apply(*declared):
            if not result.ok:
                raise RuntimeError(result.failures[0].error)

    def wait_for(self, count: int) -> None:
        until = time.monotonic() + 120
        while self.bird.count("upper") != count:
            if time.monotonic() > until:
                raise RuntimeError(f"BIRD has {self.bird.count('upper')} routes, not {count}")
            time.sleep(_STEP_S)


@contextmanager
def scene() -> Iterator[Scene]:
    """An instance with one session, up. Raises RuntimeError where FRR is lacking."""
    if programs(VERSION)[2]:
        raise RuntimeError(programs(VERSION)[2])
    with (
        private_namespaces(),
        TemporaryDirectory(prefix="hf-frr-") as scratch,
        ground(VERSION, Path(scratch)) as made,
    ):
        Path(scratch).chmod(0o755)
        beside = made.elsewhere()
        beside.veth("core", "far", ("192.0.2.1/24", "192.0.2.2/24"))
        bird = made.bird(beside, bird_config([bird_bgp("upper", _LOCAL)]))
        frr = made.frr("bgpd")
        driver = driver_of(frr)
        found = Scene(frr, bird, Drive(driver))
        found.settle(INSTANCE, PEER)
        wait_until("the session is up", lambda: bird.is_up("upper"))
        try:
            yield found
        finally:
            driver.close()


def elapsed(work: Callable[[], object]) -> Run:
    started = time.perf_counter()
    work()
    return Run(time.perf_counter() - started)


def vtysh(frr: Frr, *words: str) -> Run:
    return timed([*frr.vtysh_command(), *words])


def frr_reload(frr: Frr, wanted: str, option: str) -> Run:
    """frr-reload.py with a whole configuration; option: --test or --reload."""
    file = frr.folder / "wanted.conf"
    file.write_text(wanted)
    programs_folder = frr.folder / "bin"
    programs_folder.mkdir(exist_ok=True)
    wrapper = programs_folder / "vtysh"
    words = [shlex.quote(word) for word in frr.vtysh_command()]
    # It names the folder of the sockets itself.
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(words[:-2])} "$@"\n')
    wrapper.chmod(0o755)
    tool = Path("/usr/lib/frr/frr-reload.py")
    if not tool.exists():
        raise RuntimeError("no frr-reload.py: tools/debian-packages bench installs it")
    command: Sequence[str] = [
        "python3", str(tool), option, str(file), "--bindir", str(programs_folder),
        "--confdir", str(frr.folder), "--rundir", str(frr.folder), "--vty_socket", str(frr.folder),
    ]  # fmt: skip
    return timed(command)
