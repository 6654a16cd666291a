"""A row in each table of the ledger, and all rows of one."""

from __future__ import annotations

from holdfast.config.part import Amendment, Declared, Part
from holdfast.engine import event_kinds
from holdfast.paths import Paths
from holdfast.state import confirmations, installation, latches
from holdfast.state.actions import APPROVED, Action
from holdfast.state.confirmations import Confirmation
from holdfast.state.database import Database, Row
from holdfast.state.declared import Declaring, Write
from holdfast.state.events import Event
from holdfast.state.installation import OwnNamespace
from holdfast.state.latches import Latch
from holdfast.state.ledger import Ledger
from holdfast.state.plugin_runs import STORED, PluginRun
from tests.state.samples import File, claim

Rows = dict[str, set[Row]]

TRIAL = Confirmation(
    2, 1000.0, 1120.0, "this boot", 620.0, 1, "/etc/c.yaml", "", "d" * 64, b"reverse", [["gateway"]]
)
LATCH = Latch("a" * 64, 1, 1000.0, "no answer")
# What the ledger says of itself as a working copy comes and goes; it has rows of its own.
_ITS_OWN = ("ledger-unwritable", "ledger-written")


def write_everything(ledger: Ledger) -> None:
    """Whatever it is written to."""
    ledger.write_claims([claim(1), claim(2)])
    ledger.remember("routes", frozenset({"254", "100"}))
    installation.write_own_namespace(ledger, OwnNamespace("boot/42", (72, 73)))
    number = ledger.begin_generation([File("router.yaml", b"a"), File("routes.txt", b"b")])
    ledger.finish_generation(number, "converged")
    ledger.append_events([Event(event_kinds.CREATED, "a", "b", number)])
    ledger.put_part(Part("Owner/ci", 1, 1000.0, None, (), (), ()))
    document = {"kind": "Hostname", "metadata": {"name": "a"}}
    put = Amendment("Owner/app", 1, 1000.0, (Declared(1, document),))
    ledger.write_declared([Write(Declaring("Owner/app", 1, 1000.0), put)])
    ledger.put_run(PluginRun("inventory", "interval", 1000.0, 1.0, STORED, 1))
    ledger.write_actions([Action("k1", "Plugin/x", 3, APPROVED, 900.5, 950.25, {"name": "app"})])
    ledger._write(lambda db: confirmations.begin(db, TRIAL))
    ledger._write(_put_latch)


def _put_latch(database: Database) -> None:
    with database.transaction():
        latches.put_row(database, LATCH)


def rows(ledger: Ledger) -> Rows:
    """Of all tables that any version of the ledger ever made, by name."""
    named = "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
    names = {name for (name,) in ledger._database.query(named)} - {"working_copy"}
    found = {name: set(ledger._database.query(f"SELECT * FROM {name}")) for name in names}  # noqa: S608 (names of tables)
    found["events"] = {row for row in found["events"] if row[2] not in _ITS_OWN}
    return found


def stored(paths: Paths) -> Rows:
    with Ledger.read(paths) as ledger:
        return rows(ledger)
