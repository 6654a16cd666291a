"""Generations: listed, shown, compared, gone back to; and what was reverted stays out."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.config.redaction import redact
from holdfast.errors import LedgerError
from holdfast.state.ledger import Ledger
from tests.agent.two_providers import until
from tests.cli.conftest import ADMITTING, WAN, WAN_ADDRESS, Holdfast, route, without_notices
from tests.cli.served import daemon
from tests.namespace import Namespace

PPPOE = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: PPPoEInterface
      metadata: {name: ppp}
      spec: {interface: wan, ifname: ppp0, username: u, password: "geheim", managed: false}
"""


@pytest.fixture
def three(holdfast: Holdfast, wan: Namespace) -> Namespace:
    """Three generations, each with a route to another network."""
    for number in (1, 2, 3):
        holdfast.declare(ADMITTING, WAN, WAN_ADDRESS, route("a", f"10.{number}.0.0/16"))
        holdfast.ok("apply", "router.yaml", "--yes")
    return wan


def test_list(holdfast: Holdfast, three: Namespace) -> None:  # noqa: ARG001 (made)
    file = holdfast.folder / "router.yaml"
    found = holdfast.ok("generations", "list", "-o", "json").json["generations"]
    assert [(one["number"], one["state"]) for one in found] == [
        (3, "converged"),
        (2, "converged"),
        (1, "converged"),
    ]
    assert [one["path"] for one in found[0]["files"]] == [str(file)]
    lines = holdfast.ok("generations").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["3", "converged"],
        ["2", "converged"],
        ["1", "converged"],
    ]


def test_nothing_was_applied(holdfast: Holdfast) -> None:
    assert holdfast.ok("generations").out == "Nothing was applied yet.\n"
    assert holdfast.run("generations", "diff", "1").code == 4
    assert holdfast.run("rollback", "--yes").code == 4


def test_show_and_diff(holdfast: Holdfast, three: Namespace) -> None:  # noqa: ARG001 (made)
    file = holdfast.folder / "router.yaml"
    shown = holdfast.ok("generations", "show", "2")
    assert "destination: 10.2.0.0/16" in shown.out
    changed = [
        line
        for line in holdfast.ok("generations", "diff", "1", "3").out.splitlines()
        if line.startswith(("+", "-"))
    ]
    assert changed[:2] == [f"--- {file} (generation 1)", f"+++ {file} (generation 3)"]
    assert ["10.1.0.0/16" in changed[2], "10.3.0.0/16" in changed[3]] == [True, True]
    assert holdfast.ok("generations", "diff", "2", "2").out == ""
    assert holdfast.ok("generations", "diff", "1", "-o", "json").json["after"] == 3
    missing = holdfast.run("generations", "show", "9")
    assert (missing.code, "there is no generation 9" in missing.err) == (4, True)
    for form in ("json", "yaml"):
        assert holdfast.ok("generations", "-o", form) == holdfast.ok(
            "generations", "list", "-o", form
        )


SHOWING = (
    ("show", "1"),
    ("show", "1", "-o", "json"),
    ("diff", "1", "2"),
    ("diff", "1", "2", "-o", "json"),
)


def test_a_long_diff_is_cut_and_shown_in_full(holdfast: Holdfast, three: Namespace) -> None:
    del three  # made
    file = holdfast.declare(
        WAN, WAN_ADDRESS, *(route(f"r{n}", f"10.{n}.0.0/16") for n in range(30))
    )
    holdfast.set_up("apply", "router.yaml", "--yes")
    short = holdfast.ok("generations", "diff", "3").out.splitlines()
    whole = holdfast.ok("generations", "diff", "3", "--full").out.splitlines()
    assert short == [*whole[:20], f"… {len(whole) - 20} more lines, --full shows all"]
    cut = holdfast.ok("generations", "diff", "3", "-o", "json").json
    full = holdfast.ok("generations", "diff", "3", "--full", "-o", "json").json
    assert (cut["left_out"], full["left_out"]) == (len(whole) - 20, 0)
    assert full["diff"].splitlines() == whole
    (one,) = full["files"]
    assert one["before"] == one["after"] == str(file)
    added = [
        line["text"]
        for hunk in one["difference"]["hunks"]
        for line in hunk["lines"]
        if line["change"] == "added"
    ]
    assert len(added) == one["difference"]["added"] > 100
    assert cut["files"][0]["difference"]["left_out"] > 100


