"""Is what a command printed what the page shows?

A line `...` of the page stands for any number of lines. What differs from run to run is made alike
on both sides first: ages and times, MAC addresses, link-local addresses and those out of a pool,
fingerprints and digests, process numbers, and what versions of a program write differently. The
folder that an example runs in is called /home/you/router on the page. Blanks at line ends count
for nothing.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

FOLDER = "/home/you/router"
WILDCARD = "..."

_ALIKE = (
    # Said after a second, which is up to the machine.
    (re.compile(r"^waiting for (?:the daemon to answer|another process to let go .*)\n", re.M), ""),
    (re.compile(r"\b\d+ (?:s|min) ago"), "N s ago"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME UTC"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\bin \d+ ms\b"), "in N ms"),
    (re.compile(r"(?<=\d  )\d\d:\d\d:\d\d(?=  )"), "CLOCK"),  # of an event
    (re.compile(r"\buntil \d\d:\d\d:\d\d\b"), "until CLOCK"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"), "MAC"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "FINGERPRINT"),
    (re.compile(r"\bprocess \d+"), "process N"),
    (re.compile(r"\bfe80::[0-9a-f:]+"), "LINK-LOCAL"),
    # Out of the pool of a DHCP server, by the hardware address of the client.
    (re.compile(r"(?<=DHCP     )[\d.]+/"), "ADDRESS/"),
    # nft 1.1 writes it so.
    (re.compile(r"tcp flags & \(syn \| rst\) == syn"), "tcp flags syn / syn,rst"),
)


def as_shown(said: str, folder: Path) -> str:
    """What a command printed, as a page would show it."""
    lines = [line.rstrip() for line in said.replace(str(folder), FOLDER).splitlines()]
    return "\n".join(lines)


def same(shown: str, said: str) -> bool:
    pattern = "".join(
        "(?:.*\n)*" if line == WILDCARD else re.escape(line) + "\n" for line in _lines(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(said))) is not None


def difference(shown: str, said: str) -> str:
    lines = difflib.unified_diff(
        _lines(shown), _lines(said), "on the page", "really", lineterm="", n=100
    )
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    for pattern, word in _ALIKE:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.splitlines()]
