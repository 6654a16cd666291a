"""The driver of BGP: instances, filters, groups, peers, networks and aggregates in bgpd."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Driver, Memory, Result, Scope
from holdfast.engine.kinds.bgp_attributes import ours
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, BGP_NETWORK
from holdfast.engine.kinds.bgp_peer import BGP_PEER, BGP_PEER_GROUP
from holdfast.engine.observed import Observed
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.frr import bgp_steps, bgp_view, network_steps
from holdfast.frr.commands import line
from holdfast.frr.daemon import SETTLES_S, Daemon
from holdfast.frr.lines import BATCH, Step
from holdfast.frr.networks import NetworkSighting, map_is_whole, see_networks
from holdfast.frr.running_config import RunningConfig
from holdfast.frr.singles import Singles, failed

FOLDER = Path("/run/frr")
# Maps that a line below `router bgp` names.
_NAMED = re.compile(r"^ .*route-map (HF-\S+)", re.MULTILINE)


class BgpDriver(Driver):
    kinds = tuple(
        kind.name
        for kind in (
            BGP_INSTANCE, BGP_FILTER, BGP_PEER_GROUP, BGP_PEER, BGP_NETWORK, BGP_AGGREGATE,
        )
    )  # fmt: skip

    memory = "bgp"  # the kinds of which something that tells its maker is there

    def __init__(self, folder: Path = FOLDER, settles: float = SETTLES_S) -> None:
        self._bgpd = Daemon(folder, "bgpd", settles)
        self._claimed: frozenset[Key] = frozenset()
        self._found: Memory | None = None  # by the last look, where bgpd was there to look at
        self._singles = Singles(
            bgp_view.artifact,
            bgp_steps.steps,
            bgp_view.in_the_way,
            lambda key, config: bgp_steps.others_lost(key, config, self._claimed),
        )

    def close(self) -> None:
        self._bgpd.close()

    def observe(self, scope: Scope) -> Observed:
        self._found = None
        if not self._bgpd.exists and not self._is_concerned(scope):
            return Observed(bulk={BGP_NETWORK.name: NetworkSighting(RunningConfig())})
        config = self._bgpd.read()
        self._claimed = frozenset(scope.claims)
        wanted = network_steps.identities(scope, config)
        sightings = bgp_view.sightings(scope, config)
        networks = see_networks(config, wanted)
        found = {key.kind for key, many in sightings.items() if any(seen.tag for seen in many)}
        self._found = frozenset(found | ({BGP_NETWORK.name} if networks.own else set()))
        return Observed(
            sightings,
            bulk={BGP_NETWORK.name: networks},
            losses=bgp_view.losses(scope, config),
        )

    def to_remember(self, planned: Sequence[Operation], before: Memory | None) -> Memory | None:
        known = self._found if self._found is not None else before
        if known is None:
            return None
        return known | {op.kind for op in planned if op.kind in self.kinds}

    def _is_concerned(self, scope: Scope) -> bool:
        if any(batch.kind.name == BGP_NETWORK.name for batch in scope.batches):
            return True
        return any(key.kind in self.kinds for key in (*scope.keys, *scope.claims))

    def content(self, seen: Artifact) -> bytes:
        return bgp_steps.password_of(seen.key, self._bgpd.read())

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        try:
            config = self._bgpd.read(anew=False)
            if operations[0].kind == BGP_NETWORK.name:
                results = self._networks(operations, config, progress)
            else:
                results = self._singles.apply(self._bgpd, operations, config)
                progress(len(operations))
            if any(operation.verb is not Verb.CREATE for operation in operations):
                self._sweep_maps()
        except DriverError as error:
            return [failed(operation, str(error)) for operation in operations]
        return results

    def _networks(
        self,
        operations: Sequence[Operation],
        config: RunningConfig,
        progress: Callable[[int], None],
    ) -> list[Result]:
        jobs = [network_steps.job(operation, config) for operation in operations]
        network_steps.carry_out(jobs, config, self._bgpd)
        now = self._bgpd.read()
        results = [network_steps.result(job, now) for job in jobs]
        progress(sum(operation.count for operation in operations))
        return results

    def _sweep_maps(self) -> None:
        """Maps of ours, as they were made, that nothing names any more."""
        config = self._bgpd.read(anew=False)
        mine = [
            name
            for name in config.route_maps
            if ours(name) and "-" not in name.removeprefix("HF-") and map_is_whole(name, config)
        ]
        if not mine:
            return
        named = set(_NAMED.findall(self._bgpd.text))
        steps = [Step(BATCH, line(f"no route-map {name}")) for name in mine if name not in named]
        if steps:
            self._bgpd.tell(steps)
