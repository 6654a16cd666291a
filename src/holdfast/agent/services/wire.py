"""What the daemon tells, as messages of its API, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.api import holdfast_pb2 as pb
from holdfast.engine import document
from holdfast.engine.plan import Plan
from holdfast.runtime.event_log import Missed
from holdfast.runtime.phases import NO_VERDICT, ActiveCandidate, Phase, ResourceStatus
from holdfast.runtime.status import Past, Status, Trial
from holdfast.state import values
from holdfast.state.events import StoredEvent

if TYPE_CHECKING:  # a command that asks the daemon needs nothing of what it works with
    from holdfast.agent.daemon_status import DaemonStatus


def status_to(status: Status, daemon: DaemonStatus) -> pb.StatusReply:
    past = status.past
    reply = pb.StatusReply(
        router=status.router,
        healthy=status.healthy,
        last_pass="" if past.last_pass is None else json.dumps(past.last_pass),
        summary=status.summary,
        namespace="" if status.namespace is None else json.dumps(status.namespace),
        troubles=daemon.troubles,
        resource_troubles=[trouble for trouble in daemon.troubles if trouble.of_resource],
        passes=pb.Passes(
            count=daemon.passes,
            last=daemon.last_pass,
            seconds=daemon.seconds,
            causes=daemon.causes,
            generation=daemon.generation,
        ),
    )
    if past.generation:
        reply.generation.CopyFrom(pb.Generation(number=past.generation, state=past.state))
    if past.trial is not None:
        trial = past.trial
        reply.trial.CopyFrom(
            pb.Trial(
                generation=trial.generation,
                state=trial.state,
                deadline=trial.deadline,
                lifelines=trial.lifelines,
            )
        )
    for resource in status.resources:
        reply.resources.add(
            resource=resource.resource,
            place=resource.place,
            phase=resource.phase.value,
            artifacts=resource.artifacts,
            reason=resource.reason,
            masked_by=resource.masked_by,
            masked_until=resource.masked_until,
            labels=resource.labels,
            annotations=resource.annotations,
            active=_active_to(resource.active),
        )
    for name, verdict in daemon.verdicts.items():
        if verdict is None:
            reply.health_checks.add(name=name, unknown=True, reason=NO_VERDICT)
        else:
            reply.health_checks.add(name=name, healthy=verdict.healthy, reason=verdict.reason)
    return reply


def _active_to(active_candidate: ActiveCandidate | None) -> pb.ActiveCandidate | None:
    if active_candidate is None:
        return None
    return pb.ActiveCandidate(
        name=active_candidate.name,
        since=active_candidate.since,
        why=active_candidate.why,
        others=active_candidate.others,
    )


def _active_from(active_candidate: pb.ActiveCandidate) -> ActiveCandidate:
    since = active_candidate.since if active_candidate.HasField("since") else None
    return ActiveCandidate(
        active_candidate.name, since, active_candidate.why, tuple(active_candidate.others)
    )


def status_from(reply: pb.StatusReply) -> Status:
    last = json.loads(reply.last_pass) if reply.last_pass else None
    told = reply.trial
    trial = Trial(told.generation, told.state, told.deadline, tuple(told.lifelines))
    past = Past(
        reply.generation.number,
        reply.generation.state,
        last,
        trial if reply.HasField("trial") else None,
    )
    resources = [
        ResourceStatus(
            resource.resource,
            resource.place,
            Phase(resource.phase),
            resource.artifacts,
            resource.reason,
            tuple(resource.masked_by),
            resource.masked_until if resource.HasField("masked_until") else None,
            dict(resource.labels),
            dict(resource.annotations),
            _active_from(resource.active) if resource.HasField("active") else None,
        )
        for resource in reply.resources
    ]
    # A map has no order on the wire.
    order = list(document.summary(Plan(())))
    summary = dict(sorted(reply.summary.items(), key=lambda item: order.index(item[0])))
    of_resources = frozenset(reply.resource_troubles)
    troubles = tuple(trouble for trouble in reply.troubles if trouble not in of_resources)
    namespace = json.loads(reply.namespace) if reply.namespace else None
    return Status(reply.router, reply.healthy, resources, summary, past, troubles, namespace)


def event_to(event: StoredEvent | Missed) -> pb.ReadEventsReply:
    if isinstance(event, Missed):
        lagged = pb.Lagged(missed=event.count, replay_after=event.replay_after)
        return pb.ReadEventsReply(lagged=lagged)
    return pb.ReadEventsReply(
        event=pb.Event(
            sequence=event.sequence,
            time=event.time,
            kind=event.kind,
            subject=event.subject,
            message=event.message,
            generation=event.generation,
            data=values.dump(event.data),
        )
    )


def event_from(reply: pb.ReadEventsReply) -> StoredEvent | Missed:
    if reply.HasField("lagged"):
        return Missed(reply.lagged.missed, reply.lagged.replay_after)
    event = reply.event
    return StoredEvent(
        event.sequence,
        event.time,
        event.kind,
        event.subject,
        event.message,
        event.generation,
        values.load_mapping(event.data),
    )
