"""Plugins: how they did, and a run now."""

from __future__ import annotations

from holdfast.agent.services.backend import Backend, whole
from holdfast.api import holdfast_pb2 as pb
from holdfast.api.callers import Caller
from holdfast.dataclass import dataclass
from holdfast.render import plugin_list
from holdfast.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Plugins:
    backend: Backend

    async def list(self, _request: pb.ListPluginsRequest, _caller: Caller) -> pb.Document:
        startup = self.backend.in_force(self.backend.loop.status).startup

        def work() -> pb.Document:
            with Ledger.read(self.backend.paths) as ledger:
                runs = ledger.runs()
            return whole(plugin_list.document(startup.resources, runs))

        return await self.backend.in_thread(work)

    async def run(self, request: pb.RunPluginRequest, _caller: Caller) -> pb.Document:
        ran = await self.backend.loop.proposers.plugins.run(request.name, dry_run=request.dry_run)
        return whole(ran.document(dry_run=request.dry_run), 0 if ran.well else 1)
