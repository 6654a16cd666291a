"""The script: what the demo does, says and checks."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from holdfast.cli.demo import configurations
from holdfast.cli.demo.shell import Shell
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style

HOLDFAST = "holdfast --root ."


def play(folder: Path) -> int:
    """0 where every outcome was as promised."""
    began = time.monotonic()
    shell = Shell(folder, Style.of(sys.stdout))
    shell.say("Everything here happens in a network namespace made for it, and in a folder that is")
    shell.say("removed at the end. `--root .` keeps Holdfast's files in that folder.")
    for scene in (_plan, _apply, _foreign, _drift, _removal, _adoption, _story):
        scene(shell)
    shell.say("")
    took = time.monotonic() - began
    if shell.failures:
        shell.say(shell.style("The demo did not hold:", "bold", "red"))
        for failure in shell.failures:
            shell.say(f"  {failure}")
        return Exit.FAILED
    held = shell.style("Everything held.", "bold", "green")
    shell.say(f"{held} {took:.1f} s. The namespace and its folder are gone.")
    return Exit.OK


def _plan(shell: Shell) -> None:
    shell.title("1. A router with one NIC, and a file that says what it shall be")
    shell.run("ip link add wan0 type veth peer name isp0")
    shell.run("ip link set isp0 up")
    shell.write("router.yaml", configurations.FIRST)
    shell.run(f"{HOLDFAST} plan router.yaml")
    shell.check("planning changed nothing", not shell.ip("route show"))


def _apply(shell: Shell) -> None:
    shell.title("2. Apply it, and look with other eyes")
    shell.run(f"{HOLDFAST} apply router.yaml --yes")
    shell.run("ip route show")
    shell.check("every declared route is in the kernel", len(_ours(shell)) == 6)
    shell.check("the bridge is there and up", "UP" in _flags(shell, "lan0"))


def _foreign(shell: Shell) -> None:
    shell.title("3. Somebody else adds a route by hand; it is none of our business")
    shell.run("ip route add 10.99.0.0/16 via 192.0.2.250 proto static")
    shell.run(f"{HOLDFAST} apply router.yaml --yes")
    shell.check("the foreign route survived", bool(shell.ip("route show 10.99.0.0/16")))
    shell.run(f"{HOLDFAST} explain 10.99.0.0/16 router.yaml")


def _drift(shell: Shell) -> None:
    shell.title("4. Somebody breaks what is ours; it is found and repaired")
    shell.run("ip route del 10.21.0.0/16")
    shell.run("ip link set wan0 mtu 1400")
    shell.run(f"{HOLDFAST} status router.yaml", expect=1)
    shell.run(f"{HOLDFAST} apply router.yaml --yes")
    shell.check("the route is back", bool(shell.ip("route show 10.21.0.0/16")))
    links = shell.ip("link show dev wan0")
    shell.check("the MTU is back", bool(links) and links[0]["mtu"] == 1500)
    shell.run(f"{HOLDFAST} status router.yaml")


def _removal(shell: Shell) -> None:
    shell.title("5. A resource leaves the file; what it made is cleaned up, and only that")
    shell.write("router.yaml", configurations.WITHOUT_VOICE)
    shell.run(f"{HOLDFAST} explain 10.30.0.0/16 router.yaml")
    shell.run(f"{HOLDFAST} apply router.yaml --yes")
    shell.check("its route is gone", not shell.ip("route show 10.30.0.0/16"))
    shell.check("the others are not", len(_ours(shell)) == 5)
    shell.check("nor is the foreign one", bool(shell.ip("route show 10.99.0.0/16")))


def _adoption(shell: Shell) -> None:
    shell.title("6. A route that is there already is declared; it is adopted, not taken over")
    shell.run("ip route add 10.40.0.0/16 via 192.0.2.251 dev wan0 proto static")
    shell.write("router.yaml", configurations.WITH_LAB)
    shell.run(f"{HOLDFAST} adopt --candidates router.yaml")
    before = shell.ip("route show")
    shell.run(f"{HOLDFAST} adopt --apply router.yaml")
    shell.check("adopting changed nothing in the kernel", shell.ip("route show") == before)
    said = shell.run(f"{HOLDFAST} plan router.yaml --detailed-exitcode")
    shell.check("and nothing is left to do", "nothing to do" in said)


def _story(shell: Shell) -> None:
    shell.title("7. From an object in the kernel back to its line of YAML")
    said = shell.run(f"{HOLDFAST} explain 10.40.0.0/16 router.yaml")
    shell.check("explain knows that it was adopted", "adopted" in said)
    said = shell.run(f"{HOLDFAST} explain 10.22.0.0/16 router.yaml")
    shell.check("and finds the line of a route in a list", "router.yaml:" in said)


def _ours(shell: Shell) -> list[object]:
    routes: list[object] = shell.ip("route show proto 72")
    return routes


def _flags(shell: Shell, link: str) -> list[str]:
    links = shell.ip(f"link show dev {link}")
    flags: list[str] = links[0]["flags"] if links else []
    return flags
