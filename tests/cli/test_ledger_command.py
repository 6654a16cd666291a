"""`ledger show|export|import|check`."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from holdfast.paths import Paths
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast
from tests.lanes import needs_programs
from tests.namespace import Namespace


def test_a_ledger_travels_through_its_export(
    holdfast: Holdfast, wan: Namespace, tmp_path: Path
) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.ok("ledger", "export", "ledger.json")
    exported = holdfast.folder / "ledger.json"
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    for words in ((), ("-",)):
        assert json.loads(exported.read_text()) == holdfast.ok("ledger", "export", *words).json
    other = Holdfast(holdfast.folder, tmp_path / "other")
    assert "The ledger is empty." in other.ok("ledger", "show").out
    assert "the ledger holds 2 claims" in other.ok("ledger", "import", "ledger.json").out
    done = other.run("ledger", "import", "-", stdin=(other.folder / "ledger.json").read_text())
    assert done.out.endswith("Imported /dev/stdin; the ledger holds 2 claims.\n")
    here, there = (one.ok("ledger", "show", "-o", "json").json for one in (holdfast, other))
    assert there["claims"] == here["claims"]
    assert there["generations"][0]["files"] == here["generations"][0]["files"]
    assert wan.ip_json("-4 addr show dev wan0")


def test_show(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes")
    said = holdfast.ok("ledger", "show").out
    assert (
        "address 192.0.2.1/24 dev wan0  created in generation 1 for IPv4StaticAddress/wan" in said
    )
    assert "generation 1: converged, " in said
    assert wan.ip_json("-4 addr show dev wan0")


def test_an_import_that_is_none(holdfast: Holdfast) -> None:
    bad = holdfast.folder / "bad.json"
    for text, said in (("{", "not JSON"), ("[]", "not an export of a ledger")):
        bad.write_text(text)
        done = holdfast.run("ledger", "import", "bad.json")
        assert done.code == 1
        assert said in done.err
    bad.write_text("{}")
    assert holdfast.run("ledger", "import", "bad.json").code == 5
    assert holdfast.run("ledger", "import", "missing.json").code == 1


def test_an_import_with_mistakes_is_no_fault(holdfast: Holdfast) -> None:
    """Of whatever size, depth or alphabet."""
    bad = holdfast.folder / "bad.json"
    claim = {"kind": "colour", "name": "x", "owners": [], "fields": {}}
    for text, code, said in (
        (json.dumps({"format_version": 1, "claims": [claim]}), 5, "claims[0].kind"),
        (json.dumps({"format_version": 2**63, "claims": []}), 5, "format_version"),
        (json.dumps({"format_version": 1, "claims": ["\ud800"]}), 5, "claims[0]: holds half"),
        (json.dumps({"version": 1, "artifacts": [{"kind": 2**63}]}), 5, "artifacts[0].kind"),
        ('{"format_version": 1, "claims": ' + "[" * 60 + "]" * 60 + "}", 5, "48 levels deep"),
        ("[" * 200_000 + "]" * 200_000, 1, "nested too deep"),
        ('{"format_version": ' + "9" * 5000 + "}", 1, "not JSON"),
    ):
        bad.write_text(text)
        done = holdfast.forked("ledger", "import", "bad.json")
        assert done[0] == code, done
        assert said in done[1]
        assert "fault in Holdfast" not in done[1]
    assert "The ledger is empty." in holdfast.ok("ledger", "show").out


def test_what_no_claim_can_be_made_of_is_named(holdfast: Holdfast) -> None:
    host = {"kind": "linux.hostname", "name": "system", "attributes": {"hostname": "old"}}
    unit = {"kind": "systemd.service", "name": "routerd-dnsmasq.service", "attributes": {}}
    artifacts = [{**host, "owner": "a/b/Hostname/h"}, {**unit, "owner": "a/b/IPv4DHCPServer/x"}]
    given = holdfast.folder / "artifacts.json"
    given.write_text(json.dumps({"version": 1, "artifacts": artifacts}))
    said = holdfast.ok("ledger", "import", "artifacts.json").out
    assert "no claim on systemd.service routerd-dnsmasq.service: " in said
    assert said.endswith("the ledger holds 1 claim.\n")
    assert "\n\n\n" not in holdfast.ok("ledger", "show").out


def test_tables_of_the_reference_system_go_once_nothing_declares_them(
    holdfast: Holdfast, wan: Namespace
) -> None:
    """Only those that are recorded and bear its name, and only here and now."""
    needs_programs("nft")
    for name in ("routerd_nat", "routerd_unrecorded", "mine"):
        wan.run("nft", "add", "table", "ip", name)
    entries = [
        {"kind": "nft.table", "name": name, "attributes": {"family": "ip"}, "owner": "a/b/C/d"}
        for name in ("routerd_nat", "routerd_gone", "mine")
    ]
    given = holdfast.folder / "artifacts.json"
    given.write_text(json.dumps({"version": 1, "artifacts": entries}))
    holdfast.ok("ledger", "import", "artifacts.json")
    holdfast.declare(WAN)
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    gone = [one["artifact"]["name"] for one in plan["operations"] if one["action"] == "delete"]
    assert gone == ["ip routerd_nat"]
    holdfast.ok("apply", "router.yaml", "--yes", "--allow-mass-delete")
    left = wan.run("nft", "list", "tables").split("\n")
    assert "table ip routerd_nat" not in left
    assert {"table ip mine", "table ip routerd_unrecorded"} <= set(left)


def test_check(holdfast: Holdfast, wan: Namespace) -> None:
    assert "there is none yet" in holdfast.ok("ledger", "check").out
    holdfast.declare(WAN)
    holdfast.ok("apply", "router.yaml", "--yes")
    assert holdfast.ok("ledger", "check").out.endswith("state.db: sound\n")
    Paths(holdfast.root).ledger.chmod(0o644)
    done = holdfast.run("ledger", "check")
    assert done.code == 1
    assert "mode is 0644, should be 0600" in done.out
    assert wan.ip_json("link show dev wan0")


def test_check_says_a_thing_once(holdfast: Holdfast, wan: Namespace) -> None:
    assert wan
    holdfast.declare(WAN)
    holdfast.ok("apply", "router.yaml", "--yes")
    ledger = Paths(holdfast.root).ledger
    with closing(sqlite3.connect(ledger)) as database:
        found = database.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0")
        pages = [page for name, page in found if name != "notes"]  # which every reader needs
    content = bytearray(ledger.read_bytes())
    for page in pages:
        for at in range((page - 1) * 4096, page * 4096, 7):
            content[at] ^= 0x55
    ledger.write_bytes(content)
    done = holdfast.run("ledger", "check")
    lines = done.out.splitlines()
    assert done.code == 1
    assert "The ledger is damaged" in done.out
    assert len(lines) == len(set(lines)) < 60


def test_a_damaged_ledger_stops_everything(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    holdfast.ok("apply", "router.yaml", "--yes")
    ledger = Paths(holdfast.root).ledger
    ledger.write_bytes(b"this was a ledger once\n" * 1000)
    wan.ip("link set wan0 mtu 1400")
    for words in (("plan",), ("apply", "--yes"), ("status",), ("adopt", "--apply")):
        done = holdfast.run(*words, "router.yaml")
        assert done.code == 5, words
        assert "Traceback" not in done.err
        assert str(ledger) in done.err
    assert wan.ip_json("link show dev wan0")[0]["mtu"] == 1400
