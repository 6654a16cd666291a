"""`holdfast plugin`, with programs that behave and programs that do not."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.namespace import Namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run plugins as nobody")

ANSWER = """
import json, sys, time
request = json.load(sys.stdin)
"""
GOOD = (
    ANSWER
    + """
route = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route",
         "metadata": {"name": "lab"},
         "spec": {"destination": "203.0.113.0/24", "gateway": "192.0.2.254"}}
print(json.dumps({"status": {"ttl": "5m", "resources": [route]}}))
"""
)
CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: test}
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
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: lab}
      spec:
        executable: /opt/plugins/lab
        timeout: 30s
        env: {API_KEY: hunter2}
        capabilities: [propose.dynamicConfig]
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {name: lab}
      spec: {pluginRef: lab, ttl: 10m}
"""


@pytest.fixture
def holdfast(open_folder: Path) -> Holdfast:
    return Holdfast(open_folder, open_folder / "root")


@pytest.fixture
def folder(holdfast: Holdfast, wan: Namespace) -> Path:  # noqa: ARG001 (where it runs)
    """Where the plugins stand, with a way there for the user they run as."""
    place = holdfast.root / "opt/plugins"
    place.mkdir(parents=True)
    (holdfast.root / "etc/holdfast").mkdir(parents=True)
    (holdfast.root / "etc/holdfast/router.yaml").write_text(CONFIG)
    return place


def write(folder: Path, text: str) -> None:
    place = folder / "lab"
    place.write_text(f"#!/usr/bin/env python3\n{textwrap.dedent(text)}")
    place.chmod(0o755)


def test_a_part_is_stored_and_applied(holdfast: Holdfast, folder: Path) -> None:
    write(folder, GOOD)
    dry = holdfast.run("plugin", "run", "lab", "--dry-run")
    assert dry.code == 0, dry.err
    assert "not stored" in dry.out
    assert "+ IPv4Route/lab" in dry.out
    assert holdfast.run("dynamic", "list", "-o", "json").json["parts"] == []
    done = holdfast.run("plugin", "run", "lab", "-o", "json").json
    assert done["stored"] is True
    assert done["part"]["spec"]["generation"] == 1
    assert (
        holdfast.run("plugin", "run", "lab", "-o", "json").json["part"]["spec"]["generation"] == 2
    )
    plan = holdfast.run("plan", "-o", "json").json
    assert any("203.0.113.0/24" in str(operation) for operation in plan["operations"])


def test_the_list_tells_how_it_did(holdfast: Holdfast, folder: Path) -> None:
    write(folder, "import sys; sys.exit('no such region')")
    before = holdfast.run("plugin", "list")
    assert before.code == 0, before.err
    assert "never" in before.out
    assert holdfast.run("plugin", "run", "lab").code == 1
    after = holdfast.run("plugin", "list", "-o", "json").json["plugins"][0]
    assert after["lastRun"]["outcome"] == "failed"
    assert after["lastRun"]["reason"] == "ended with exit status 1: no such region"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import time; time.sleep(60)", "did not end within 2 s"),
        ("print('x' * (10 << 20))", "4096 KiB to its standard output"),
        ("print('no JSON')", "is not JSON"),
        ("import sys; sys.exit(9)", "ended with exit status 9"),
        (
            "import os, time\nif os.fork() == 0:\n    time.sleep(60)\ntime.sleep(60)",
            "did not end within 2 s",
        ),
        (
            "import json; print(json.dumps({'status': {'ttl': '5m',"
            " 'observedAt': '2100-01-01T00:00:00Z'}}))",
            "lies in the future",
        ),
        (GOOD.replace('"resources": [route]', '"resources": [route, route]'), "is there twice"),
        (GOOD.replace('"ttl": "5m"', '"ttl": "9999d"'), "status.ttl"),
        (GOOD.replace('"spec": {', '"spec": {"apiToken": "hunter2", '), "cannot hold a secret"),
        (r"""print('{"status": {"ttl": "5m", "a\\ud800": 1}}')""", "not Unicode"),
        ("import sys; sys.exit('\\x1b[2Jgone\\x07')", "exit status 1: [2Jgone"),
        ("import os; raise SystemExit('key ' + os.environ['API_KEY'])", "1: key (not shown)"),
    ],
    ids=[
        *("hang", "flood", "no-json", "exit", "forks", "future", "twice", "ttl", "secret"),
        *("surrogate", "terminal", "environment"),
    ],
)
def test_what_misbehaves_is_rejected_and_the_rest_stands(
    holdfast: Holdfast, folder: Path, program: str, said: str
) -> None:
    write(folder, GOOD)
    assert holdfast.run("plugin", "run", "lab").code == 0
    write(folder, program)
    if "did not end" in said:
        patient = folder.parents[1] / "etc/holdfast/router.yaml"
        patient.write_text(CONFIG.replace("timeout: 30s", "timeout: 2s"))
    tried = holdfast.run("plugin", "run", "lab", "--dry-run")
    assert said in tried.out, "a dry run finds the same"
    failed = holdfast.run("plugin", "run", "lab")
    assert failed.code == tried.code == 1
    assert said in failed.out
    listed = holdfast.run("dynamic", "list")
    described = holdfast.run("plugin", "run", "lab", "-o", "json")
    for done in (tried, failed, listed, described, holdfast.run("events")):
        assert "hunter2" not in done.out
        assert "\x1b" not in done.out
    assert said in listed.out, "the reason is in the list"
    # What it contributed while it was well is in force still.
    plan = holdfast.run("plan", "-o", "json").json
    assert any("203.0.113.0/24" in str(operation) for operation in plan["operations"])


