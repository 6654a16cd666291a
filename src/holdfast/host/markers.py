"""What on this machine says of itself that a Holdfast wrote it, whatever a ledger knows of it.

Kernel objects and nftables tables carry their mark where drivers look anyway. Files, blocks and
services are looked at by name, so that here their names are found: in the places that resources
lead to, by what their kinds put into them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.engine.artifact import Key
from holdfast.engine.driver import Scope
from holdfast.engine.drivers import Drivers
from holdfast.engine.kinds import dropin
from holdfast.engine.kinds.block import BLOCK
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.service import PREFIX, SERVICE
from holdfast.engine.kinds.unit import FOLDER
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Marked
from holdfast.host import rooted
from holdfast.host.services.folder import Folder
from holdfast.paths import Paths

_KINDS = frozenset({FILE.name, BLOCK.name, dropin.DROPIN.name, SERVICE.name})
_FILES = ("/etc/holdfast", "/etc/holdfast/dnsmasq", "/etc/sysctl.d")
_WITH_BLOCKS = ("/etc/hosts",)
# Drop-ins are known by who reads them, too.
_DROPINS = {"/etc/systemd/timesyncd.conf.d/holdfast.conf": "systemd-timesyncd.service"}
_WRITTEN = re.compile(rb"^# (Holdfast wrote this file|Written by Holdfast)", re.MULTILINE)
_HEAD = 512  # bytes in which a file says who wrote it
_BLOCK = re.compile(rb"^# BEGIN holdfast (\S+)\s*$", re.MULTILINE)


def find(paths: Paths, host: Drivers) -> list[Marked]:
    """What is marked, as its drivers see it."""
    keys = frozenset(_names(paths.root))
    observed = host.observe(Scope(keys=keys, kinds=_KINDS)) if keys else Observed()
    return [
        Marked(sightings[0].artifact, "marked as Holdfast's")
        for key, sightings in sorted(observed.sightings.items())
        if key.kind != SERVICE.name or sightings[0].artifact.fields.get("mark")
    ]


def _names(root: Path) -> Iterator[Key]:
    for folder in _FILES:
        for name in _listed(root, folder):
            if _WRITTEN.search(_content(root, f"{folder}/{name}")[:_HEAD]):
                yield Key(FILE.name, f"{folder}/{name}")
    for path in _WITH_BLOCKS:
        for match in _BLOCK.finditer(_content(root, path)):
            yield Key(BLOCK.name, f"{path} {match[1].decode(errors='replace')}")
    for path, unit in _DROPINS.items():
        if _WRITTEN.search(_content(root, path)[:_HEAD]):
            yield dropin.dropin(path, b"", unit).key
    units = (
        name.removeprefix(PREFIX).removesuffix(".service")
        for name in _listed(root, FOLDER)
        if name.startswith(PREFIX) and name.endswith(".service")
    )
    for name in sorted({*units, *Folder(root).names()}):
        yield Key(SERVICE.name, name)


def _listed(root: Path, folder: str) -> list[str]:
    try:
        with rooted.parent(root, f"{folder}/any") as (here, _):
            return sorted(os.listdir(here))  # noqa: PTH208 (of a descriptor)
    except OSError:
        return []


def _content(root: Path, path: str) -> bytes:
    """Empty for what is no file, or cannot be read: it says nothing of itself."""
    with suppress(OSError, ValueError), rooted.parent(root, path) as (folder, name):
        return rooted.read(folder, name)
    return b""
