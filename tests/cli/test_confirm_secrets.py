"""Secrets come back with a revert, and are seen nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.cli import confirm_scene as scene
from tests.cli.conftest import Holdfast
from tests.host.wireguard_scene import new_pair, wg
from tests.lanes import needs_link_type
from tests.namespace import Namespace

WIREGUARD = (
    "net WireGuardInterface wg0 {{ifname: wg0, privateKeyFile: wg0.key, listenPort: 51820,"
    ' peers: [{{name: far, publicKey: "{far}", presharedKeyFile: far.psk,'
    " persistentKeepalive: {keepalive}s, allowedIPs: [10.78.0.0/16]}}]}}"
)


def secret(holdfast: Holdfast, name: str, content: str) -> None:
    path = holdfast.folder / name
    path.write_text(f"{content}\n")
    path.chmod(0o600)


@pytest.mark.qemu
def test_keys_of_a_tunnel(holdfast: Holdfast, netns: Namespace) -> None:
    """Their files were written over before the trial: what was in them is in the kernel alone."""
    needs_link_type(netns, "wireguard")
    far, keys, shared = new_pair().public, [new_pair().private, new_pair().private], wg("genpsk")
    secret(holdfast, "wg0.key", keys[0])
    secret(holdfast, "far.psk", shared)
    before = WIREGUARD.format(far=far, keepalive=20)
    (holdfast.folder / "router.yaml").write_text(scene.document((before,)))
    holdfast.ok("apply", "router.yaml", "--yes")
    was = wg("showconf", "wg0")
    assert keys[0] in was
    assert shared in was
    secret(holdfast, "wg0.key", keys[1])
    secret(holdfast, "far.psk", wg("genpsk"))
    after = WIREGUARD.format(far=far, keepalive=25)
    (holdfast.folder / "candidate.yaml").write_text(scene.document((after,)))
    done = holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    assert keys[1] in wg("showconf", "wg0")
    with Ledger.read(Paths(holdfast.root)) as ledger:
        waiting = ledger.waiting()
        exported = str(ledger.export())
    assert waiting is not None
    said = (done.out + done.err, exported, repr(waiting), holdfast.ok("generations").out)
    assert not any(key in text for text in said for key in (*keys, shared))
    holdfast.ok("rollback")
    assert wg("showconf", "wg0") == was
    with Ledger.read(Paths(holdfast.root)) as ledger:
        assert [one.reverse for one in ledger.confirmations()] == [b""], "no longer than needed"


def test_file_that_its_owner_alone_may_read(holdfast: Holdfast, netns: Namespace) -> None:
    """pppd's options, with the password in them. That pppd finds nobody to talk to, before and
    after, holds nothing up."""
    netns.veth("wan0", "isp0")
    wan = "net Interface wan {ifname: wan0, adminUp: true}"
    ppp = "net PPPoEInterface ppp {interface: wan, ifname: ppp0, username: u, passwordFile: "
    for name, password in (("router", "geheim"), ("candidate", "anders")):
        secret(holdfast, f"{name}.secret", password)
        text = scene.document((wan, f"{ppp}{name}.secret}}"))
        (holdfast.folder / f"{name}.yaml").write_text(text)
    holdfast.run("apply", "router.yaml", "--yes")
    try:
        (options,) = (
            path for path in holdfast.root.rglob("*") if path.is_file() and _holds(path, b"geheim")
        )
        was = options.read_bytes(), options.stat().st_mode
        holdfast.run("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        assert b"anders" in options.read_bytes()
        assert not _holds(Paths(holdfast.root).ledger, b"geheim")
        holdfast.ok("rollback")
        assert (options.read_bytes(), options.stat().st_mode) == was
        assert not scene.waiting(holdfast.root)
    finally:
        (holdfast.folder / "none.yaml").write_text(scene.document(()))
        holdfast.ok("apply", "none.yaml", "--yes", "--allow-mass-delete")


def _holds(path: Path, text: bytes) -> bool:
    return text in path.read_bytes()
