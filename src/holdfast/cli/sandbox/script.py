"""The trial itself, step by step, by the very commands an operator would use."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from holdfast.cli import main as command_line
from holdfast.cli.exit import Exit
from holdfast.cli.sandbox import client, ground, roles, stand_ins
from holdfast.cli.sandbox.ground import SandboxNetwork, Uplink
from holdfast.cli.terminal import Style
from holdfast.resources.router import load_router

# DHCP clients make sure that nobody else has the address before they take it.
_FACTS_S = 15.0
_PAUSE_S = 1.0
_UNDELIVERED = re.compile(r"\b\d+ events? (?:was|were) (?=not delivered)")
_SAID: set[str] = set()  # of this one trial; the process ends with it


def play(file: Path, scratch: Path) -> int:
    """In namespaces of our own. Answers the exit code of the command."""
    root = scratch / "root"
    root.mkdir()
    hidden = stand_ins.place(file, root)
    router = load_router(file, root, handed=True)
    style = Style.of(sys.stdout)

    def title(text: str) -> None:
        print(f"\n{style(text, 'bold')}", flush=True)

    title("The stand-ins")
    laid = ground.lay(roles.nics(router), scratch)
    for line in (*described(laid), *(f"{path} holds a made-up secret" for path in hidden)):
        print(f"  {line}")
    title("The plan")
    code = _command(root, "plan", str(file))
    if code != Exit.OK:
        return code
    title("Applied")
    code = _command(root, "apply", str(file), "--yes")
    if _waits(root, file):
        title("Applied again, as facts came in")
        print(f"Waiting for what is pending, {_FACTS_S:.0f} s at most …", flush=True)
        code = _apply_until_settled(root, file)
    title("Every resource")
    _command(root, "status", str(file))
    for lan in laid.lans:
        title(f"What a client on {lan.nic.name} ({lan.nic.ifname}) gets")
        for what, how in client.look(lan, laid):
            print(f"  {what:<8} {how}", flush=True)
    print("\nNothing of this is left behind.", flush=True)
    return code


def described(laid: SandboxNetwork) -> list[str]:
    lines = []
    for uplink in laid.uplinks:
        lines.append(f"{uplink.nic.ifname} leads to {_upstream(uplink, laid)} at {uplink.gateway}")
    lines += [f"{lan.nic.ifname} leads to a client" for lan in laid.lans]
    if laid.uplinks and not laid.served:
        lines.append("dnsmasq is not installed, so no provider answers DHCP")
    if laid.undialled:
        lines.append(f"nobody answers PPPoE, since {laid.undialled}: what needs a session waits")
    return lines or ["the file needs no links"]


def _upstream(uplink: Uplink, laid: SandboxNetwork) -> str:
    speaks = ["DHCP", "router advertisements", "DNS"] if laid.served else []
    if uplink.nic.concentrators and not laid.undialled:
        speaks.insert(0, "PPPoE")
    if not speaks:
        return "a host"
    *others, last = speaks
    return (
        f"a provider with {', '.join(others)} and {last}" if others else f"a provider with {last}"
    )


def _command(root: Path, *arguments: str) -> int:
    """Every command warns of the same things in the file; they are said once."""
    err = StringIO()
    with redirect_stderr(err):
        code = command_line.run(["--root", str(root), *arguments])
    for line in err.getvalue().splitlines():
        said = _UNDELIVERED.sub("", line)
        if said not in _SAID:
            _SAID.add(said)
            print(line, file=sys.stderr, flush=True)
    if code == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _waits(root: Path, file: Path) -> bool:
    """Does a resource wait for something that may yet come?"""
    out = StringIO()
    with redirect_stdout(out):
        _command(root, "plan", str(file), "-o", "json")
    plan = json.loads(out.getvalue() or "{}")
    return bool(plan.get("pending"))


def _apply_until_settled(root: Path, file: Path) -> int:
    """Until nothing waits any more, or for as long as a lease may take."""
    deadline = time.monotonic() + _FACTS_S
    while time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        out = StringIO()
        with redirect_stdout(out):
            _command(root, "apply", str(file), "--yes", "-o", "json")
        if not _waits(root, file):
            break
    return _command(root, "apply", str(file), "--yes")
