"""`plan`, its document, and stored plans."""

from __future__ import annotations

import hashlib
import json
import stat
import subprocess
from pathlib import Path

import yaml

from holdfast.paths import Paths
from tests.cli.conftest import WAN, WAN_ADDRESS, Done, Holdfast, route
from tests.namespace import Namespace

GOLDEN = """\
In this order:

   ~ link wan0
      up  no → yes
      Interface/wan (router.yaml:6:7): up differs
      proof: a setting: it always exists, and setting it is what was declared
   + address 192.0.2.1/24 dev wan0
      IPv4StaticAddress/wan (router.yaml:10:7): declared and not there
   + route 10.1.0.0/16 via 192.0.2.254 dev wan0
   + route 10.2.0.0/16 via 192.0.2.254 dev wan0
   + route 10.3.0.0/16 via 192.0.2.254 dev wan0
     … and 1 more
      RouteList/list (router.yaml:14:7): declared and not there
   + route 0.0.0.0/0 via 192.0.2.254 dev wan0
      IPv4Route/default (router.yaml:18:7): declared and not there
      risk high: sends what no other route matches this way

Plan: 6 to create, 1 to update.
"""
LIST = (
    "RouteList",
    "list",
    "{gateway: 192.0.2.254, interface: wan,"
    " routes: [10.1.0.0/16, 10.2.0.0/16, 10.3.0.0/16, 10.4.0.0/16]}",
)


def test_a_first_plan_reads_like_this(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST, route("default", "default"))
    assert holdfast.ok("plan", "router.yaml").out == GOLDEN
    assert not wan.ip_json("route show")
    assert not Paths(holdfast.root).state_dir.exists(), "a plan leaves no trace"


