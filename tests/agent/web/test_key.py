"""Who may see the console: whoever may open the socket for reading."""

from __future__ import annotations

import http.client
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from holdfast.agent.event_stream import EventStream
from holdfast.agent.web.address import DEFAULT
from holdfast.agent.web.app import make_app
from holdfast.agent.web.console import PLACE, console
from holdfast.agent.web.view import Seen
from holdfast.paths import Paths
from holdfast.web import pages
from tests.agent.web.conftest import ADDRESS, COOKIE, KEY, Scene

OPEN = ("/metrics", "/healthz", "/readyz", "/favicon.ico", "/static/page.css")
# What the configuration says, beyond the names of things.
SAID = ("192.0.2", "203.0.113", "wan0", "spare0", "router.yaml", "branch-7")


def ask(path: str, cookie: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", 9473, timeout=20)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    text, kept = answer.read().decode(), answer.headers.get("Set-Cookie") or ""
    connection.close()
    return answer.status, text, kept


def paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every one that there is, so that a new one is not forgotten."""
    made: list[str] = []

    def noted(routes: list[Route | Mount], **more: object) -> object:
        made.extend(route.path for route in routes)
        return Starlette(routes=routes, **more)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(pages, "Starlette", noted)
    nowhere = Paths(Path("/nonexistent"))
    seen = Seen(cast(Any, None), EventStream(nowhere))
    make_app(seen, console(nowhere, DEFAULT))
    for old in ("{number:int}", "{before:int}", "{after:int}"):
        made = [one.replace(old, "1") for one in made]
    return made


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    "cookie", ["", f"{COOKIE}=", f"{COOKIE}={KEY[:-1]}", f"{COOKIE}={KEY}x", f"other={KEY}"]
)
def test_without_the_key_nothing_is_told(monkeypatch: pytest.MonkeyPatch, cookie: str) -> None:
    found = paths(monkeypatch)
    assert len(found) > 15
    for path in found:
        if path in OPEN or path == "/static":
            continue
        status, text, kept = ask(path, cookie)
        assert (path, status, kept) == (path, 403, "")
        assert "holdfast console" in text
        assert not [one for one in SAID if one in text]


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("path", OPEN)
def test_what_stays_open_tells_nothing_of_the_network(path: str) -> None:
    status, text, _ = ask(path)
    assert status == 200
    assert not [one for one in SAID if one in text]


@pytest.mark.usefixtures("scene")
def test_the_key_in_an_address_becomes_a_cookie() -> None:
    status, text, kept = ask(f"/?key={KEY}")
    assert (status, KEY in text) == (200, False)
    assert kept.startswith(f"{COOKIE}={KEY};")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {one.strip() for one in kept.split(";")}
    assert ask("/?key=wrong")[::2] == (403, "")
    assert ask(f"/plan?key={KEY}")[0] == 403, "nowhere else, where it would stay in the address"


@pytest.mark.skipif(os.geteuid() != 0, reason="asks as another user")
def test_only_a_reader_of_the_socket_is_told(scene: Scene) -> None:
    words = [sys.executable, "-m", "holdfast", "--root", str(scene.root), "console"]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert told.stdout == f"{ADDRESS}/?key={KEY}\n"
    place = scene.root / PLACE.lstrip("/")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    code = "import sys; open(sys.argv[1])"
    as_nobody = subprocess.run(
        ["/usr/bin/python3", "-c", code, str(place)],
        user=65534, group=65534, extra_groups=[], capture_output=True, check=False,
    )  # fmt: skip
    assert as_nobody.returncode != 0


def test_a_browser_goes_in_by_the_printed_address(scene: Scene, browser: Browser) -> None:
    """From a file, too, which is somebody else's page to it: `--open` makes one."""
    lead = scene.root / "lead.html"
    lead.write_text(f'<meta http-equiv="refresh" content="0; url={ADDRESS}/?key={KEY}">')
    for start in (f"{ADDRESS}/?key={KEY}", lead.as_uri()):
        page = browser.new_context().new_page()
        page.goto(ADDRESS)
        expect(page.get_by_role("heading", level=1)).to_have_text("These pages need a key")
        page.goto(start)
        page.wait_for_url(f"{ADDRESS}/")
        expect(page.get_by_role("heading", level=1)).to_have_text("branch-7")
        expect(page.locator("#live")).to_have_text("live")
        assert page.evaluate("document.cookie") == "", "no script can read it"
        page.context.close()


def test_a_key_is_made_kept_and_not_taken_from_others(root: Path) -> None:
    first = console(Paths(root), DEFAULT).key
    assert len(first) == 43
    assert console(Paths(root), DEFAULT).key == first
    place = root / PLACE.lstrip("/")

    def turn_into_a_link() -> None:
        place.rename(root / "elsewhere")
        place.symlink_to(root / "elsewhere")

    spoils: list[Callable[[], object]] = [
        lambda: place.chmod(0o644),
        lambda: place.write_text("short\n"),
        lambda: place.write_bytes(b"\xff" * 43),
        place.unlink,
        turn_into_a_link,
    ]
    for spoil in spoils:
        before = console(Paths(root), DEFAULT).key
        spoil()
        assert console(Paths(root), DEFAULT).key != before
        assert stat.S_IMODE(place.lstat().st_mode) == 0o600


def test_one_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("no folder")
    assert len(console(Paths(tmp_path), DEFAULT).key) == 43
