"""What a machine is asked to do before and after it is booted anew. Run by test_reboot.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.cli import confirm_scene as scene
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

_REBOOT = 133
_KEPT = Path("/var/tmp/before.txt")  # noqa: S108 (a machine of its own)
_SERVED = Path("/etc/holdfast/router.yaml")


def wire(machine: Namespace) -> None:
    """What a router has when it is switched on."""
    for links in ("all", "default"):
        Path("/proc/sys/net/ipv6/conf", links, "accept_dad").write_text("0")
    machine.veth("wan0", "isp0")
    # The same hardware at each boot.
    machine.ip("link set wan0 address 02:00:5e:10:00:01")
    machine.ip("link set isp0 address 02:00:5e:10:00:02")


def plain(state: dict[str, Any]) -> str:
    """Claims of kernel objects are of this boot, and perhaps of a later generation."""
    claims = {
        key: (claim.owners, claim.provenance, claim.state, claim.original, claim.revert)
        for key, claim in state["claims"].items()
    }
    links = [{k: v for k, v in one.items() if k != "address"} for one in state["links"]]
    files = {f"file {path}": content for path, content in state["files"].items()}
    parts = {**state, "claims": claims, "links": links, "files": sorted(files), **files}
    return "\n".join(f"{name}: {part}" for name, part in parts.items())


def main() -> int:
    machine, folder = Namespace(), Path("/root")
    holdfast = Holdfast(folder, Path("/"))
    wire(machine)
    if os.environ["HOLDFAST_BOOT"] == "1":
        _SERVED.parent.mkdir(exist_ok=True)
        _SERVED.write_text(scene.document(scene.BEFORE))
        (folder / "candidate.yaml").write_text(scene.document(scene.AFTER))
    with serve(Path("/"), _SERVED) as daemon:
        scene.until(lambda: converged(), "converged")
        if os.environ["HOLDFAST_BOOT"] == "1":
            _KEPT.write_text(settled(holdfast, machine))
            holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
            assert plain(scene.state(holdfast, machine)) != _KEPT.read_text()
            return _REBOOT
        daemon.wait_for("was reverted: the machine was booted anew before it was confirmed")
        assert "is on trial" not in daemon.said(), daemon.said()
        found, before = settled(holdfast, machine), _KEPT.read_text()
        for now, then in zip(found.splitlines(), before.splitlines(), strict=True):
            assert now == then, f"now: {now}\nthen: {then}"
    print("as before")
    return 0


def converged() -> bool:
    with Ledger.read(Paths(Path("/"))) as ledger:
        newest = ledger.generations(1)
        return bool(newest) and newest[0].state == "converged" and ledger.waiting() is None


def settled(holdfast: Holdfast, machine: Namespace) -> str:
    return scene.settled(lambda: plain(scene.state(holdfast, machine)))


if __name__ == "__main__":
    sys.exit(main())
