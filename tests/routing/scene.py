"""BGP declared in router.yaml, FRR that is made so, and BIRD that is told of it."""

from __future__ import annotations

import time
from typing import Any

from holdfast.frr.daemon import SETTLES_S
from holdfast.paths import Paths
from tests.cli.conftest import Holdfast
from tests.frr.ground import Bird, Frr, Ground, bird_bgp, bird_config, wait_until
from tests.namespace import Namespace

ROUTER, NEIGHBOUR = "192.0.2.1", "192.0.2.2"
SECRET = "s3cret-of-the-test"  # noqa: S105 (of a test)

Declared = tuple[str, str, str]
INSTANCE: Declared = ("BGPInstance", "main", "{localAS: 65001, routerID: 192.0.2.1}")
FILTER: Declared = (
    "BGPFilter",
    "from-upstream",
    "{rules: [{prefixes: [{prefix: 198.51.100.0/22, atMost: 24}], set: {localPreference: 200}}]}",
)
PEER: Declared = (
    "BGPPeer",
    "upstream",
    f"{{address: {NEIGHBOUR}, remoteAS: 65002, passwordFile: upstream.key, description: the"
    " provider, families: [{family: ipv4, importFilter: from-upstream, maxPrefixes: 100}]}",
)
PREFIXES: Declared = (
    "BGPPrefix",
    "own",
    '{prefixes: [203.0.113.0/24, 203.0.114.0/24], med: 0, communities: ["65001:100"]}',
)
ROUTING = (INSTANCE, FILTER, PEER, PREFIXES)


class Scene:
    def __init__(self, frr: Ground, holdfast: Holdfast) -> None:
        self.ground = frr
        self.holdfast = holdfast
        there = frr.elsewhere()
        there.veth("wan0", "isp0", (f"{ROUTER}/24", f"{NEIGHBOUR}/24"))
        self.frr: Frr = frr.frr("bgpd")
        self.bird: Bird = frr.bird(there, _bird())
        place = Paths(holdfast.root).frr
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.frr.folder)
        self.key = holdfast.folder / "upstream.key"
        self.key.write_text(f"{SECRET}\n")
        self.key.chmod(0o600)
        time.sleep(SETTLES_S)  # until bgpd is known to have read frr.conf

    def declare(self, *resources: Declared) -> None:
        self.holdfast.declare(*resources)

    def apply(self, *resources: Declared) -> str:
        self.declare(*resources)
        return self.holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete").out

    def config(self) -> str:
        return self.frr.vtysh("show running-config")

    def bgp_lines(self) -> list[str]:
        """The lines of bgpd, maps and lists included, without what every FRR has."""
        skipped = ("Building", "Current", "!", "frr ", "hostname ", "log ", "no ipv6 forw", "end")
        lines = (line.rstrip() for line in self.config().splitlines())
        return [line for line in lines if line and not line.startswith(skipped)]

    def lose_the_ledger(self) -> None:
        for path in Paths(self.holdfast.root).state_dir.glob("state.db*"):
            path.unlink()

    @staticmethod
    def ip(*words: str) -> str:
        return Namespace().run("ip", *words)

    def nothing_to_do(self) -> None:
        plan = self.holdfast.ok("plan", "router.yaml", "--detailed-exitcode")
        assert plan.out.startswith("Plan: nothing to do"), plan.out

    def wait_for_routes(self, count: int) -> None:
        wait_until(f"{count} prefixes at the neighbour", lambda: self.bird.count("up") == count)

    def told(self, prefix: str) -> Any:
        """What the neighbour knows of a prefix."""
        return self.bird.ask(f"show route {prefix} all")


def _bird() -> str:
    options = f'local {NEIGHBOUR} as 65002; neighbor {ROUTER} as 65001; password "{SECRET}";'
    return bird_config([bird_bgp("up", options)])