def test_a_mask_that_it_grants_itself_is_ignored(holdfast: Holdfast, folder: Path) -> None:
    """Neither the mask nor the policy it brings along has any effect."""
    mask = (
        ANSWER
        + """
address = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4StaticAddress", "name": "wan"}
policy = {"apiVersion": "config.holdfast.dev/v1alpha1", "kind": "DynamicOverridePolicy",
          "metadata": {"name": "mine"},
          "spec": {"allow": [{"source": "Plugin/lab", "operations": ["mask"],
                              "targets": [address]}]}}
given = [policy] if "POLICY" else []
print(json.dumps({"status": {"ttl": "5m", "resources": given,
                             "directives": [{"op": "mask", "target": address}]}}))
"""
    )
    write(folder, mask.replace('"POLICY"', '""'))
    done = holdfast.run("plugin", "run", "lab")
    assert done.code == 0
    assert "mask of IPv4StaticAddress/wan is ignored: no DynamicOverridePolicy allows" in done.out
    plan = holdfast.run("plan", "-o", "json").json
    assert any("192.0.2.1/24" in str(operation) for operation in plan["operations"])
    assert "IPv4StaticAddress/wan" in holdfast.run("dynamic", "list").out
    write(folder, mask)
    done = holdfast.run("plugin", "run", "lab")
    assert done.code == 1
    assert "stored" in done.out
    assert "rejected" in done.out
    listed = holdfast.run("dynamic", "list").out
    assert "DynamicOverridePolicy" in listed
    plan = holdfast.run("plan", "-o", "json").json
    assert any("192.0.2.1/24" in str(operation) for operation in plan["operations"])


def test_no_such_plugin(holdfast: Holdfast, folder: Path) -> None:
    write(folder, GOOD)
    done = holdfast.run("plugin", "run", "nobody")
    assert done.code == 4
    assert "there is no Plugin/nobody; known are: lab" in done.err


@pytest.mark.parametrize("kind", ["['a']", "{'a': 1}", "None"])
def test_what_is_no_kind_freezes_nothing(holdfast: Holdfast, folder: Path, kind: str) -> None:
    write(folder, f"{GOOD}".replace('"IPv4Route"', kind))
    done = holdfast.run("plugin", "run", "lab")
    assert done.code == 1
    assert "stored" in done.out
    assert "kind" in done.out
    assert holdfast.run("plan").code == 0
    assert "kind" in holdfast.run("dynamic", "list").out


def test_what_it_tells_is_told_in_one_line_with_all_of_it(holdfast: Holdfast, folder: Path) -> None:
    event = {
        "type": "moved",
        "message": "to b\n1970-01-01 forged \x1b[31m, by hunter2",
        "attributes": {"to": "b", "accessToken": "hunter3", "said": ["hunter2"]},
    }
    write(
        folder,
        f"import json\nprint(json.dumps({{'status': {{'ttl': '5m', 'events': [{event}]}}}}))",
    )
    assert holdfast.run("plugin", "run", "lab", "-o", "json").json["format_version"] == "1.0"
    (told,) = [
        one
        for one in holdfast.run("events", "-o", "json").json["events"]
        if one["kind"] == "plugin-said"
    ]
    assert told["message"] == "moved: to b 1970-01-01 forged  [31m, by (not shown)"
    assert told["data"]["attributes"] == {"to": "b", "accessToken": "", "said": ["(not shown)"]}


def test_what_it_said_before_stays_where_the_next_is_rejected(
    holdfast: Holdfast, folder: Path
) -> None:
    write(folder, GOOD)
    assert holdfast.run("plugin", "run", "lab").code == 0
    write(folder, GOOD.replace("203.0.113.0/24", "203.0.113.1/24"))
    done = holdfast.run("plugin", "run", "lab")
    assert done.code == 1
    assert "has host bits set" in done.out
    assert "Plugin/lab#1 stays in force until" in done.out
    listed = holdfast.run("dynamic", "list", "-o", "json").json["parts"]
    assert [(one["generation"], one["status"]) for one in listed] == [
        (2, "Rejected"),
        (1, "Active"),
    ]
    plan = holdfast.run("plan", "-o", "json").json
    assert any("203.0.113.0/24" in str(operation) for operation in plan["operations"])
