"""A daemon with a console, and a browser that looks at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.agent.daemon import Daemon, serve
from tests.namespace import Namespace

CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: branch-7}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan0, adminUp: true}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: wan}
      spec: {interface: wan, address: 192.0.2.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: lab}
      spec: {destination: 203.0.113.0/24, gateway: 192.0.2.254}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: spare}
      spec: {ifname: spare0, adminUp: true}
"""
ADDRESS = "http://127.0.0.1:9473"
COOKIE = "holdfast-9473"
KEY = f"of-the-tests-{'x' * 30}"
# How long a browser and a daemon take for something is up to the machine.
expect.set_options(timeout=60_000)


@dataclass(frozen=True, slots=True)
class Scene:
    netns: Namespace
    daemon: Daemon
    file: Path
    root: Path


def keep_key(root: Path) -> None:
    """As a daemon before this one would have left it."""
    place = root / "run/holdfast/console.key"
    place.parent.mkdir(parents=True)
    place.write_text(f"{KEY}\n")
    place.chmod(0o600)


def let_in(page: Page) -> None:
    page.context.add_cookies([{"name": COOKIE, "value": KEY, "url": ADDRESS}])


@pytest.fixture
def scene(netns: Namespace, root: Path) -> Iterator[Scene]:
    root.mkdir()
    netns.ip("link set lo up")
    netns.ip("link add wan0 type veth peer name isp0")
    netns.ip("link set isp0 up")
    file = root / "router.yaml"
    file.write_text(CONFIG)
    keep_key(root)
    with serve(root, file) as daemon:
        daemon.wait_for("converged")
        yield Scene(netns, daemon, file, root)


@pytest.fixture
def browser(netns: Namespace) -> Iterator[Browser]:  # noqa: ARG001 (where it runs)
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def problems() -> list[str]:
    """What the browser complained of."""
    return []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """One that has the key. Whatever goes wrong in the page fails the test."""
    page = browser.new_page()
    let_in(page)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield page
    assert problems == []
