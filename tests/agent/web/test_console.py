"""The console as somebody sees it, in a real browser."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from holdfast.web.server_sent_events import MOST_STREAMS
from tests.agent.two_providers import until
from tests.agent.web.conftest import ADDRESS, CONFIG, COOKIE, KEY, Scene, let_in


def delete_route(scene: Scene) -> None:
    """Once more, where it was deleted and told of before."""
    until(lambda: "203.0.113.0/24" in scene.netns.ip("route show proto 72"), "the route")
    scene.netns.ip("route del 203.0.113.0/24")


def heard(page: Page, problems: list[str]) -> bool:
    page.wait_for_timeout(10)  # while it does, the browser can say something
    return bool(problems)


def generations(scene: Scene) -> int:
    with Ledger.read(Paths(scene.root)) as ledger:
        return len(ledger.generations())


def test_resources_with_phase_and_reason(scene: Scene, page: Page) -> None:
    page.goto(ADDRESS)
    expect(page.get_by_role("heading", level=1)).to_have_text("branch-7")
    route = page.locator("#resources tr", has_text="IPv4Route/lab")
    expect(route).to_contain_text("Healthy")
    expect(route).to_contain_text("router.yaml:14:7")
    # What is wrong comes first.
    spare = page.locator("#resources tbody tr").first
    expect(spare).to_contain_text("Interface/spare")
    expect(spare).to_contain_text("Pending")
    expect(spare).to_contain_text("spare0 is not there yet")
    # What was missing comes, and the page says so by itself.
    scene.netns.ip("link add spare0 type veth peer name spare1")
    expect(page.locator("#resources tr", has_text="Interface/spare")).to_contain_text("Healthy")


def test_what_is_typed_filters_and_stays(scene: Scene, page: Page) -> None:
    page.goto(ADDRESS)
    page.get_by_placeholder("part of a name").fill("pending")
    rows = page.locator("#resources tbody tr:visible")
    expect(rows).to_have_count(1)
    scene.netns.ip("route del 203.0.113.0/24")
    expect(page.locator("table.events")).to_contain_text("repaired")
    expect(rows).to_have_count(1)


def test_events_come_live(scene: Scene, page: Page) -> None:
    page.goto(f"{ADDRESS}/events")
    expect(page.locator("#live")).to_have_text("live")
    for _ in range(2):
        before = page.locator("tr", has_text="203.0.113.0/24").count()
        delete_route(scene)
        fresh = page.locator("tr", has_text="203.0.113.0/24")
        expect(fresh).not_to_have_count(before)
    numbers = [int(text) for text in page.locator("tbody td:first-child").all_inner_texts()]
    assert numbers == sorted(set(numbers), reverse=True)


def test_times_are_those_of_the_router(scene: Scene, browser: Browser) -> None:
    """Wherever the browser is, those that come live go with those that were there."""
    page = browser.new_context(timezone_id="Asia/Kathmandu").new_page()
    let_in(page)
    page.goto(f"{ADDRESS}/events")
    expect(page.locator("#live")).to_have_text("live")
    delete_route(scene)
    fresh = page.locator("tr.new", has_text="repaired").first
    expect(fresh).to_be_visible()
    live = fresh.locator("td").nth(1).inner_text()
    expect(fresh).to_contain_text("(IPv4Route/lab)")
    page.reload()
    shown = page.locator("tbody tr", has_text="repaired").first
    expect(shown).to_contain_text(live)
    expect(shown).to_contain_text("(IPv4Route/lab)")
    expect(page.locator("footer")).to_contain_text(f"({time.strftime('%Z')})")


def test_a_daemon_that_is_gone_is_said(scene: Scene, page: Page, problems: list[str]) -> None:
    page.goto(f"{ADDRESS}/events")
    expect(page.locator("#live")).to_have_text("live")
    scene.daemon.end()
    expect(page.locator("#live")).to_have_text("not connected")
    until(lambda: heard(page, problems), "the browser says that the stream broke")
    page.close()
    problems.clear()


def test_conflicts_are_shown_with_what_to_do(scene: Scene, page: Page) -> None:
    scene.netns.ip("route del 203.0.113.0/24")
    scene.netns.ip("route add blackhole 203.0.113.0/25 proto static")
    text = CONFIG.replace("203.0.113.0/24", "203.0.113.0/25")
    scene.file.write_text(text)
    scene.daemon.wait_for("conflict")
    page.goto(f"{ADDRESS}/plan")
    row = page.locator("tr", has_text="203.0.113.0/25")
    expect(row.first).to_contain_text("static")
    expect(row.first).to_contain_text("type: blackhole, declared unicast")
    expect(row.first).to_contain_text("nexthops: (none), declared via 192.0.2.254")
    # One that cannot be adopted is not offered.
    expect(row).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_generations_and_what_changed(scene: Scene, page: Page) -> None:
    scene.file.write_text(CONFIG.replace("203.0.113.0/24", "198.51.100.0/24"))
    scene.daemon.wait_for("198.51.100.0/24")
    page.goto(f"{ADDRESS}/generations")
    page.get_by_role("link", name="what changed").first.click()
    diff = page.locator("pre.diff")
    expect(diff.locator(".removed", has_text="203.0.113.0/24")).to_be_visible()
    expect(diff.locator(".added", has_text="198.51.100.0/24")).to_be_visible()


def test_secrets_are_not_shown_anywhere(scene: Scene, page: Page) -> None:
    secret = "hunter2-and-more"  # noqa: S105 (of the test alone)
    text = CONFIG + (
        "    - apiVersion: net.holdfast.dev/v1alpha1\n"
        "      kind: PPPoEInterface\n"
        "      metadata: {name: dsl}\n"
        f"      spec: {{interface: wan, username: me, password: {secret}, managed: false}}\n"
    )
    scene.file.write_text(text)
    until(lambda: generations(scene) == 2, "another generation")
    page.goto(f"{ADDRESS}/generations")
    expect(page.locator("tbody tr")).to_have_count(2)
    for place in ("", "plan", "events", "generations/2", "generations/1/2", "api/v1/status",
                  "api/v1/plan", "api/v1/events", "api/v1/generations/2", "metrics"):  # fmt: skip
        page.goto(f"{ADDRESS}/{place}")
        assert secret not in page.content(), place
    page.goto(f"{ADDRESS}/generations/2")
    expect(page.locator("pre").first).to_contain_text("(not shown)")
    assert secret not in scene.daemon.said()


@pytest.mark.usefixtures("scene")
def test_names_of_others_are_text_and_not_markup(page: Page) -> None:
    """What a writer of a route calls itself must not become part of the page."""
    page.goto(f"{ADDRESS}/events?kind=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    expect(page.get_by_label("Kind")).to_have_value("<img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0


def test_whoever_types_goes_on_typing(scene: Scene, page: Page) -> None:
    """The page is fetched anew with every event."""
    page.goto(ADDRESS)
    page.get_by_label("Show").focus()
    page.keyboard.type("Ipv4")
    page.keyboard.press("ArrowLeft")
    page.evaluate("document.querySelector('#resources').dataset.old = 1")
    delete_route(scene)
    expect(page.locator("#resources[data-old]")).to_have_count(0)
    page.keyboard.type("v")
    expect(page.get_by_label("Show")).to_have_value("Ipvv4")
    link = page.locator("main a").first
    link.focus()
    page.evaluate("document.querySelector('#resources').dataset.old = 1")
    delete_route(scene)
    expect(page.locator("#resources[data-old]")).to_have_count(0)
    expect(page.locator("main a").first).to_be_focused()


def test_a_page_that_was_turned_away_comes_back(
    scene: Scene, page: Page, problems: list[str]
) -> None:
    taken = [socket.create_connection(("127.0.0.1", 9473), timeout=20) for _ in range(MOST_STREAMS)]
    for sock in taken:
        sock.sendall(
            b"GET /api/v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1:9473\r\n"
            b"Cookie: %s=%s\r\n\r\n" % (COOKIE.encode(), KEY.encode())
        )
        sock.recv(12)
    page.goto(ADDRESS)
    expect(page.locator("#live")).to_have_text("not connected")
    for sock in taken:
        sock.close()
    expect(page.locator("#live")).to_have_text("live")
    scene.netns.ip("route del 203.0.113.0/24")
    expect(page.locator("table.events")).to_contain_text("repaired")
    assert all("503" in one for one in problems)
    problems.clear()


@pytest.mark.usefixtures("scene")
def test_narrow_screens(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for place in ("", "plan", "events", "generations"):
        page.goto(f"{ADDRESS}/{place}")
        width = page.evaluate("document.documentElement.scrollWidth")
        page.screenshot(path=tmp_path / f"narrow-{place or 'home'}.png", full_page=True)
        assert width <= 390, place
