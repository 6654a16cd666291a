"""The Debian package as its users meet it: install, enable, reboot, upgrade in place, uninstall."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.lanes import needs_programs

_PROJECT = Path(__file__).parents[2]
SEEN = """\
saw: installed, and nothing started by itself
saw: enabled: the network is as declared
saw: its services run, and one of them has a lease
saw: each socket is for its group
saw: who may read is told the key of the console
saw: a plugin runs as nobody and sees no process of others
saw: drift repaired
saw: killed, and started anew; a command given meanwhile waited
saw: reloaded
saw: as declared after a reboot
saw: upgraded in place, and nothing of the network was touched; a command given meanwhile waited
saw: stopped: the data plane stays, and no command starts it again
saw: stopped with a command waiting: it is told
saw: a daemon started by hand takes no socket of the service, and loses none to it
saw: cleaned up: what was owned is gone, what is foreign stays
saw: removed and purged: the configuration is the user's and stays
"""


def test_the_package(tmp_path: Path) -> None:
    needs_programs("systemd-nspawn", "debootstrap", "dpkg-deb")
    for version in ("0.1.0", "0.1.1"):
        built = subprocess.run(
            [_PROJECT / "tools/make-package", tmp_path],
            cwd=_PROJECT,
            env={**os.environ, "HOLDFAST_VERSION": version},
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
    held = subprocess.run(
        ["dpkg-deb", "--contents", next(tmp_path.glob("*.deb"))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "./usr/share/doc/holdfast/guides/troubleshooting.md\n" in held
    assert "./usr/share/bash-completion/completions/holdfast\n" in held
    shutil.copy(Path(__file__).with_name("machine.sh"), tmp_path)
    done = subprocess.run(
        [_PROJECT / "tools/nspawn-run", "./machine.sh"],
        cwd=tmp_path,
        env={**os.environ, "NSPAWN_TIMEOUT": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == (SEEN, 0), done.stdout + done.stderr
