"""The client library against the real socket: what it declares stays declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.api import sockets
from holdfast.client import RouteError, Routes, Unavailable
from holdfast.paths import Paths
from tests.agent.routes.conftest import Served, serving
from tests.agent.routes.test_services import prefix, until
from tests.runtime.routes.memory import EDGE_TOKEN, NET_TOKEN

HELD = "BGPPrefix/prefix-10.1.0.0-16"


def held(served: Served) -> list[str]:
    return [str(one) for one in served.declarations.kept.get("Owner/edge", {})]


def test_it_declares_and_says_what_is_refused(served: Served) -> None:
    with sockets.folder(served.paths) as folder:
        place = f"{folder}/{sockets.ROUTES.name}"
        with Routes("edge", token=EDGE_TOKEN, socket=place) as routes:
            routes.advertise("10.1.0.0/16", med=0)
            assert held(served) == [HELD]
            with pytest.raises(RouteError) as refused:
                routes.advertise("10.1.0.0/99")
            assert refused.value.code == "INVALID_ARGUMENT"
            assert routes.sync([prefix("10.2.0.0/16")]) == [HELD]
            until(lambda: served.desk.leases.connected("edge"))
        with pytest.raises(RouteError, match="token"):
            Routes("edge", token=NET_TOKEN, socket=place).open()


def test_it_asserts_again_when_holdfast_comes_back(tmp_path: Path) -> None:
    sockets.make_folder(Paths(tmp_path))
    with sockets.folder(Paths(tmp_path)) as folder:
        routes = Routes("edge", token=EDGE_TOKEN, socket=f"{folder}/{sockets.ROUTES.name}")
        with serving(tmp_path) as served:
            routes.open()
            routes.advertise("10.1.0.0/16")
            until(lambda: served.desk.leases.connected("edge"))
        with pytest.raises(Unavailable):
            routes.status()
        with serving(tmp_path) as again:  # which remembers nothing
            until(lambda: held(again) == [HELD])
            routes.close()