def test_detailed_exitcode(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    assert holdfast.run("plan", "router.yaml", "--detailed-exitcode").code == 2
    assert holdfast.run("plan", "router.yaml").code == 0
    holdfast.ok("apply", "router.yaml", "--yes")
    assert holdfast.run("plan", "router.yaml", "--detailed-exitcode").code == 0
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_the_document(holdfast: Holdfast, wan: Namespace) -> None:
    path = holdfast.declare(WAN, WAN_ADDRESS, LIST)
    document = holdfast.ok("plan", "router.yaml", "-o", "json").json
    assert document == yaml.safe_load(holdfast.ok("plan", "router.yaml", "-o", "yaml").out)
    assert document["format_version"] == "1.0"
    assert document["config"] == {
        "path": str(path),
        "files": [{"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }
    assert document["summary"]["create"] == 5
    first, *_, last = document["operations"]
    assert first["action"] == "update"
    assert first["changes"] == [{"field": "up", "before": False, "after": True}]
    assert last["action"] == "create"
    assert last["artifact"] == {"kind": "route", "name": "10.4.0.0/16"}
    assert last["owners"] == ["RouteList/list"]
    assert last["origin"] == f"{path}:14:7"
    assert {"kind": "link", "name": "wan0"} in last["requires"]
    assert len(document["operations"]) == 6
    assert not wan.ip_json("route show")


def test_kept_artifacts_are_in_the_document_and_only_counted_for_people(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    holdfast.ok("apply", "router.yaml", "--yes")
    done = holdfast.ok("plan", "router.yaml")
    assert done.out == "Plan: nothing to do; 6 artifacts as declared.\n"
    document = holdfast.ok("plan", "router.yaml", "-o", "json").json
    assert {entry["action"] for entry in document["operations"]} == {"keep"}
    assert len(wan.ip_json("route show proto 72")) == 4


def test_the_digest_is_the_same_until_something_changes(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    first = _digest(holdfast)
    assert _digest(holdfast) == first
    wan.ip("link set wan0 mtu 1400")
    assert _digest(holdfast) != first
    wan.ip("link set wan0 mtu 1500")
    assert _digest(holdfast) == first
    with (holdfast.folder / "router.yaml").open("a") as stream:
        stream.write("# a comment\n")
    assert _digest(holdfast) != first


def test_a_stored_plan_is_applied_without_a_question(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    done = holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    assert "Stored in the.plan" in done.out
    stored = holdfast.folder / "the.plan"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert json.loads(stored.read_text())["root"] == str(holdfast.root)
    assert "Converged: 6" in holdfast.ok("apply", "the.plan").out
    assert len(wan.ip_json("route show proto 72")) == 4


def test_a_stored_plan_is_found_from_any_folder(
    holdfast: Holdfast, wan: Namespace, tmp_path: Path
) -> None:
    holdfast.declare(WAN)
    holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    elsewhere = Holdfast(tmp_path, holdfast.root)
    elsewhere.ok("apply", str(holdfast.folder / "the.plan"))
    assert "UP" in wan.ip_json("link show dev wan0")[0]["flags"]


def test_a_plan_is_stale_when_the_configuration_changed(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    _refused(holdfast.run("apply", "the.plan"), "router.yaml changed")
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]


def test_a_plan_is_stale_when_the_host_changed(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    wan.ip("link set wan0 up")
    wan.ip("link set wan0 mtu 1400")
    for words in (("apply", "the.plan"), ("apply", "the.plan", "--dry-run")):
        done = holdfast.run(*words)
        _refused(done, "no longer to do: update link wan0 (up no → yes)")
        assert "to do besides: update link wan0 (mtu 1400 → 1500)" in done.err
    assert not wan.ip_json("-4 addr show dev wan0")


def test_an_edited_plan_is_not_taken_for_what_was_planned(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    stored = holdfast.folder / "the.plan"
    data = json.loads(stored.read_text())
    data["operations"].pop()
    stored.write_text(json.dumps(data))
    _refused(holdfast.run("apply", "the.plan"), "to do besides: create address 192.0.2.1/24")
    data["operations"][0].pop("fields")
    stored.write_text(json.dumps(data))
    _refused(holdfast.run("apply", "the.plan"), "not a whole plan ('fields')")
    data["format_version"] = "2.0"
    stored.write_text(json.dumps(data))
    _refused(holdfast.run("apply", "the.plan"), "this plan has format 2.0")
    assert not wan.ip_json("addr show dev wan0")[0]["addr_info"]


def test_a_plan_for_another_root_is_refused(
    holdfast: Holdfast, wan: Namespace, tmp_path: Path
) -> None:
    holdfast.declare(WAN)
    holdfast.ok("plan", "router.yaml", "--out", "the.plan")
    other = Holdfast(holdfast.folder, tmp_path / "other")
    _refused(other.run("apply", "the.plan"), "was made with --root")
    assert "UP" not in wan.ip_json("link show dev wan0")[0]["flags"]


def test_colour_is_for_terminals_and_those_who_force_it(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    assert "\x1b" not in holdfast.run("plan", "router.yaml").out
    assert "\x1b[1;33m" in holdfast.run("plan", "router.yaml", CLICOLOR_FORCE="1").out
    done = holdfast.run("plan", "router.yaml", CLICOLOR_FORCE="1", NO_COLOR="1")
    assert "\x1b" not in done.out
    assert wan.ip_json("link show dev wan0")


def test_an_ascii_terminal_gets_a_plan_too(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    done = holdfast.start_and_wait("plan", "router.yaml", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert "up  no ? yes" in done.out
    assert wan.ip_json("link show dev wan0")


def test_whoever_stops_reading_hears_nothing(holdfast: Holdfast, wan: Namespace) -> None:
    lines = (f"10.{i >> 8}.{i & 255}.0/24\n" for i in range(5000))
    (holdfast.folder / "routes.txt").write_text("".join(lines))
    spec = "{gateway: 192.0.2.254, interface: wan, file: routes.txt}"
    holdfast.declare(WAN, WAN_ADDRESS, ("RouteList", "many", spec))
    process = subprocess.Popen(
        holdfast.arguments("plan", "router.yaml", "-o", "json"),
        cwd=holdfast.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert wan.ip_json("link show dev wan0")


def test_what_cannot_be_observed_is_no_plan_to_rely_on(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, LIST)
    holdfast.ok("apply", "router.yaml", "--yes")
    # The kernel lets nobody read this setting, not even root.
    holdfast.declare(WAN, ("Sysctl", "flush", '{key: net.ipv4.route.flush, value: "1"}'))
    done = holdfast.run("plan", "router.yaml", "--detailed-exitcode")
    assert done.code == 1
    assert "Could not be observed:\n  sysctl: sysctl net.ipv4.route.flush" in done.out
    assert "kept: not everything could be observed, so nothing is deleted" in done.out
    assert holdfast.run("apply", "router.yaml", "--yes").code == 1
    assert len(wan.ip_json("route show proto 72")) == 4


def _digest(holdfast: Holdfast) -> str:
    digest: str = holdfast.ok("plan", "router.yaml", "-o", "json").json["digest"]
    return digest


def _refused(done: Done, because: str) -> None:
    assert done.code == 4
    assert because in done.err
    assert "make" in done.err or "nothing was touched" in done.err
