"""Programs that a configuration names, and whether they are here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.engine.intent import Desired, Intent
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.service import SERVICE, unit_of
from holdfast.errors import DriverError, Problem
from holdfast.host import confined_program, process
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.router import Router

# The programs that resources ask for, and what they are in.
PACKAGES = {
    "/usr/sbin/dnsmasq": "dnsmasq-base",
    "/usr/sbin/dhcpcd": "dhcpcd-base",
    "/usr/sbin/pppd": "ppp",
    "/usr/sbin/chronyd": "chrony",
}


def lacking(paths: Paths, router: Router, desired: Desired) -> Iterator[Problem]:
    """Those that this machine does not have, or may not run."""
    for resource in router.resources:
        kind = registry.kind(resource.kind)
        named = kind.program(resource) if kind.program is not None else None
        if named is None:
            continue
        field, path = named
        program = paths.under(path)
        if not program.is_file():
            yield Problem(resource.place, f"spec.{field}", f"there is no program {program}")
        elif not os.access(program, os.X_OK):
            message = f"{program} is not executable: chmod 0755 {program}"
            yield Problem(resource.place, f"spec.{field}", message)
        elif kind.receives_events and (why := confined_program.objection(program)):
            yield Problem(resource.place, f"spec.{field}", f"is not run: {why}")
    yield from _services(desired)
    yield from _tables(desired)


def _services(desired: Desired) -> Iterator[Problem]:
    """Once each, whoever else needs it. It may be run by a shell that moves folders first."""
    told: set[str] = set()
    for intent in desired.intents:
        if not isinstance(intent, Intent) or intent.artifact.key.kind != SERVICE.name:
            continue
        for word in unit_of(intent.artifact).argv if intent.artifact.payload else ():
            if word in PACKAGES and word not in told and not Path(word).exists():
                told.add(word)
                message = f"there is no {word}: install the Debian package {PACKAGES[word]}"
                yield Problem(intent.origin, "", message)


def _tables(desired: Desired) -> Iterator[Problem]:
    for intent in desired.intents:
        if isinstance(intent, Intent) and intent.artifact.key.kind == NFT.name:
            try:
                process.find("nft", "nftables")
            except DriverError as error:
                yield Problem(intent.origin, "", str(error))
            return
