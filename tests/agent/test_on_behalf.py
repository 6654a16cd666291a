"""What a program that we run brought, by what is known of its session."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Fields, Key
from holdfast.engine.observed import Sighting
from holdfast.render.explain.on_behalf import who_made
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Facts, Gone, Lease
from holdfast.runtime.load import Loaded
from tests.resources.routers import load

SESSION = Lease((IPv4Interface("198.51.100.5/32"),))


def _told(
    folder: Path, session: Lease | Gone, kind: str, name: str, fields: Fields, holder: str
) -> str:
    router = load(
        folder,
        ("Interface", "wan", {"ifname": "eth0"}),
        (
            "PPPoEInterface",
            "isp",
            {"interface": "wan", "ifname": "ppp0", "username": "u", "password": "p"},
        ),
    )
    facts = Facts(sessions={"ppp0": session})
    loaded = Loaded(folder, router, "", facts, compile_router(router, facts))
    key = Key(kind, name)
    return who_made(loaded, facts, key, [Sighting(Artifact(key, fields), holder=holder)])


@pytest.mark.parametrize(
    ("kind", "name", "holder"),
    [
        ("address", "198.51.100.5/32 dev ppp0", "protocol 0"),
        ("route", "0.0.0.0/0", "protocol boot"),
    ],
)
def test_what_pppd_brought(tmp_path: Path, kind: str, name: str, holder: str) -> None:
    fields: Fields = {"nexthops": ("dev ppp0",)} if kind == "route" else {}
    told = _told(tmp_path, SESSION, kind, name, fields, holder)
    assert told == "pppd made it, for PPPoEInterface/isp"
    assert _told(tmp_path, GONE, kind, name, fields, holder) == ""


def test_what_others_made_on_our_links(tmp_path: Path) -> None:
    fields: Fields = {"nexthops": ("via 192.0.2.9 dev eth0",)}
    assert _told(tmp_path, SESSION, "route", "10.0.0.0/8", fields, "protocol bird") == ""
    assert _told(tmp_path, SESSION, "address", "10.9.0.1/24 dev eth0", {}, "protocol 0") == ""
