"""`validate` on any machine: by the files alone, the router's secrets and programs elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import WAN, Holdfast

KEY = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
PPPOE = ("PPPoEInterface", "isp", "{interface: wan, username: me, passwordFile: secret}")
WIREGUARD = (
    "WireGuardInterface",
    "wg0",
    f"{{privateKeyFile: secret, peers: [{{name: a, publicKey: {KEY!r}, presharedKeyFile: secret,"
    " allowedIPs: [10.9.0.0/24]}]}",
)
SINK = ("LogSink", "mine", "{type: plugin, plugin: {path: /opt/none}}")


def _plugin(file: Path) -> None:
    text = file.read_text().replace("net.holdfast.dev/v1alpha1\n      kind: LogSink", "X")
    text = text.replace("X", "system.holdfast.dev/v1alpha1\n      kind: LogSink")
    text += """\
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: inventory}
      spec: {executable: /opt/none}
"""
    file.write_text(text)


@pytest.mark.parametrize("resource", [PPPOE, WIREGUARD], ids=lambda resource: resource[0])
@pytest.mark.parametrize("state", ["missing", "folder", "readable"])
def test_secrets_of_the_router_are_wanted_there_alone(
    holdfast: Holdfast, resource: tuple[str, str, str], state: str
) -> None:
    holdfast.declare(WAN, resource)
    if state == "folder":
        (holdfast.folder / "secret").mkdir()
    elif state == "readable":
        (holdfast.folder / "secret").write_text(f"{KEY}\n")
        (holdfast.folder / "secret").chmod(0o644)
    away = holdfast.ok("validate", "router.yaml")
    assert away.out.startswith("router.yaml: valid, 2 resources declaring ")
    assert all(line.startswith("warning: router.yaml:") for line in away.err.splitlines())
    assert "`validate --on-host`" in away.err
    for words in (("validate", "--on-host"), ("plan",), ("apply", "--yes")):
        done = holdfast.run(*words, "router.yaml")
        assert done.code == 3, words
        assert "the configuration is invalid" in done.err


@pytest.mark.parametrize("resource", [PPPOE, WIREGUARD], ids=lambda resource: resource[0])
def test_a_secret_that_is_none_is_wrong_everywhere(
    holdfast: Holdfast, resource: tuple[str, str, str]
) -> None:
    holdfast.declare(WAN, resource)
    (holdfast.folder / "secret").write_text("\n")
    (holdfast.folder / "secret").chmod(0o600)
    assert "its first line" in holdfast.run("validate", "router.yaml").err


def test_programs_of_the_router_are_wanted_there_alone(holdfast: Holdfast) -> None:
    _plugin(holdfast.declare(SINK))
    away = holdfast.ok("validate", "router.yaml")
    assert away.err.count("there is no program ") == 2
    here = holdfast.run("validate", "--on-host", "router.yaml")
    assert here.code == 3
    assert "spec.plugin.path: there is no program" in here.err
    assert "spec.executable: there is no program" in here.err
    program = holdfast.root / "opt" / "none"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    assert "is not executable: chmod 0755" in holdfast.run("validate", "router.yaml").err
    program.chmod(0o755)
    assert holdfast.ok("validate", "--on-host", "router.yaml").err == ""


def test_several_files_at_once(holdfast: Holdfast) -> None:
    holdfast.declare(WAN)
    (holdfast.folder / "wrong.yaml").write_text("kind: Router\n")
    done = holdfast.run("validate", "router.yaml", "wrong.yaml")
    assert done.code == 3
    assert done.out == "router.yaml: valid, 1 resource declaring 1 artifact\n"
    assert "holdfast: wrong.yaml is invalid (" in done.err
    told = holdfast.run("validate", "router.yaml", "wrong.yaml", "missing.yaml", "-o", "json")
    assert (told.code, told.err, told.json["valid"]) == (3, "", False)
    files = {one["file"]: one for one in told.json["files"]}
    assert [one["valid"] for one in files.values()] == [True, False, False]
    assert files["router.yaml"] | {"errors": []} == files["router.yaml"]
    assert (files["router.yaml"]["resources"], files["router.yaml"]["artifacts"]) == (1, 1)
    assert set(files["wrong.yaml"]["errors"][0]) == {"place", "path", "message"}
    assert "No such file" in files["missing.yaml"]["errors"][0]["message"]


def test_standard_input(holdfast: Holdfast) -> None:
    """Files it names are looked for where the command is run."""
    routes = ("RouteList", "many", "{gateway: 192.0.2.254, file: routes.txt}")
    text = holdfast.declare(WAN, routes).read_text()
    (holdfast.folder / "router.yaml").unlink()
    (holdfast.folder / "routes.txt").write_text("10.0.0.0/8\n10.1.0.0/16\n")
    done = holdfast.run("validate", "-", stdin=text)
    assert (done.code, done.err) == (0, "")
    assert done.out == "/dev/stdin: valid, 2 resources declaring 3 artifacts\n"
    assert holdfast.run("validate", "-", stdin="kind: x\n").code == 3


@pytest.mark.parametrize("piped", [True, False])
def test_standard_input_that_another_user_opened(holdfast: Holdfast, piped: bool) -> None:
    """`cat FILE | sudo -u nobody holdfast validate -`, and `< FILE` of mode 600."""
    file = holdfast.declare(WAN)
    file.chmod(0o600)
    reading = os.open(file, os.O_RDONLY)
    if piped:
        reading, writing = os.pipe()
        os.write(writing, file.read_bytes())
        os.close(writing)
    # The interpreter may lie in a folder of root's: what is needed is loaded before.
    code = "import os, sys; from holdfast.cli.main import run; words = sys.argv[1:];"
    code += f"run([*words, {str(file)!r}]); sys.stdout.flush();"
    code += "os.setgid(65534); os.setuid(65534); sys.exit(run([*words, '-']))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *holdfast.arguments("validate")[1:]],
            cwd="/",
            env=holdfast.environment(),
            stdin=reading,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(reading)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n/dev/stdin: valid, 1 resource declaring 1 artifact\n")


def test_defaults_by_the_environment(holdfast: Holdfast, netns: object) -> None:
    """$HOLDFAST_FILE for whatever takes a FILE, $HOLDFAST_ROOT for --root; both yield to words."""
    assert netns
    holdfast.declare(WAN, file="mine.yaml")
    holdfast.declare(file="other.yaml")
    done = holdfast.run("validate", HOLDFAST_FILE="mine.yaml")
    assert done.out == "mine.yaml: valid, 1 resource declaring 1 artifact\n"
    done = holdfast.run("validate", "other.yaml", HOLDFAST_FILE="mine.yaml")
    assert done.out == "other.yaml: valid, 0 resources declaring 0 artifacts\n"
    assert "Interface/wan" in holdfast.run("status", HOLDFAST_FILE="mine.yaml").out
    done = holdfast.run("action", "list", HOLDFAST_FILE="missing.yaml")
    assert "missing.yaml: cannot be read" in done.err


def test_the_root_by_the_environment(holdfast: Holdfast, tmp_path: Path) -> None:
    config = tmp_path / "elsewhere" / "etc" / "holdfast" / "router.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(holdfast.declare(WAN).read_text())
    command = holdfast.arguments()[0]
    done = subprocess.run(
        [command, "validate"],
        env=holdfast.environment(HOLDFAST_ROOT=str(tmp_path / "elsewhere")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{config}: valid, 1 resource declaring 1 artifact\n"
