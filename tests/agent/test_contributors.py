"""Plugins and what they propose, in a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import sockets
from holdfast.api.client import Client, connected
from holdfast.errors import Refused
from holdfast.paths import Paths
from tests.agent.daemon import Daemon, serve
from tests.agent.two_providers import until
from tests.namespace import Namespace
from tests.safety.router_scene import document

LONG = 120.0
ROUTER = {
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
}
PLUGIN = """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: lab}
      spec:
        executable: /opt/lab
        capabilities: [propose.dynamicConfig]
        triggers: [{type: interval, every: 1h}]
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: DynamicConfigSource
      metadata: {name: lab}
      spec: {pluginRef: lab, ttl: 10m}
"""
# What it contributes is in a file beside it.
PROGRAM = """\
#!/usr/bin/env python3
import json, sys
json.load(sys.stdin)
destination = open(sys.path[0] + "/destination").read().strip()
route = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route",
         "metadata": {"name": "lab"},
         "spec": {"destination": destination, "gateway": "192.0.2.254", "interface": "wan"}}
print(json.dumps({"status": {"ttl": "5m", "resources": [route]}}))
"""


@pytest.fixture
def root(open_folder: Path) -> Path:
    return open_folder


@pytest.fixture
def daemon(netns: Namespace, root: Path) -> Iterator[Daemon]:
    netns.veth("wan0", "far0")
    (root / "opt").mkdir()
    (root / "opt/destination").write_text("10.5.0.0/16")
    (root / "opt/lab").write_text(PROGRAM)
    (root / "opt/lab").chmod(0o755)
    file = root / "router.yaml"
    file.write_text(document(ROUTER) + PLUGIN)
    with serve(root, file) as running:
        yield running


@pytest.fixture
def client(daemon: Daemon, root: Path) -> Iterator[Client]:
    daemon.wait_for("because of the start")
    with sockets.folder(Paths(root)) as folder, connected(f"{folder}/holdfast.sock") as made:
        yield made


def test_a_plugin_runs_by_itself_and_when_asked(
    netns: Namespace, root: Path, client: Client
) -> None:
    until(lambda: bool(netns.ip_json("route show 10.5.0.0/16")), "the route of the plugin")
    listed = client.ask("Plugins.List", pb.ListPluginsRequest(), pb.Document, LONG)
    (entry,) = json.loads(listed.data)["plugins"]
    assert entry["lastRun"]["outcome"] == "stored"
    assert entry["lastRun"]["trigger"] == "interval"
    (root / "opt/destination").write_text("10.6.0.0/16")
    dry = client.ask(
        "Plugins.Run", pb.RunPluginRequest(name="lab", dry_run=True), pb.Document, LONG
    )
    assert json.loads(dry.data)["stored"] is False
    assert netns.ip_json("route show 10.5.0.0/16")
    done = client.ask("Plugins.Run", pb.RunPluginRequest(name="lab"), pb.Document, LONG)
    assert json.loads(done.data)["stored"] is True
    until(lambda: bool(netns.ip_json("route show 10.6.0.0/16")), "the other route")
    # It goes after the other one has come.
    until(lambda: not netns.ip_json("route show 10.5.0.0/16"), "the first route is gone")


def test_one_that_fails_is_said_and_the_rest_stands(
    netns: Namespace, root: Path, client: Client, daemon: Daemon
) -> None:
    until(lambda: bool(netns.ip_json("route show 10.5.0.0/16")), "the route of the plugin")
    (root / "opt/destination").unlink()
    done = client.ask("Plugins.Run", pb.RunPluginRequest(name="lab"), pb.Document, LONG)
    assert done.exit_code == 1
    assert "FileNotFoundError" in json.loads(done.data)["outcome"]["error"]
    daemon.wait_for("Plugin/lab failed")
    assert netns.ip_json("route show 10.5.0.0/16")
    with pytest.raises(Refused, match="there is no Plugin/other; known are: lab"):
        client.ask("Plugins.Run", pb.RunPluginRequest(name="other"), pb.Document, LONG)


LISTENER = """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: listener}
      spec:
        executable: /opt/listener
        triggers: [{type: event, topic: repaired}]
        context:
          resources:
            - {apiVersion: net.holdfast.dev/v1alpha1, kind: IPv4StaticAddress, name: wan}
"""
WRITES_DOWN = """\
#!/usr/bin/env python3
import json, sys
with open(sys.path[0] + "/heard/request", "w") as stream:
    stream.write(sys.stdin.read())
print(json.dumps({"status": {"ttl": "5m"}}))
"""


def test_an_event_triggers_one_and_it_is_told_what_its_context_names(
    netns: Namespace, root: Path
) -> None:
    netns.veth("wan0", "far0")
    (root / "opt/heard").mkdir(parents=True)
    (root / "opt/heard").chmod(0o777)
    (root / "opt/listener").write_text(WRITES_DOWN)
    (root / "opt/listener").chmod(0o755)
    file = root / "router.yaml"
    file.write_text(document(ROUTER) + LISTENER)
    heard = root / "opt/heard/request"
    with serve(root, file) as daemon:
        daemon.wait_for("because of the start")
        assert not heard.exists(), "nothing happened that it waits for"
        netns.ip("addr del 192.0.2.1/24 dev wan0")
        until(lambda: heard.exists() and heard.read_text().endswith("}"), daemon.said())
        asked = json.loads(heard.read_text())["spec"]
        assert asked["trigger"] == {"type": "event", "topic": "repaired"}
        assert asked["events"][0]["attributes"]["subject"] == "address 192.0.2.1/24 dev wan0"
        (shown,) = asked["context"]["resources"]
        assert (shown["kind"], shown["name"]) == ("IPv4StaticAddress", "wan")
        assert shown["spec"] == {"interface": "wan", "address": "192.0.2.1/24"}
        assert daemon.end() == 0


SPEAKER = PLUGIN.replace("name: lab}", "name: speaker}").replace("/opt/lab", "/opt/speaker")
SPEAKS = """\
#!/usr/bin/env python3
import json
print(json.dumps({"status": {"ttl": "5m", "events": [
    {"type": "moved", "message": "away", "attributes": {"to": "b"}}]}}))
"""


def test_what_one_plugin_tells_triggers_another(netns: Namespace, root: Path) -> None:
    netns.veth("wan0", "far0")
    (root / "opt/heard").mkdir(parents=True)
    (root / "opt/heard").chmod(0o777)
    for name, text in (("listener", WRITES_DOWN), ("speaker", SPEAKS)):
        (root / "opt" / name).write_text(text)
        (root / "opt" / name).chmod(0o755)
    file = root / "router.yaml"
    speaker = SPEAKER.replace("pluginRef: lab", "pluginRef: speaker")
    file.write_text(
        document(ROUTER) + LISTENER.replace("topic: repaired", "topic: plugin-said") + speaker
    )
    heard = root / "opt/heard/request"
    with serve(root, file) as daemon:
        until(lambda: heard.exists() and heard.read_text().endswith("}"), daemon.said())
        (event,) = json.loads(heard.read_text())["spec"]["events"]
        assert event["attributes"]["subject"] == "Plugin/speaker"
        assert event["attributes"]["attributes"] == {"to": "b"}
        assert daemon.end() == 0
