"""A router's links in the test's namespace, and the route driver on them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from holdfast.engine.artifact import Artifact, Batch, Fields, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.route import RouteTemplate, batch, expand, pack_key
from holdfast.engine.observed import BulkSighting
from holdfast.engine.plan import Operation, Verb
from holdfast.host.netlink.routes.driver import RouteDriver
from holdfast.host.netlink.routes.route_codec import packed_address
from holdfast.host.netlink.socket import NetlinkSocket
from tests.namespace import Namespace

TAG = 72


def key(prefix: str) -> bytes:
    address, _, length = prefix.partition("/")
    return pack_key(packed_address(address), int(length))


def routes(shared: RouteTemplate, *prefixes: str) -> Batch:
    return batch(shared, [key(prefix) for prefix in prefixes])


def route(shared: RouteTemplate, prefix: str) -> Artifact:
    return expand(shared, key(prefix))


def claim(artifact: Artifact, provenance: Provenance, **more: Any) -> Claim:
    fields = {**artifact.fields, **more}
    return Claim(artifact.key, ("Test/one",), provenance, ClaimState.OWNED, fields, "", 1)


class Bench:
    """Two links with addresses of both families, and a driver with its own socket."""

    def __init__(self, netns: Namespace) -> None:
        self.netns = netns
        netns.veth("v0", "v0p", "10.0.0.1/24", "10.0.0.2/24", "fd00::1/64")
        netns.veth("v1", "v1p", "10.1.0.1/24", "fd01::1/64")
        self.sock = NetlinkSocket()
        self.driver = RouteDriver(self.sock, TAG)
        self.progress = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def observe(self, *batches: Batch, claims: Iterable[Claim] = ()) -> BulkSighting:
        scope = Scope(batches=batches, claims={one.key: one for one in claims})
        return self.driver.observe(scope).bulk["route"]

    def apply(
        self, verb: Verb, subject: Artifact | Batch, observed: Artifact | Batch | None = None
    ) -> Result:
        (result,) = self.driver.apply(
            [Operation(verb, subject, ("Test/one",), "test", observed=observed)], self._advance
        )
        return result

    def _advance(self, count: int) -> None:
        self.progress += count

    def create(self, subject: Artifact | Batch) -> Result:
        return self.apply(Verb.CREATE, subject)

    def update(
        self, old: RouteTemplate, new: RouteTemplate, prefix: str, **observed: Any
    ) -> Result:
        seen = route(old, prefix)
        seen = Artifact(seen.key, {**seen.fields, **observed})
        return self.apply(Verb.UPDATE, route(new, prefix), seen)

    def update_many(self, old: RouteTemplate, new: RouteTemplate, *prefixes: str) -> Result:
        return self.apply(Verb.UPDATE, routes(new, *prefixes), routes(old, *prefixes))

    def update_all(
        self, old: RouteTemplate, targets: Iterable[tuple[str, RouteTemplate]]
    ) -> list[Result]:
        return self.driver.apply(
            [
                Operation(Verb.UPDATE, route(new, prefix), (), "test", observed=route(old, prefix))
                for prefix, new in targets
            ],
            self._advance,
        )

    def delete(self, shared: RouteTemplate, *prefixes: str) -> Result:
        return self.apply(Verb.DELETE, routes(shared, *prefixes))

    def delete_all(self, subject: Batch) -> Result:
        return self.apply(Verb.DELETE, subject)

    def is_there(self, shared: RouteTemplate, *prefixes: str, claims: Iterable[Claim] = ()) -> bool:
        """Are these routes, exactly so, what carries our tag, and nothing else?"""
        wanted = routes(shared, *prefixes)
        seen = self.observe(wanted, claims=claims)
        return seen.own == set(seen.pack(wanted) or ())

    def show(self, prefix: str, options: str = "") -> list[str]:
        """What `ip` says of a destination, a line for each route and leg."""
        family = "-6" if ":" in prefix else "-4"
        said = self.netns.ip(f"{family} route show {options} exact {prefix}")
        return [" ".join(line.split()) for line in said.splitlines()]

    def ip_json(self, family: int, table: int) -> list[dict[str, Any]]:
        said = self.netns.run("ip", f"-{family}", "-j", "-d", "route", "show", "table", str(table))
        found: list[dict[str, Any]] = json.loads(said)
        return found

    def wait_for_linkdown(self, family: int) -> None:
        """The kernel marks the routes of a link a moment after it lost its carrier."""
        for _ in range(3000):
            if "linkdown" in self.netns.ip(f"-{family} route show table all proto {TAG}"):
                return
            time.sleep(0.01)
        raise AssertionError("the kernel does not mark the routes as linkdown")

    def tagged(self) -> list[tuple[Key, Fields]]:
        seen = self.observe()
        found = [expand(*seen.unpack(body)) for body in seen.own]
        return sorted((one.key, one.fields) for one in found)
