"""A router with a policy and an executor, which is a real program."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.config.part import Part
from holdfast.paths import Paths
from holdfast.resources.dynamic.effective import Effective, merge
from holdfast.resources.router import load_router
from holdfast.runtime.actions.engine import Done, Engine
from holdfast.state.actions import Action
from holdfast.state.events import StoredEvent
from holdfast.state.ledger import Ledger
from tests.runtime.actions.plans import NOW

HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
spec:
  resources:
"""
# Proposals need no `allow`.
SOURCES = "".join(
    f"""\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {{name: {name}}}
      spec: {{source: Owner/{name}}}
"""
    for name in ("a", "b", "ci")
)
POLICY = """\
    - apiVersion: hybrid.holdfast.dev/v1alpha1
      kind: ProviderActionPolicy
      metadata: {name: cloud}
      spec: %s
"""
PLUGIN = """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: %s}
      spec:
        executable: /opt/executor
        timeout: %s
        capabilities: [%s]
        env: {LOG: %s}
"""
OPEN = {
    "enabled": True,
    "dryRunOnly": False,
    "requireApproval": False,
    "allowedProviders": ["aws"],
    "allowedActions": ["assign-secondary-ip", "unassign-secondary-ip"],
    "maxActionsPerRun": 5,
    "allowUndo": True,
}
PRELUDE = """\
import json, os, sys, time
request = json.load(sys.stdin)
spec = request["spec"]
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps(request) + "\\n")
asked = len(open(os.environ["LOG"]).readlines())
def answer(status, **more):
    print(json.dumps({"status": {"status": status, **more}}))
"""
WORKS = "answer('succeeded', message='done', observed={'id': 7}, undoAvailable=True)"


@dataclass(slots=True)
class Scene:
    root: Path
    now: float = NOW
    timeout: float = 10.0
    parts: list[Part] = field(default_factory=list)

    @property
    def paths(self) -> Paths:
        return Paths(self.root)

    @property
    def log(self) -> Path:
        return self.root / "opt/log"

    @property
    def file(self) -> Path:
        return self.root / "etc/holdfast/router.yaml"

    def prepare(self) -> None:
        """With a way for the user that executors run as."""
        self.log.parent.mkdir(parents=True)
        self.file.parent.mkdir(parents=True)
        self.log.touch()
        self.log.chmod(0o666)
        for above in (self.log.parent, *self.log.parent.parents):
            if above.stat().st_uid == os.geteuid() and above not in (Path("/"), Path("/tmp")):  # noqa: S108
                above.chmod(above.stat().st_mode | 0o011)
        self.policy()
        self.executor(WORKS)

    def executor(self, text: str) -> None:
        place = self.root / "opt/executor"
        new = place.with_name("executor.new")
        new.write_text(f"#!/usr/bin/python3 -IS\n{PRELUDE}{textwrap.dedent(text)}\n")
        new.chmod(0o755)
        new.rename(place)

    def policy(
        self,
        *,
        plugin: str = "aws-executor",
        timeout: str = "1s",
        capabilities: str = "execute.providerAction",
        **changes: Any,
    ) -> None:
        spec = {name: value for name, value in (OPEN | changes).items() if value is not None}
        lines = POLICY % json.dumps(spec)
        for name in plugin.split():
            lines += PLUGIN % (name, timeout, capabilities, self.log)
        self.file.write_text(HEAD + SOURCES + lines)

    def view(self) -> Effective:
        return merge(load_router(self.file, self.root), self.parts, self.now)

    def clock(self) -> float:
        return self.now

    def ledger(self) -> Ledger:
        return Ledger.open(self.paths, command="test", wait=20.0, clock=self.clock)

    @property
    def engine(self) -> Engine:
        return Engine(self.paths, self.ledger, self.clock, self.timeout)

    def run(self, only: str = "") -> list[Done]:
        return asyncio.run(self.engine.run(self.view, only))

    def action(self, key: str = "k1") -> Action:
        with Ledger.read(self.paths) as ledger:
            found = ledger.action(key)
        assert found is not None
        return found

    def events(self, kind: str = "") -> list[StoredEvent]:
        with Ledger.read(self.paths) as ledger:
            return [event for event in ledger.events() if kind in ("", event.kind)]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What executors were told, one after the other."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]
