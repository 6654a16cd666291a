"""A router and a far end, each in a namespace of its own, with WireGuard between them.

The far end is set up by `wg`, which is also asked what the kernel has.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.engine.reconcile import Report
from tests.cli.conftest import COMMAND
from tests.firewall.hosts import Host, new_host
from tests.lanes import needs_link_type
from tests.namespace import Namespace
from tests.safety.router_scene import Scene, Watched, document, scene

ADDRESS = {"IPv4StaticAddress/wg": "{interface: wg0, address: 10.77.0.1/24}"}
FAR_ENDPOINT = "10.99.0.2:51820"
_WAIT_S = 30.0


def wg(*words: str, given: str = "") -> str:
    done = subprocess.run(["wg", *words], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"wg {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Pair:
    private: str
    public: str


def new_pair() -> Pair:
    private = wg("genkey")
    return Pair(private, wg("pubkey", given=private))


@dataclass(slots=True)
class Tunnel:
    """What a test changes, and how the router is told."""

    scene: Scene
    near: Host
    far: Host
    folder: Path
    ours: Pair = field(default_factory=new_pair)
    theirs: Pair = field(default_factory=new_pair)
    preshared: str = field(default_factory=lambda: wg("genpsk"))

    def secret(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(f"{content}\n")
        path.chmod(0o600)
        return path

    def peer(self, **more: object) -> str:
        """The far end, as the router has it."""
        fields = {
            "name": "far",
            "publicKey": self.theirs.public,
            "presharedKeyFile": self.secret("psk", self.preshared),
            "endpoint": FAR_ENDPOINT,
            "allowedIPs": "[10.77.0.2/32, 10.78.0.0/16]",
        }
        return _flow({**fields, **more})

    def declared(self, *peers: str, **more: object) -> dict[str, str]:
        key = self.secret(f"key-{self.ours.public.replace('/', '_')}", self.ours.private)
        fields: dict[str, object] = {
            "privateKeyFile": key,
            "listenPort": 51821,
            "peers": f"[{', '.join(peers or (self.peer(),))}]",
        }
        return {"WireGuardInterface/wg0": _flow({**fields, **more}), **ADDRESS}

    def apply(self, resources: Mapping[str, str], watched: Watched | None = None) -> Report:
        return self.scene.apply(resources, watched)

    def converge(self, resources: Mapping[str, str]) -> Report:
        """A pass that does all there is to do, and one after it that finds nothing."""
        report = self.apply(resources)
        assert report.failures == ()
        assert report.converged, report.after
        assert verbs(self.apply(resources)) == []
        return report

    def adopt(self, resources: Mapping[str, str]) -> None:
        """The command of that name, as somebody would give it."""
        path = self.folder / "router.yaml"
        # With --root, absolute names start from there.
        path.write_text(document(resources).replace(f"{self.folder}/", ""))
        command = [COMMAND, "--root", str(self.scene.paths.root), "adopt", "--apply", str(path)]
        Namespace().run(*command)

    def far_link(self) -> None:
        """The far end as somebody else's program makes it."""
        with self.far.inside() as inside:
            inside.ip("addr add 10.99.0.2/24 dev far0")
            inside.ip("link set far0 up")
            inside.ip("link add wg0 type wireguard")
            key, psk = self.secret("far.key", self.theirs.private), self.folder / "psk"
            self.secret("psk", self.preshared)
            wg(
                "set", "wg0", "private-key", str(key), "listen-port", "51820",
                "peer", self.ours.public, "preshared-key", str(psk),
                "allowed-ips", "10.77.0.1/32",
            )  # fmt: skip
            inside.ip("addr add 10.77.0.2/24 dev wg0")
            inside.ip("addr add 10.78.0.1/32 dev wg0")
            inside.ip("link set wg0 up")


def shown(what: str, name: str = "wg0") -> dict[str, str]:
    """`wg show`, a value a peer."""
    lines = wg("show", name, what).splitlines()
    return {key: value for key, _, value in (line.partition("\t") for line in lines)}


def wait_for_handshake(public_key: str) -> str:
    """The time of the last one."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        at = shown("latest-handshakes").get(public_key, "0")
        if at != "0":
            return at
        time.sleep(0.2)
    raise AssertionError(f"no handshake with {public_key}")


def verbs(report: Report) -> list[str]:
    return [f"{one.operation.verb} {one.operation.kind}" for one in report.results]


def _flow(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"


@contextmanager
def tunnel(folder: Path) -> Iterator[Tunnel]:
    with scene() as made:
        needs_link_type(Namespace(), "wireguard")
        with new_host() as far:
            Namespace().ip(f"link set far0 netns /proc/{os.getpid()}/fd/{far.namespace}")
            here = os.open("/proc/self/ns/net", os.O_RDONLY)
            try:
                yield Tunnel(made, Host(here), far, folder)
            finally:
                os.close(here)
