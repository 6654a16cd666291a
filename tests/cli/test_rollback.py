"""Back to an earlier generation, and a kill on the way."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.cli import main
from holdfast.host import rooted
from holdfast.state.ledger import Ledger
from tests.child import in_child
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace


@pytest.mark.parametrize(
    ("owner", "name"), [(rooted, "replace"), (Ledger, "lift_latch")], ids=["files", "latch"]
)
def test_killed_on_the_way_back_to_what_was_reverted(
    holdfast: Holdfast, wan: Namespace, owner: object, name: str
) -> None:
    """Whatever is in place then, it is not applied by itself."""
    router = holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.3.0.0/16"))
    holdfast.ok("apply", "router.yaml", "--yes")
    changed = (WAN, WAN_ADDRESS, route("a", "10.9.0.0/16"))
    candidate = holdfast.declare(*changed, file="candidate.yaml")
    text = candidate.read_text()
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    holdfast.ok("rollback")
    candidate.unlink()

    def work() -> None:
        setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        main.run(["--root", str(holdfast.root), "rollback", "--to", "2", "--yes"])

    _, status = os.waitpid(in_child(work), 0)
    assert os.WIFSIGNALED(status)
    assert candidate.exists() == (name == "lift_latch")
    router_text = router.read_text()
    router.write_text(text)
    refused = holdfast.run("reconcile", "--once", "router.yaml")
    assert (refused.code, "was reverted" in refused.err) == (4, True)
    assert "10.3.0.0/16" in wan.ip("route show")
    router.write_text(router_text)
    with daemon(holdfast, router):
        holdfast.ok("rollback", "--to", "2", "--yes")
        assert "10.9.0.0/16" in wan.ip("route show")
