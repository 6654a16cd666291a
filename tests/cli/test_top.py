"""`top` in a real terminal, and where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from holdfast.cli.screen import text
from holdfast.cli.terminal import Style
from holdfast.cli.top_view import (
    DOWN,
    END,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
    UP,
    Check,
    PassSeen,
    PluginSeen,
    Scrolled,
    Snapshot,
    rows,
)
from holdfast.runtime.phases import Phase, ResourceStatus
from holdfast.runtime.status import Past, Status
from holdfast.state.events import StoredEvent
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace

LONG = 60.0
ROUTER = (WAN, WAN_ADDRESS, route("a", "10.1.0.0/16"))
_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DRAWN = re.compile(r"\x1b\[H(.*?)\x1b\[J", re.DOTALL)


@dataclass(slots=True)
class Terminal:
    process: subprocess.Popen[bytes]
    descriptor: int
    said: str = ""
    ended: bool = field(default=False)

    def resize(self, width: int, height: int) -> None:
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)

    def press(self, key: str) -> None:
        os.write(self.descriptor, key.encode())

    @property
    def screen(self) -> list[str]:
        """What was drawn last, all of it, without its colours; no lines before there is any."""
        drawn = _DRAWN.findall(self.said)
        return _CODE.sub("", drawn[-1]).split("\r\n") if drawn else []

    def until(self, true: Callable[[list[str]], bool]) -> list[str]:
        deadline = time.monotonic() + LONG
        while not (seen := self.screen) or not true(seen):
            assert time.monotonic() < deadline, "\n".join(seen)
            self._hear()
        return seen

    def end(self) -> int:
        deadline = time.monotonic() + LONG
        while not self.ended:
            assert time.monotonic() < deadline, self.said
            self._hear()
        return self.process.wait(LONG)

    def _hear(self) -> None:
        if not select.select([self.descriptor], [], [], 0.1)[0]:
            return
        try:
            heard = os.read(self.descriptor, 65536)
        except OSError:  # the other side is gone
            heard = b""
        self.ended = not heard
        self.said += heard.decode(errors="replace")


@contextmanager
def top(holdfast: Holdfast, *words: str, width: int = 100, height: int = 30) -> Iterator[Terminal]:
    descriptor, other = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", *holdfast.arguments("top", *words)],
        stdin=other,
        stdout=other,
        stderr=other,
        cwd=holdfast.folder,
        env=holdfast.environment(TERM="xterm"),
    )
    os.close(other)
    terminal = Terminal(process, descriptor)
    terminal.resize(width, height)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        os.close(descriptor)


def test_it_follows_what_happens_and_leaves_the_terminal_as_it_was(
    holdfast: Holdfast, wan: Namespace
) -> None:
    file = holdfast.declare(*ROUTER)
    with daemon(holdfast, file) as running, top(holdfast) as terminal:
        terminal.until(lambda seen: "3 resources: 3 Healthy" in seen[1])
        assert f"process {running.process.pid}" in terminal.screen[0]
        wan.ip("route del 10.1.0.0/16")
        terminal.until(lambda seen: any("repaired" in line for line in seen[3:]))
        terminal.resize(40, 12)
        terminal.until(lambda seen: len(seen) == 12)
        assert max(map(len, terminal.screen)) <= 40
        assert terminal.screen[-1].startswith("q leaves")
        running.signal(signal.SIGKILL)
        running.process.wait()
        # There is still the host, and what the ledger says.
        terminal.until(lambda seen: "no daemon runs" in seen[0] or "the daemon ended" in seen[0])
        terminal.press("q")
        assert terminal.end() == 0
    assert terminal.said.startswith("\x1b[?1049h\x1b[?25l")
    assert terminal.said.endswith("\x1b[?25h\x1b[?1049l")


def test_without_a_daemon_and_without_a_terminal(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(*ROUTER)
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("route del 10.1.0.0/16")
    seen = holdfast.ok("top", "router.yaml").out
    assert seen.startswith("test  no daemon runs")
    assert "3 resources: 2 Healthy  1 Drifted" in seen
    assert "  Drifted     IPv4Route/a" in seen
    assert "created    route 10.1.0.0/16" in seen
    assert "\x1b" not in seen
    with top(holdfast, "router.yaml") as terminal:
        terminal.until(lambda shown: "1 Drifted" in shown[1])
        terminal.press("\x03")
        assert terminal.end() == 0


def test_a_file_that_is_invalid_is_said(holdfast: Holdfast) -> None:
    (holdfast.folder / "router.yaml").write_text("nonsense: true\n")
    done = holdfast.run("top", "router.yaml")
    assert done.code == 1
    assert "router.yaml:1:1" in done.out


def snapshot(resources: int) -> Snapshot:
    phases = list(Phase)
    told = [
        ResourceStatus(f"IPv4Route/r{n}", "x:1:1", phases[n % len(phases)], n, "\x1b[2J!" * 9)
        for n in range(resources)
    ]
    event = StoredEvent(
        7, 1000.0, "fight", "route \x1b]0;x\x07", "two\nlines", 1, {"owners": ["a"]}
    )
    return Snapshot(
        1000.0,
        "daemon",
        Status("edge", False, told, {"delete": 0}, Past()),
        tuple(f"trouble {n}" for n in range(9)),
        (Check("wan", healthy=False, reason="0 of 3 answered"),),
        (PluginSeen("lab", "failed", "timed out"), PluginSeen("new", "", "")),
        (PassSeen(990.0, 0.01, ("a lease",)),),
        (event,) * 40,
    )


def test_it_fits_any_terminal() -> None:
    plain = Style(colour=False)
    for count in (0, 1, 5, 500):
        for height in range(1, 60):
            shown = rows(snapshot(count), height)
            assert len(shown) < max(height, 2)
            for width in (1, 2, 20, 80):
                assert all(len(text(row, width, plain)) <= width for row in shown)


def test_every_resource_can_be_scrolled_to() -> None:
    plain = Style(colour=False)
    given = snapshot(60)
    for height in range(34, 50):
        scrolled = Scrolled()

        def listed(scrolled: Scrolled = scrolled, height: int = height) -> list[str]:
            shown = [text(row, 200, plain) for row in rows(given, height, scrolled)]
            assert len(shown) < height
            return [line.split()[1] for line in shown if "IPv4Route/" in line]

        first = listed()
        seen = dict.fromkeys(first)
        for _ in range(60):
            scrolled.press(DOWN)
            seen.update(dict.fromkeys(listed()))
        assert len(seen) == 60, height
        scrolled.press(UP)  # none of the presses beyond the end count
        assert listed() != first
        scrolled.press(HOME)
        assert listed() == first
        scrolled.press(PAGE_DOWN + PAGE_UP)
        assert listed() == first
        scrolled.press(END)
        assert listed()[-1] == list(seen)[-1]
        scrolled.press(HOME)
        paged = dict.fromkeys(listed())
        for _ in range(60):
            scrolled.press(PAGE_DOWN)
            paged.update(dict.fromkeys(listed()))
        assert paged == seen, f"pages leave out some of them at {height} lines"


def test_keys_scroll_the_list(holdfast: Holdfast, wan: Namespace) -> None:
    assert wan
    many = [route(f"r{n:02}", f"10.{n}.0.0/16") for n in range(60)]
    holdfast.declare(WAN, WAN_ADDRESS, *many)
    with top(holdfast, "router.yaml") as terminal:
        terminal.until(lambda shown: any("more" in line for line in shown))
        terminal.press(END)
        terminal.until(lambda shown: any("above" in line for line in shown))
        terminal.press(HOME)
        terminal.until(lambda shown: not any("above" in line for line in shown))
        terminal.press("q")
        assert terminal.end() == 0


def test_what_is_wrong_comes_first_and_nothing_moves_the_cursor() -> None:
    plain = Style(colour=False)
    shown = [text(row, 200, plain) for row in rows(snapshot(500), 40)]
    assert not any("\x1b" in line or "\n" in line or "\x07" in line for line in shown)
    listed = [line.split()[0] for line in shown if "IPv4Route/r" in line]
    assert listed[0] == "Unknown"
    assert any(line.strip().startswith("… and 4") for line in shown)
    assert any("fight" in line for line in shown)


def test_it_counts_no_hour_that_it_did_not_see() -> None:
    plain = Style(colour=False)
    seen = snapshot(1)

    def counted(*events: StoredEvent) -> str:
        shown = rows(replace(seen, events=events), 0)
        assert sum("fight" in text(row, 200, plain) for row in shown[2:]) == min(len(events), 10)
        return text(shown[1], 200, plain)

    first = seen.events[0]
    assert isinstance(first, StoredEvent)
    many = [replace(first, sequence=number) for number in range(1, 31)]
    assert "last hour: 30 fight" in counted(*many)
    assert "last 29 events: 29 fight" in counted(*many[1:])
    assert "last hour: 29 fight" in counted(replace(many[0], time=-5000.0), *many[1:])
