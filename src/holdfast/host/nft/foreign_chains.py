"""Chains of others that packets have to get past, as `nft` tells them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from holdfast.engine.kinds.nft import MARK
from holdfast.errors import DriverError
from holdfast.host import process
from holdfast.host.nft.nft_ruleset import NoNftables, Ruleset, Table, connect
from holdfast.resources.firewall.foreign_chains import FILTER, NAT, ForeignChain

# Those of packets to the router and through it. Not those of single links (netdev): nft 1.0.6 does
# not tell in JSON which links a chain is for.
_FAMILIES = ("inet", "ip", "ip6")
_HOOKS = ("prerouting", "input", "forward", "postrouting")
_DORMANT = 1  # a flag of tables whose chains are switched off


def read_foreign_chains() -> tuple[ForeignChain, ...]:
    """Of tables without our mark. Most routers have none of those, and nft is not run then. Raises
    DriverError."""
    with closing(Ruleset(connect())) as ruleset:
        try:
            _, tables, _ = ruleset.read(lambda _table: False)
        except NoNftables:
            return ()
    foreign = (table for table in tables if not table.comment.startswith(f"{MARK} "))
    awake = (table for table in foreign if not int.from_bytes(table.flags, "big") & _DORMANT)
    return tuple(chain for table in awake if table.family in _FAMILIES for chain in _chains(table))


def _chains(table: Table) -> Iterator[ForeignChain]:
    bases: list[dict[str, Any]] = []
    rules: dict[str, list[Any]] = {}
    for entry in _listed(table):
        if entry.get("chain", {}).get("hook") in _HOOKS:
            bases.append(entry["chain"])
        elif "rule" in entry:
            rules.setdefault(entry["rule"]["chain"], []).append(entry["rule"]["expr"])
    for base in bases:
        if base["type"] in (FILTER, NAT):
            yield ForeignChain(
                table.family,
                table.name,
                str(base["name"]),
                str(base["hook"]),
                str(base.get("policy", "accept")),
                rules,
                int(base["prio"]),
                str(base["type"]),
            )


def _listed(table: Table) -> list[dict[str, Any]]:
    nft = process.find("nft", "nftables")
    ended = process.run([nft, "-j", "-t", "list", "table", table.family, table.name])
    if ended.status != 0:
        raise DriverError(f"nft could not list what others have: {ended.said}")
    listed: list[dict[str, Any]] = json.loads(ended.out)["nftables"]
    return listed
