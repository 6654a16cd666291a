"""The uml lane has what it is there for, and leaves the machine as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lanes import current, needs_link_type, needs_programs
from tests.namespace import Namespace

_PROJECT = Path(__file__).parents[2]

_LINKS = {
    "dummy": "link add made type dummy",
    "vlan": "link add link base name made type vlan id 5",
    "vrf": "link add made type vrf table 10",
    "bond": "link add made type bond",
    "ip6tnl": "link add made type ip6tnl local 2001:db8::1 remote 2001:db8::2",
    "vxlan": "link add made type vxlan id 5 dstport 4789",
    "macvlan": "link add link base name made type macvlan",
    "bridge": "link add made type bridge",
    "veth": "link add made type veth peer name other",
}


@pytest.mark.uml
@pytest.mark.parametrize("kind", _LINKS)
def test_some_lane_has_the_link_type(netns: Namespace, kind: str) -> None:
    needs_link_type(netns, kind)
    netns.veth("base", "far")
    netns.ip(_LINKS[kind])
    (link,) = netns.ip_json("-d link show dev made")
    assert link["linkinfo"]["info_kind"] == kind


@pytest.mark.uml
def test_the_lane_runs_its_own_kernel_on_a_read_only_tree() -> None:
    if current() == "uml":
        mounts = Path("/proc/mounts").read_text()
        # The second where the distribution has no user-mode Linux.
        assert " / hostfs ro" in mounts or " / 9p ro" in mounts
        with pytest.raises(OSError, match="Read-only file system"):
            (_PROJECT / "written").touch()
    else:
        assert os.access(_PROJECT, os.W_OK)


def _uml_run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which("linux.uml"):  # then it runs under QEMU
        needs_programs("qemu-system-x86_64", "busybox", "modprobe")
    return subprocess.run(
        [_PROJECT / "tools" / "uml-run", *command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_uml_run_hands_back_output_and_status(tmp_path: Path) -> None:
    done = _uml_run("bash", "-c", "echo 'two  words'; exit 7", TMPDIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("two  words\n", 7)
    assert list(tmp_path.iterdir()) == []


def test_uml_run_ends_a_command_that_hangs(tmp_path: Path) -> None:
    done = _uml_run("sleep", "1000", UML_TIMEOUT="3", TMPDIR=str(tmp_path))
    assert done.returncode == 124
    assert "stopped after 3 s without output: sleep 1000" in done.stderr
    assert list(tmp_path.iterdir()) == []
