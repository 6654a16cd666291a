"""The real command in the test's namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.firewall.home_network import document

COMMAND = str(Path(sys.executable).parent / "holdfast")


class Router:
    """`holdfast` as somebody runs it who is logged in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, verb: str, resources: Mapping[str, str], ssh: str | None = None, *options: str
    ) -> tuple[int, str]:
        Path(self.folder, "router.yaml").write_text(document(resources))
        environment = {k: v for k, v in os.environ.items() if k != "SSH_CONNECTION"}
        if ssh is not None:
            environment["SSH_CONNECTION"] = ssh
        words = ["--yes"] if verb == "apply" else []
        done = subprocess.run(
            [COMMAND, "--root", f"{self.folder}/root", verb, *words, *options, "router.yaml"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr
