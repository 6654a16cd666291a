"""The tables, and the steps that led to them.

A database at version n has had the first n migrations. One above the last is from a newer
Holdfast and is refused: it may mean something by a row that this version would misread.
"""

from __future__ import annotations

# "Hldf": tells a ledger from any other SQLite file.
APPLICATION_ID = 0x486C6466

# fields, owners, original, data and value hold JSON. A claim's fingerprint is the digest of the
# very text in `fields`, so that a damaged row is seen when it is read.
_VERSION_1 = """
CREATE TABLE claims (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    owners TEXT NOT NULL,
    provenance TEXT NOT NULL,
    state TEXT NOT NULL,
    fields TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    origin TEXT NOT NULL,
    generation INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    nonce TEXT NOT NULL,
    original TEXT,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    compressed BLOB NOT NULL
) STRICT;

CREATE TABLE generations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL,
    created REAL NOT NULL,
    finished REAL
) STRICT;

CREATE TABLE generation_files (
    generation INTEGER NOT NULL REFERENCES generations ON DELETE CASCADE,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES contents,
    PRIMARY KEY (generation, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX generation_files_by_content ON generation_files (sha256);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    message TEXT NOT NULL,
    generation INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT;

CREATE TABLE notes (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

_VERSION_2 = "ALTER TABLE claims ADD COLUMN revert INTEGER NOT NULL DEFAULT 0"

# Parts of sources other than the startup file; what their plugins did; actions of providers; an
# apply that waits to be confirmed; configurations that were reverted and so are not applied again
# by themselves. resources, directives, action_plans, plan, result, before hold JSON.
_VERSION_3 = """
CREATE TABLE parts (
    source TEXT NOT NULL,
    generation INTEGER NOT NULL,
    observed REAL NOT NULL,
    expires REAL,
    digest TEXT NOT NULL,
    resources TEXT NOT NULL,
    directives TEXT NOT NULL,
    action_plans TEXT NOT NULL,
    PRIMARY KEY (source, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE plugin_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    plugin TEXT NOT NULL,
    trigger TEXT NOT NULL,
    started REAL NOT NULL,
    seconds REAL NOT NULL,
    outcome TEXT NOT NULL,
    generation INTEGER,
    reason TEXT NOT NULL,
    stderr TEXT NOT NULL
) STRICT;

CREATE TABLE actions (
    idempotency_key TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created REAL NOT NULL,
    changed REAL NOT NULL,
    deadline REAL NOT NULL,
    approved_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    undoes TEXT NOT NULL,
    plan TEXT NOT NULL,
    result TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE confirmations (
    generation INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    started REAL NOT NULL,
    deadline REAL NOT NULL,
    boot TEXT NOT NULL,
    monotonic_deadline REAL NOT NULL,
    before INTEGER NOT NULL,
    file TEXT NOT NULL,
    installs TEXT NOT NULL,
    digest TEXT NOT NULL,
    reverse BLOB NOT NULL,
    probes TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE TABLE latches (
    digest TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    time REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

# The routing tables ever written to, "254 100", became a memory of the driver of routes.
_VERSION_4 = """
INSERT INTO notes
SELECT 'driver/routes', replace('["' || replace(trim(value, '"'), ' ', '","') || '"]', '""', '')
FROM notes WHERE name = 'route-tables';
DELETE FROM notes WHERE name = 'route-tables';
"""

# What sources declare resource by resource: the generation of each such source rises with every
# batch that changes something, and goes on rising once it declares nothing any more. document holds
# JSON, and digest is that of its very text. asserted: since the sync under way began, if one is.
_VERSION_5 = """
CREATE TABLE declaring (
    source TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    observed REAL NOT NULL,
    syncing INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE declared (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    asserted INTEGER NOT NULL,
    digest TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX declared_by_name ON declared (source, kind, name);
"""

# Given to a ledger when it is made: one without is of a Holdfast that knew none.
IDENTITY = """
INSERT INTO notes VALUES ('installation', '"' || lower(hex(randomblob(8))) || '"')
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
VERSION = len(MIGRATIONS)
