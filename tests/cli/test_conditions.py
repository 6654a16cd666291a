"""What `status` says of resources that have no artifacts: a check that nobody has asked yet, and a
plugin whose runs fail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.cli.test_plugin import CONFIG, GOOD, write
from tests.namespace import Namespace

CHECK = ("HealthCheck", "far", "{target: 192.0.2.254, interface: wan}")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run plugins as nobody")


def _told(holdfast: Holdfast, resource: str, *file: str) -> dict[str, Any]:
    told = holdfast.run("status", "-o", "json", *file).json
    found: dict[str, Any] = next(one for one in told["resources"] if one["resource"] == resource)
    return found


@pytest.mark.usefixtures("wan")
def test_a_check_that_was_never_probed_is_unknown(holdfast: Holdfast) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, CHECK)
    holdfast.ok("apply", "router.yaml", "--yes")
    told = _told(holdfast, "HealthCheck/far", "router.yaml")
    assert told["phase"] == "Unknown"
    assert "there is no verdict yet" in told["reason"]
    assert "Unknown" in holdfast.ok("explain", "HealthCheck/far", "router.yaml").out
    assert holdfast.ok("status", "router.yaml").out.count("Unknown") == 2, "the host is as declared"


@needs_root
@pytest.mark.parametrize("reach", ["missing", "shut", "failing"])
def test_a_plugin_that_fails_is_degraded(open_folder: Path, wan: Namespace, reach: str) -> None:
    """Its program is not there, or in a folder that is shut to its user, or it says why."""
    holdfast = Holdfast(open_folder, open_folder / "root")
    wan.ip("link set lo up")
    folder, config = holdfast.root / "opt/plugins", holdfast.root / "etc/holdfast/router.yaml"
    folder.mkdir(parents=True)
    config.parent.mkdir(parents=True)
    often = "ttl: 10m, triggers: [{type: interval, every: 1s}]"
    config.write_text(CONFIG.replace("ttl: 10m", often))
    if reach != "missing":
        write(folder, GOOD if reach == "shut" else "import sys; sys.exit('no /srv/sites.json')")
    if reach == "shut":
        folder.chmod(0o700)
    with serve(holdfast.root, config) as running:
        running.wait_for("degraded: Plugin/lab: its last run failed")
        assert _told(holdfast, "Plugin/lab")["phase"] == "Degraded"
        reason = _told(holdfast, "Plugin/lab")["reason"]
        assert ("/srv/sites.json" if reach == "failing" else "/opt/plugins") in reason, reason
        assert _told(holdfast, "DynamicConfigSource/lab")["phase"] == "Degraded"
        assert holdfast.run("status").code == 1
        assert f"Degraded ({reason})" in holdfast.run("explain", "Plugin/lab").out
        until(lambda: "holdfast_troubles 1.0" in _metrics(), "the trouble")
        folder.chmod(0o755)
        write(folder, GOOD)
        until(lambda: _told(holdfast, "Plugin/lab")["phase"] == "Healthy", running.said())
        until(lambda: "holdfast_troubles 0.0" in _metrics(), "no trouble")


SINK = ("LogSink", "mine", "{type: plugin, plugin: {path: /opt/sink}}")


@needs_root
@pytest.mark.parametrize("reach", ["theirs", "failing"])
def test_a_log_sink_whose_program_gets_nothing_is_degraded(
    open_folder: Path, wan: Namespace, reach: str
) -> None:
    holdfast = Holdfast(open_folder, open_folder / "root")
    wan.ip("link set lo up")
    program = holdfast.root / "opt/sink"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n" + ("echo no room >&2; exit 3\n" if reach == "failing" else ""))
    program.chmod(0o755)
    file = holdfast.declare(WAN, WAN_ADDRESS, SINK)
    if reach == "failing":
        holdfast.ok("apply", str(file), "--yes")
    else:
        os.chown(program.parent, 1000, 1000)
        for words in (("validate", "--on-host"), ("plan",), ("apply", "--yes")):
            done = holdfast.run(*words, str(file))
            assert done.code == 3
            assert "spec.plugin.path: is not run: the folder" in done.err
        assert "is not run: the folder" in holdfast.ok("validate", str(file)).err
    told = _told(holdfast, "LogSink/mine", str(file))
    assert told["phase"] == "Degraded"
    said = "/opt/sink: no room" if reach == "failing" else "is not run: the folder"
    assert said in told["reason"]
    assert holdfast.run("status", str(file)).code == 1
    with serve(holdfast.root, file) as running:
        running.wait_for("degraded: LogSink/mine: its program")
        assert _told(holdfast, "LogSink/mine")["phase"] == "Degraded"
        until(lambda: "holdfast_troubles 1.0" in _metrics(), "the trouble")
        os.chown(program.parent, 0, 0)
        program.write_text("#!/bin/sh\n")
        wan.ip("addr del 192.0.2.1/24 dev wan0")  # put back, which is an event
        until(lambda: _told(holdfast, "LogSink/mine")["phase"] == "Healthy", running.said())


def _metrics() -> str:
    with urlopen("http://127.0.0.1:9473/metrics", timeout=60) as answer:
        return str(answer.read().decode())
