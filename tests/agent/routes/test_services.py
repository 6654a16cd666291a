"""What Holdfast adds to RouteControl, and leases, over the real socket."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from holdfast.api import route_control_pb2 as rc
from holdfast.api import routes_pb2 as pb
from holdfast.runtime.routes.sessions import FRR, Seen
from holdfast.runtime.routes.status_of import Trouble
from tests.agent.routes.conftest import Served
from tests.runtime.routes.memory import EDGE_TOKEN, NET_TOKEN

EDGE = (("authorization", f"Bearer {EDGE_TOKEN}"),)
NET = (("authorization", f"Bearer {NET_TOKEN}"),)


def prefix(text: str) -> pb.RouteObject:
    return pb.RouteObject(prefix=pb.AdvertisedPrefix(prefix=text, protocol=rc.PROTOCOL_BGP))


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_batch_is_taken_whole_or_each_on_its_own(served: Served) -> None:
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=[prefix("10.1.0.0/16")]), NET)
    put = [prefix("10.1.0.0/16"), prefix("nonsense"), prefix("10.2.0.0/16")]
    request = pb.DeclareRoutesRequest(put=put)
    reply = served.ask("Routes.Declare", request, EDGE)
    assert [one.code for one in reply.outcomes] == ["ALREADY_EXISTS", "INVALID_ARGUMENT", "ABORTED"]
    assert "Owner/edge" not in served.declarations.kept
    request.each = True
    reply = served.ask("Routes.Declare", request, EDGE)
    assert [one.code for one in reply.outcomes] == ["ALREADY_EXISTS", "INVALID_ARGUMENT", "OK"]
    assert [str(one) for one in served.declarations.kept["Owner/edge"]] == [
        "BGPPrefix/prefix-10.2.0.0-16"
    ]


def test_a_sync_sweeps_and_an_old_one_does_not(served: Served) -> None:
    both = [prefix("10.1.0.0/16"), prefix("10.2.0.0/16")]
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=both), EDGE)
    first = served.ask("Routes.BeginSync", pb.BeginSyncRequest(), EDGE).sync
    second = served.ask("Routes.BeginSync", pb.BeginSyncRequest(), EDGE).sync
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=both[:1]), EDGE)
    old = pb.CompleteSyncRequest(sync=first)
    assert served.code("Routes.CompleteSync", old, EDGE) == "FAILED_PRECONDITION"
    dry = pb.CompleteSyncRequest(sync=second, dry_run=True)
    assert list(served.ask("Routes.CompleteSync", dry, EDGE).withdrawn) == [
        "BGPPrefix/prefix-10.2.0.0-16"
    ]
    assert len(served.declarations.kept["Owner/edge"]) == 2
    served.ask("Routes.CompleteSync", pb.CompleteSyncRequest(sync=second), EDGE)
    assert len(served.declarations.kept["Owner/edge"]) == 1
    assert served.code("Routes.CompleteSync", dry, EDGE) == "FAILED_PRECONDITION"


def test_each_object_tells_how_far_it_is(served: Served) -> None:
    put = [prefix(f"10.{number}.0.0/16") for number in range(1, 5)]
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=put), EDGE)
    served.observed.now = Seen(
        FRR(True),
        advertised={"10.1.0.0/16": ("192.0.2.1",)},
        applied=frozenset({"BGPPrefix/prefix-10.2.0.0-16"}),
    )
    served.observed.failed = {"BGPPrefix/prefix-10.3.0.0-16": Trouble("it says no", 3, 99.0)}
    found = served.ask("Routes.Status", pb.RouteStatusRequest()).objects
    assert [pb.RouteStage.Name(one.stage).removeprefix("ROUTE_STAGE_") for one in found] == [
        "ADVERTISED", "APPLIED", "FAILED", "ACCEPTED",
    ]  # fmt: skip
    assert list(found[0].advertised_to) == ["192.0.2.1"]
    assert (found[2].last_error, found[2].attempts, found[2].next_try) == ("it says no", 3, 99.0)


def lease(served: Served, grace: float) -> None:
    known = served.policies.known
    served.on_loop(lambda: known.update(edge=replace(known["edge"], grace=grace)))


def test_what_nobody_stands_for_is_withdrawn_after_its_grace(served: Served) -> None:
    lease(served, 30.0)
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=[prefix("10.1.0.0/16")]), EDGE)
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=[prefix("10.2.0.0/16")]), NET)
    served.clock[0] += 29.0
    served.ask("Routes.Heartbeat", pb.HeartbeatRequest(), EDGE)
    served.clock[0] += 29.0
    assert served.ask("Routes.Heartbeat", pb.HeartbeatRequest(), EDGE).grace_seconds == 30
    assert served.declarations.kept["Owner/edge"]
    served.clock[0] += 31.0
    until(lambda: not served.declarations.kept["Owner/edge"])
    assert served.declarations.kept["Owner/net"]


def test_a_stream_holds_the_lease(served: Served) -> None:
    lease(served, 30.0)
    served.ask("Routes.Declare", pb.DeclareRoutesRequest(put=[prefix("10.1.0.0/16")]), EDGE)
    stream = served.stream("Routes.Hold", pb.HoldLeaseRequest(), EDGE)
    assert next(stream).grace_seconds == 30
    served.clock[0] += 1000.0
    assert served.on_loop(lambda: served.desk.leases.due(served.policies.known)) == []
    stream.cancel()
    until(lambda: not served.on_loop(lambda: served.desk.leases.connected("edge")))
    served.clock[0] += 31.0
    until(lambda: not served.declarations.kept["Owner/edge"])


def test_events_have_numbers_to_go_on_after(served: Served) -> None:
    for owner in ("edge", "net", "edge"):
        token = EDGE_TOKEN if owner == "edge" else NET_TOKEN
        served.ask("RouteControl.Register", rc.RegisterRequest(owner=owner, token=token))
    until(lambda: len(list(served.stream("Routes.Events", pb.RouteEventsRequest()))) == 3)
    found = list(served.stream("Routes.Events", pb.RouteEventsRequest()))
    assert [one.event.owner for one in found] == ["edge", "net", "edge"]
    rest = served.stream("Routes.Events", pb.RouteEventsRequest(after=found[0].sequence))
    assert [one.sequence for one in rest] == [one.sequence for one in found[1:]]
