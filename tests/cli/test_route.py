"""`holdfast route` and the example of its client, at a real daemon."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.api import sockets
from holdfast.api.tokens import digest_of
from holdfast.paths import Paths
from holdfast.resources.dynamic.tokens import as_declared
from tests.agent.two_providers import until
from tests.cli.conftest import Done, Holdfast
from tests.cli.served import daemon
from tests.docs import markdown
from tests.namespace import Namespace
from tests.resources.parts import admitting

EXAMPLE = markdown.ROOT / "docs" / "examples" / "advertise_while_healthy.py"
TOKENS = {"edge": "edge-token-0123456789", "net": "net-token-0123456789"}


def owner(name: str) -> tuple[str, str, str]:
    kind, called, spec = admitting(f"Owner/{name}", tokens=[as_declared(digest_of(TOKENS[name]))])
    return kind, called, json.dumps(spec)


@pytest.fixture
def served(holdfast: Holdfast, netns: Namespace) -> Iterator[Holdfast]:
    assert netns
    with daemon(holdfast, holdfast.declare(owner("edge"), owner("net"))):
        yield holdfast


def route(holdfast: Holdfast, *words: str, who: str = "edge", stdin: str = "") -> Done:
    environment = {"HOLDFAST_TOKEN": TOKENS[who]} if who else {}
    return holdfast.run("route", *words, stdin=stdin, **environment)


def prefixes(holdfast: Holdfast) -> list[tuple[str, str]]:
    found = route(holdfast, "prefixes", "-o", "json", who="").json["prefixes"]
    return [(one["prefix"], one["owner"]) for one in found]


def test_it_declares_shows_and_withdraws(served: Holdfast) -> None:
    assert route(served, "advertise", "10.1.0.0/16", "--med", "0").code == 0
    assert prefixes(served) == [("10.1.0.0/16", "edge")]
    again = route(served, "advertise", "10.1.0.0/16", "--med", "0")
    assert again.out == "BGPPrefix/prefix-10.1.0.0-16: unchanged\n"
    table = route(served, "status", who="")
    assert table.code == 0 and "FRR does not answer" in table.out and "10.1.0.0/16" in table.out
    other = route(served, "prefixes", "--owner", "net", "-o", "json", who="")
    assert other.json["prefixes"] == []
    assert route(served, "withdraw", "10.1.0.0/16").code == 0
    assert prefixes(served) == []


def events(holdfast: Holdfast) -> list[str]:
    done = route(holdfast, "events", "-o", "json", who="")
    assert done.code == 0, done.err
    return [json.loads(line)["type"] for line in done.out.splitlines()]


def test_what_is_refused_fails_the_command(served: Holdfast) -> None:
    assert route(served, "advertise", "10.1.0.0/16").code == 0
    held = route(served, "advertise", "10.1.0.0/16", who="net")
    assert held.code == 1 and "ALREADY_EXISTS" in held.err and "Owner/edge" in held.err
    nobody = served.run("route", "advertise", "10.2.0.0/16")
    assert nobody.code != 0 and "HOLDFAST_TOKEN" in nobody.err
    others = {"HOLDFAST_TOKEN": "nobody-has-this-one"}
    wrong = served.run("route", "advertise", "10.2.0.0/16", **others)
    assert wrong.code != 0 and "token" in wrong.err
    nothing = route(served, "withdraw", "10.9.0.0/16")
    assert nothing.code == 1 and "NOT_FOUND" in nothing.err
    ospf = {"put": [{"ospf": {"interface_name": "eth9", "area_id": "0"}}]}
    unknown = route(served, "apply", "-f", "-", stdin=json.dumps(ospf))
    assert unknown.code == 1 and "eth9" in unknown.err
    assert prefixes(served) == [("10.1.0.0/16", "edge")]
    until(lambda: "POLICY_VIOLATION" in events(served), "the event")


def test_a_file_is_declared_in_one_step(served: Holdfast, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKENS["net"] + "\n")
    listed = [{"prefix": {"prefix": f"10.{n}.0.0/16", "protocol": "PROTOCOL_BGP"}} for n in (1, 2)]
    words = ("route", "--token-file", str(token), "apply", "-f", "-")
    dry = served.run(*words, "--dry-run", stdin=json.dumps({"put": listed}))
    assert dry.code == 0 and prefixes(served) == []
    spoilt = json.dumps({"put": [*listed, {"prefix": {"prefix": "no", "protocol": 1}}]})
    assert served.run(*words, stdin=spoilt).code == 1
    assert prefixes(served) == []
    assert served.run(*words, "--each", stdin=spoilt).code == 1
    assert sorted(prefixes(served)) == [("10.1.0.0/16", "net"), ("10.2.0.0/16", "net")]


def test_a_link_to_the_socket_is_as_good(served: Holdfast, tmp_path: Path) -> None:
    link = tmp_path / "novaroute.sock"
    link.symlink_to(served.root / "run/holdfast/routes.sock")
    with sockets.folder(Paths(served.root)):
        done = route(served, "--socket", os.path.relpath(link, served.folder), "prefixes", who="")
    assert done.code == 0, done.err


def test_the_example_advertises_while_a_connection_can_be_made(served: Holdfast) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = str(service.getsockname()[1])
        with sockets.folder(Paths(served.root)) as folder:
            short = folder.replace("self", str(os.getpid()))
            words = ("edge", "192.0.2.10/32", "127.0.0.1", port, f"{short}/routes.sock")
            agent = subprocess.Popen(
                [sys.executable, str(EXAMPLE), *words],
                env=served.environment(HOLDFAST_TOKEN=TOKENS["edge"]),
            )
            try:
                until(lambda: prefixes(served) == [("192.0.2.10/32", "edge")], "the address")
                service.close()
                until(lambda: prefixes(served) == [], "the address to go")
            finally:
                agent.kill()
                agent.wait()