def test_secrets_are_not_shown(holdfast: Holdfast, wan: Namespace) -> None:  # noqa: ARG001 (made)
    path = holdfast.declare(WAN, WAN_ADDRESS)
    text = path.read_text() + PPPOE
    path.write_text(text)
    holdfast.run("apply", "router.yaml", "--yes")
    path.write_text(text.replace("geheim", "anders"))
    holdfast.run("apply", "router.yaml", "--yes")
    said = "".join(holdfast.ok("generations", *words).out for words in SHOWING)
    assert "geheim" not in said
    assert "anders" not in said
    assert f"{path}: they differ in what is not shown" in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password: |\n  two\n  lines\nuser: me\n", "password: (not shown)\nuser: me\n"),
        ("{presharedKey: abc, a: 1}\n", "{presharedKey: (not shown), a: 1}\n"),
        ('{"token": "a\\"b", "x": [1]}\n', '{"token": (not shown), "x": [1]}\n'),
        ("passwordFile: here\n", "passwordFile: here\n"),
        ("clientSecret: {file: x, y: z}\n", "clientSecret: (not shown)\n"),
        ("ä: ö\npsk: 1  # why\n", "ä: ö\npsk: (not shown)  # (not shown)\n"),
        ("broken: [\npassword: abc\n", "broken: [\npassword: (not shown)\n"),
    ],
)
def test_redaction(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_rollback(holdfast: Holdfast, three: Namespace) -> None:
    file = holdfast.folder / "router.yaml"
    done = holdfast.ok("rollback", "--yes")
    assert f"{file} is as in generation 2 again" in done.err
    assert "10.2.0.0/16" in three.ip("route show")
    assert "10.2.0.0/16" in file.read_text()
    holdfast.ok("rollback", "--to", "1", "--yes")
    assert "10.1.0.0/16" in three.ip("route show")
    assert holdfast.ok("plan", "router.yaml").out.startswith("Plan: nothing to do")


def test_rollback_loses_no_edits(holdfast: Holdfast, three: Namespace) -> None:
    file = holdfast.folder / "router.yaml"
    file.write_text(file.read_text() + "# not applied yet\n")
    refused = holdfast.run("rollback", "--yes")
    assert refused.code == 4
    assert "was edited and never applied" in refused.err
    assert "10.3.0.0/16" in three.ip("route show")
    assert "not applied yet" in file.read_text()
    holdfast.ok("rollback", "--yes", "--overwrite")
    assert "10.2.0.0/16" in three.ip("route show")


def test_a_rollback_that_is_refused_leaves_the_files(holdfast: Holdfast, three: Namespace) -> None:
    """What speaks against the pass is found out before they are written."""
    many = [route(f"r{number}", f"10.{number}.0.0/16") for number in range(50, 90)]
    file = holdfast.declare(WAN, WAN_ADDRESS, *many)
    text = file.read_text()
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    refused = holdfast.run("rollback", "--to", "1", "--yes")
    assert refused.code == 4
    assert "nothing was touched: 40 of 42 owned artifacts" in refused.err
    assert file.read_text() == text
    assert "10.60.0.0/16" in three.ip("route show")
    with daemon(holdfast, file):
        through = holdfast.run("rollback", "--to", "1", "--yes")
        assert (through.code, through.err) == (refused.code, refused.err)
        assert file.read_text() == text
        done = holdfast.ok("rollback", "--to", "1", "--yes", "--allow-mass-delete")
    assert done.out == "Applied: 1 created, 40 deleted.\nConverged: 3 artifacts as declared.\n"
    placed, *told = done.err.splitlines()
    assert placed == f"{file} is as in generation 1 again"
    assert sum("  deleted route " in line for line in told) == 1


@pytest.mark.usefixtures("three")
def test_files_go_back_all_or_none(holdfast: Holdfast) -> None:
    """Of two, the second has no place any more: a file is where its folder was."""
    lists = ("RouteList", "l", "{gateway: 192.0.2.254, interface: wan, file: zlists/l.routes}")
    (holdfast.folder / "zlists").mkdir()
    (holdfast.folder / "zlists/l.routes").write_text("10.44.0.0/16\n")
    holdfast.declare(WAN, WAN_ADDRESS, lists)
    holdfast.ok("apply", "router.yaml", "--yes")
    file = holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes")
    (holdfast.folder / "zlists/l.routes").unlink()
    (holdfast.folder / "zlists").rmdir()
    (holdfast.folder / "zlists").write_text("in the way\n")
    text = file.read_text()
    refused = holdfast.run("rollback", "--to", "4", "--yes")
    assert refused.code == 4
    assert "nothing was touched: " in refused.err
    assert "zlists/l.routes cannot be put back as in generation 4: " in refused.err
    assert file.read_text() == text


@pytest.mark.usefixtures("three")
def test_whoever_may_ask_the_daemon_may_go_back(
    holdfast: Holdfast,
    three: Namespace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The ledger is root's alone; the daemon's socket is its group's as well."""
    file = holdfast.folder / "router.yaml"
    with daemon(holdfast, file):

        def denied(*_arguments: object, **_more: object) -> None:
            raise LedgerError("permission denied")

        monkeypatch.setattr(Ledger, "read", denied)
        monkeypatch.setattr(Ledger, "open", denied)
        monkeypatch.chdir(holdfast.folder)
        root = ["--root", str(holdfast.root)]
        assert main.run([*root, "rollback", "--to", "1", "--yes"]) == 0
        said = capfd.readouterr()
        placed = f"{file} is as in generation 1 again\n"
        assert without_notices(said.err).startswith(placed), "then what is done, as it happens"
        # Where the daemon has seen the file change before it was asked, nothing was left to apply.
        left = said.out.removeprefix("Applied: 1 created, 1 deleted.\n")
        assert left == "Converged: 3 artifacts as declared.\n"
        assert "10.1.0.0/16" in three.ip("route show")
        assert main.run([*root, "generations"]) == 0
        assert capfd.readouterr().out.splitlines()[0].split()[:2] == ["4", "converged"]


@pytest.mark.usefixtures("three")
def test_a_trial_beside_a_daemon_takes_root(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    candidate = holdfast.declare(WAN, WAN_ADDRESS, file="candidate.yaml")
    words = ["--root", str(holdfast.root), "apply", str(candidate), "--yes"]
    with daemon(holdfast, holdfast.folder / "router.yaml"):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert main.run([*words, "--confirm-within", "1h"]) == 4
    assert "nothing was touched: a trial takes root" in capfd.readouterr().err
    assert len(entries(holdfast)) == 3


def test_what_a_part_made_of_a_trial_is_reverted_with_it(
    holdfast: Holdfast, three: Namespace
) -> None:
    """It is a generation of its own, and no more to be gone back to than the candidate."""
    holdfast.declare(ADMITTING, WAN, WAN_ADDRESS, route("a", "10.9.0.0/16"), file="candidate.yaml")
    spec = {"destination": "10.77.0.0/16", "gateway": "192.0.2.254"}
    more = {"apiVersion": "net.holdfast.dev/v1alpha1", "kind": "IPv4Route"}
    part = {
        "apiVersion": "config.holdfast.dev/v1alpha1",
        "kind": "DynamicConfigPart",
        "metadata": {"name": "more"},
        "spec": {
            "source": "Owner/ci",
            "generation": 1,
            "observedAt": "2026-01-01T00:00:00Z",
            "resources": [{**more, "metadata": {"name": "more"}, "spec": spec}],
        },
    }
    (holdfast.folder / "part.json").write_text(json.dumps(part))

    def candidates() -> list[str]:
        return [one["state"] for one in entries(holdfast) if "candidate" in str(one["files"])]

    with daemon(holdfast, holdfast.folder / "router.yaml"):
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        holdfast.ok("dynamic", "put", "part.json")
        until(lambda: candidates() == ["converged"] * 2, "with the part")
        holdfast.ok("rollback")
        assert candidates() == ["reverted"] * 2
        until(lambda: "10.77.0.0/16" in three.ip("route show"), "the part counts as before")
        holdfast.ok("rollback", "--yes")
        assert "10.2.0.0/16" in three.ip("route show")


def test_a_cleanup_is_a_generation_without_files(holdfast: Holdfast, three: Namespace) -> None:
    holdfast.ok("cleanup", "router.yaml", "--yes")
    assert "10.3.0.0/16" not in three.ip("route show")
    first = holdfast.ok("generations").out.splitlines()[0]
    assert first.startswith("   4  converged  ")
    assert first.endswith(" UTC, nothing declared: a cleanup")
    holdfast.ok("rollback", "--yes")
    assert "10.3.0.0/16" in three.ip("route show")


def test_what_was_reverted_and_is_applied_after_all_is_another_generation(
    holdfast: Holdfast, three: Namespace
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.9.0.0/16"), file="candidate.yaml")
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    holdfast.ok("rollback")
    holdfast.ok("apply", "candidate.yaml", "--yes")
    assert "10.9.0.0/16" in three.ip("route show")
    assert [(one["number"], one["state"]) for one in entries(holdfast)[:2]] == [
        (5, "converged"),
        (4, "reverted"),
    ]
    assert "confirm" not in entries(holdfast)[0]


def test_rollback_asks(holdfast: Holdfast, three: Namespace) -> None:
    refused = holdfast.run("rollback")
    assert (refused.code, "add --yes" in refused.err) == (4, True)
    assert "10.3.0.0/16" in three.ip("route show")
    assert "10.3.0.0/16" in (holdfast.folder / "router.yaml").read_text()


def test_rollback_to_what_the_file_was_removed_of(holdfast: Holdfast, three: Namespace) -> None:
    (holdfast.folder / "router.yaml").unlink()
    holdfast.ok("rollback", "--to", "3", "--yes")
    assert "10.3.0.0/16" in three.ip("route show")
    assert (holdfast.folder / "router.yaml").stat().st_mode & 0o777 == 0o600


def test_nothing_else_while_one_waits(holdfast: Holdfast, three: Namespace) -> None:
    candidate = (WAN, WAN_ADDRESS, route("a", "10.9.0.0/16"))
    holdfast.declare(*candidate, file="candidate.yaml")
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    for words in (
        ("apply", "router.yaml", "--yes"),
        ("apply", "candidate.yaml", "--yes"),
        ("reconcile", "--once", "router.yaml"),
        ("adopt", "--apply", "router.yaml"),
        ("forget", "address", "192.0.2.1/24 dev wan0"),
        ("rollback", "--to", "1", "--yes"),
    ):
        refused = holdfast.run(*words)
        assert refused.code == 4, words
        assert "generation 4 waits to be confirmed until" in refused.err, words
    assert holdfast.run("confirm", "3").code == 4
    assert "10.9.0.0/16" in three.ip("route show")
    states = [one["state"] for one in entries(holdfast)]
    assert states == ["converged", "converged", "converged", "converged"]
    assert entries(holdfast)[0]["confirm"]["state"] == "open"
    holdfast.ok("confirm", "4")
    assert entries(holdfast)[0]["confirm"]["state"] == "confirmed"
    assert "confirmed" in holdfast.ok("generations").out.splitlines()[0]


def test_what_was_reverted_is_latched(holdfast: Holdfast, three: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, route("a", "10.9.0.0/16"), file="candidate.yaml")
    holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
    holdfast.ok("rollback")
    assert "10.3.0.0/16" in three.ip("route show")
    assert entries(holdfast)[0]["state"] == "reverted"
    first = holdfast.ok("generations").out.splitlines()[0]
    assert "reverted: it was taken back by `holdfast rollback`" in first
    # Also by another name.
    (holdfast.folder / "router.yaml").write_bytes((holdfast.folder / "candidate.yaml").read_bytes())
    refused = holdfast.run("reconcile", "--once", "router.yaml")
    assert refused.code == 4
    assert "this very configuration was reverted (generation 4: it was taken back" in refused.err
    assert "10.3.0.0/16" in three.ip("route show")
    holdfast.ok("ledger", "export", "backup.json")
    for path in (holdfast.root / "var/lib/holdfast").glob("state.db*"):
        path.unlink()
    holdfast.ok("ledger", "import", "backup.json")
    assert holdfast.run("reconcile", "--once", "router.yaml").code == 4, "kept in an export"
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "10.9.0.0/16" in three.ip("route show")
    holdfast.ok("reconcile", "--once", "router.yaml")


def test_a_repair_is_no_trial(holdfast: Holdfast, three: Namespace) -> None:
    three.ip("route del 10.3.0.0/16")
    done = holdfast.ok("apply", "router.yaml", "--yes", "--confirm-within", "1h")
    assert "Nothing waits to be confirmed" in done.err
    assert "10.3.0.0/16" in three.ip("route show")
    assert holdfast.run("confirm").code == 4


@pytest.mark.parametrize("within", ["0s", "2", "25h", "soon"])
def test_times_that_will_not_do(holdfast: Holdfast, within: str) -> None:
    assert holdfast.run("apply", "x.yaml", "--yes", "--confirm-within", within).code == 64


def entries(holdfast: Holdfast) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = holdfast.ok("generations", "list", "-o", "json").json[
        "generations"
    ]
    return found
