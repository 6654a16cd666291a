"""As on a real host, where dnsmasq gives up root's rights: it still reads again what it is told
to, and still keeps its leases in a folder that only root may enter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.intent import Intent
from holdfast.resources.compile import compile_router
from tests.lan.network import Resources, Scene, until
from tests.lan.test_changes import reserved
from tests.lan.test_serving import LAN, MAC


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


def write(router: Scene, resources: Resources, root: Path) -> None:
    desired = compile_router(router.load(resources), root=str(root))
    for intent in desired.intents:
        if isinstance(intent, Intent) and intent.artifact.key.kind == "file":
            path = root / intent.artifact.key.name.removeprefix("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                intent.artifact.payload.replace(b"user=root\ngroup=\n", b"user=dnsmasq\n")
            )


@contextmanager
def dnsmasq(root: Path) -> Iterator[subprocess.Popen[str]]:
    argv = ["dnsmasq", "--keep-in-foreground", f"--conf-file={root}/etc/holdfast/dnsmasq.conf"]
    running = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        while "cleared cache" not in running.stderr.readline():
            assert running.poll() is None
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=60)


def test_as_another_user(router: Scene, open_root: Path) -> None:
    client = router.host("c0", "lan0", MAC)
    router.netns.ip("addr add 192.168.1.1/24 dev lan0")
    write(router, LAN | reserved("192.168.1.20"), open_root)
    state = open_root / "var/lib/holdfast"
    state.mkdir(parents=True)
    state.chmod(0o700)
    with dnsmasq(open_root) as running:
        assert Path(f"/proc/{running.pid}").stat().st_uid != os.geteuid()
        assert client.dhcp(4)["new_ip_address"] == "192.168.1.20"
        write(router, LAN | reserved("192.168.1.21"), open_root)
        running.send_signal(signal.SIGHUP)
        until(lambda: client.dhcp(4)["new_ip_address"] == "192.168.1.21", "the new address")
        assert "192.168.1.21" in (state / "dnsmasq.leases").read_text()
