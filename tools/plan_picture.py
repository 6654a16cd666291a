#!/usr/bin/env python3
"""Draw docs/images/plan.svg: a plan as a terminal shows it, from the command's own colours.

python tools/plan_picture.py FILE

The router of the picture lives in a network namespace made for it (`unshare`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: edge}
spec:
  resources:
"""
RESOURCE = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: %s
      metadata: {name: %s}
      spec: {%s}
"""
KEPT = (
    ("Interface", "wan", "ifname: wan0, adminUp: true, mtu: 1500"),
    ("IPv4StaticAddress", "wan", "interface: wan, address: 192.0.2.1/24"),
    ("IPv4Route", "default", "destination: default, gateway: 192.0.2.254, interface: wan"),
)
BEFORE = (*KEPT, ("IPv4Route", "voice", "destination: 10.30.0.0/16, gateway: 192.0.2.252"))
AFTER = (
    *KEPT,
    ("RouteList", "branches", "gateway: 192.0.2.253, interface: wan, file: branches.routes"),
    ("IPv4Route", "lab", "destination: 10.40.0.0/16, gateway: 192.0.2.251, interface: wan"),
)
COMMAND = "holdfast plan router.yaml"
SCRIPT = f"""\
set -e
ip link add wan0 type veth peer name isp0
ip link set isp0 up
mv before.yaml router.yaml
holdfast --root . apply router.yaml --yes >/dev/null
ip link set wan0 mtu 1400
ip route add 10.40.0.0/16 via 192.0.2.7 proto bird
mv after.yaml router.yaml
CLICOLOR_FORCE=1 {COMMAND.replace("holdfast", "holdfast --root .")}
"""

# The colours of a common dark terminal. The picture has its own background, so that it can be
# read on a light page and on a dark one.
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 35: "#d2a8ff", 36: "#76e3ea"}
TEXT, DIM, BACKGROUND, BORDER = "#e6edf3", "#9198a1", "#0d1117", "#656c76"
SIZE, ADVANCE, LINE, MARGIN = 14, 8.4, 20, 20
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def plan() -> str:
    """What the command prints, colours and all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, resources in (("before.yaml", BEFORE), ("after.yaml", AFTER)):
            folder.joinpath(file).write_text(HEAD + "".join(RESOURCE % each for each in resources))
        routes = "".join(f"10.20.{number}.0/24\n" for number in range(200))
        folder.joinpath("branches.routes").write_text(routes)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {k: v for k, v in os.environ.items() if "COLOR" not in k} | {"PATH": path}
        done = subprocess.run(  # noqa: S603 (the script above)
            ["unshare", "-rnu", "bash", "-c", SCRIPT],  # noqa: S607 (found in PATH as by a user)
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout


def spans(line: str) -> Iterator[tuple[str, str]]:
    """The pieces of a line: an SVG style for each, and its text."""
    style = ""
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not piece.startswith("\x1b["):
            if piece:
                yield style, piece
            continue
        codes = [int(code) for code in piece[2:-1].split(";") if code]
        fill = next((COLOURS[code] for code in codes if code in COLOURS), DIM if 2 in codes else "")
        style = f' fill="{fill}"' if fill else ""
        style += ' font-weight="bold"' if 1 in codes else ""


def draw(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = round(max(map(len, plain)) * ADVANCE + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    said = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-label="The output of {COMMAND}">',
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"'
        f' fill="{BACKGROUND}" stroke="{BORDER}"/>',
        f'<g font-family="{FONT}" font-size="{SIZE}" fill="{TEXT}">',
    ]
    for number, (line, shown) in enumerate(zip(lines, plain, strict=True)):
        if shown:
            indent = len(shown) - len(shown.lstrip())
            pieces = "".join(
                f"<tspan{style}>{_kept(piece)}</tspan>" if style else _kept(piece)
                for style, piece in _stripped(list(spans(line)), indent)
            )
            # Blanks at the start are a place, and the length is fixed: so columns hold whatever
            # font the reader has.
            said.append(
                f'<text x="{MARGIN + indent * ADVANCE:g}" y="{MARGIN + number * LINE + 15}"'
                f' textLength="{(len(shown) - indent) * ADVANCE:g}">{pieces}</text>'
            )
    return "\n".join((*said, "</g>", "</svg>")) + "\n"


def _kept(piece: str) -> str:
    return escape(piece).replace(" ", "\u00a0")  # several blanks in a row would become one


def _stripped(pieces: list[tuple[str, str]], indent: int) -> Iterator[tuple[str, str]]:
    for style, piece in pieces:
        cut = min(indent, len(piece))
        indent -= cut
        if piece[cut:]:
            yield style, piece[cut:]


if __name__ == "__main__":
    shown = f"\x1b[1m$\x1b[0m \x1b[1m{COMMAND}\x1b[0m\n{plan()}"
    Path(sys.argv[1]).write_text(draw(shown))
