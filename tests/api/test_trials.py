"""Who decides about a trial on a real daemon, besides operators: a manager, by its number."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api.client import Client
from holdfast.errors import Refused
from holdfast.state.confirmations import CONFIRMED, OPEN, REVERTED
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.api.conftest import ROUTER, Served, declare
from tests.api.test_callers import LONG, as_one, digest_line, source, speaks, status
from tests.cli import confirm_scene as scene
from tests.cli.conftest import Holdfast

FLEET, OTHER, CI = (secrets.token_urlsafe(32) for _ in range(3))
ROUTE = {"IPv4Route/office": "{destination: 10.9.0.0/16, gateway: 192.0.2.254}"}


def router(*grants: str) -> dict[str, str]:
    """Manager/fleet with these grants, another with all the others, and an owner."""
    fleet = source("Manager/fleet", tokens=[digest_line(FLEET)], grants=list(grants))
    other = source("Manager/other", tokens=[digest_line(OTHER)], grants=["plan", "config"])
    return ROUTER | {
        "DynamicConfigSource/fleet": fleet,
        "DynamicConfigSource/other": other,
        "DynamicConfigSource/ci": source("Owner/ci", tokens=[digest_line(CI)]),
    }


@pytest.fixture
def told(served: Served) -> Iterator[Served]:
    declare(served.file, router("trials"))
    until(lambda: speaks(served, FLEET), "the token of Manager/fleet counts")
    served.daemon.rest()
    try:
        yield served
    finally:
        for pid in scene.keepers(served.root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def begin(served: Served, *grants: str, within: str = "1h") -> int:
    """A trial of one more route, and these grants; answers its generation."""
    candidate = served.root / "candidate.yaml"
    declare(candidate, router(*grants) | ROUTE)
    arguments = ("apply", str(candidate), "--yes", "--confirm-within", within)
    Holdfast(served.root, served.root).ok(*arguments)
    served.daemon.wait_for("is on trial")
    until(lambda: status(served.client()).HasField("trial"), "the status tells of the trial")
    return status(served.client()).trial.generation


def confirm(client: Client, generation: int = 0) -> pb.ConfirmReply:
    asked = pb.ConfirmRequest(generation=generation)
    return client.ask("Router.Confirm", asked, pb.ConfirmReply, LONG)


def take_back(client: Client, generation: int = 0) -> pb.TakeBackReply:
    asked = pb.TakeBackRequest(generation=generation)
    return client.ask("Router.TakeBack", asked, pb.TakeBackReply, LONG)


def refusal(served: Served, generation: int) -> str:
    """What Manager/fleet is told about this generation, which does not wait."""
    with pytest.raises(Refused) as found:
        confirm(as_one(served, FLEET), generation)
    return str(found.value)


def decided(served: Served, generation: int) -> tuple[str, str, list[str]]:
    """How it stands with it, why, and what its events say."""
    with Ledger.read(served.paths) as ledger:
        found = next(one for one in ledger.confirmations() if one.generation == generation)
        events = [
            event.message
            for event in ledger.events()
            if event.kind in ("confirmed", "reverted") and event.subject.endswith(f" {generation}")
        ]
    return found.state, found.reason, events


def routes(served: Served) -> str:
    return served.netns.ip("route show")


def test_confirmed_by_a_manager(told: Served) -> None:
    number = begin(told, "trials")
    fleet = as_one(told, FLEET, "holdfast-ro.sock")
    for ask in (confirm, take_back):
        with pytest.raises(Refused, match="Manager/fleet has to name the generation"):
            ask(fleet)
        for wrong in (number - 1, number + 1):
            with pytest.raises(Refused, match=f"{wrong} does not wait.*; {number} does"):
                ask(fleet, wrong)
    assert not scene.asked(told.root), "an operator may be waiting with what is left there"
    assert decided(told, number) == (OPEN, "", [])
    reply = confirm(fleet, number)
    assert (reply.generation, reply.installed) == (number, str(told.file))
    state, _, events = decided(told, number)
    assert state == CONFIRMED
    assert events == [f"took the place of {told.file}; Manager/fleet confirmed it"]
    assert "10.9.0.0/16" in routes(told)
    assert told.file.read_bytes() == (told.root / "candidate.yaml").read_bytes()


def test_taken_back_by_a_manager(told: Served) -> None:
    before = routes(told)
    number = begin(told, "trials")
    assert routes(told) != before
    reply = take_back(as_one(told, FLEET), number)
    assert reply.waited
    reason = "it was taken back by Manager/fleet"
    assert reply.told == f"generation {number} was reverted: {reason}"
    assert decided(told, number) == (REVERTED, reason, [reason])
    assert routes(told) == before
    with pytest.raises(Refused, match="nothing waits to be confirmed"):
        confirm(as_one(told, FLEET), number)
    assert not take_back(as_one(told, FLEET), number).waited


def test_refused_to_everybody_else(told: Served) -> None:
    number = begin(told, "trials")
    for ask in (confirm, take_back):
        with pytest.raises(Refused, match=r"`grants: \[trials\]` in the .*of Manager/other"):
            ask(as_one(told, OTHER), number)
        with pytest.raises(Refused, match=r"Owner/ci may not call Router\..*: it takes root"):
            ask(as_one(told, CI), number)
        with pytest.raises(Refused, match="this socket is for reading"):
            ask(told.client("holdfast-ro.sock"), number)
    assert decided(told, number) == (OPEN, "", [])
    assert take_back(told.client()).waited, "an operator need not name it"


def test_a_candidate_that_takes_the_grant_away(told: Served) -> None:
    """It is in force while it waits, so that it goes back unless an operator keeps it."""
    number = begin(told, "plan")
    until(lambda: "may not call" in refusal(told, number + 1), "the candidate is gone by")
    with pytest.raises(Refused, match=r"`grants: \[trials\]` in the .*of Manager/fleet"):
        confirm(as_one(told, FLEET), number)
    assert decided(told, number)[0] == OPEN
    assert take_back(told.client(), number).waited
    until(lambda: "nothing waits" in refusal(told, number), "the served file is gone by")
    following = begin(told, "trials")
    assert following > number
    assert confirm(as_one(told, FLEET), following).generation == following


def test_too_late(told: Served) -> None:
    before = routes(told)
    number = begin(told, "trials", within="5s")
    until(lambda: decided(told, number)[0] == REVERTED, "reverted at the deadline")
    with pytest.raises(Refused, match=f"generation {number} was reverted, as nobody confirmed it"):
        confirm(as_one(told, FLEET), number)
    assert routes(told) == before


def test_too_late_while_the_ledger_is_held(told: Served) -> None:
    """It is not asked for in time, whoever gets hold of the ledger first."""
    before = routes(told)
    number = begin(told, "trials", within="5s")
    with Ledger.open(told.paths, command="a long pass", wait=60):
        scene.until(lambda: scene.overdue(told.root), "the deadline passed")
        call = as_one(told, FLEET).channel.unary_unary(
            "/holdfast.v1.Router/Confirm",
            request_serializer=pb.ConfirmRequest.SerializeToString,
            response_deserializer=pb.ConfirmReply.FromString,
        )
        bearer = (("authorization", f"Bearer {FLEET}"),)
        asked = pb.ConfirmRequest(generation=number)
        answer = call.future(asked, timeout=LONG, metadata=bearer)
        scene.until(lambda: scene.asked(told.root), "asked")
    assert answer.exception() is not None
    until(lambda: decided(told, number)[0] == REVERTED, "reverted")
    assert routes(told) == before


def test_the_daemon_was_killed_meanwhile(told: Served) -> None:
    """The next one knows the trial, and who may decide about it."""
    number = begin(told, "trials")
    told.daemon.signal(signal.SIGKILL)
    scene.kill(scene.keepers(told.root))
    with serve(told.root, told.file) as daemon:
        daemon.wait_for("is on trial")
        until(lambda: speaks(told, FLEET), "it answers")
        assert decided(told, number)[0] == OPEN
        assert confirm(as_one(told, FLEET), number).generation == number
        assert "10.9.0.0/16" in routes(told)
        assert daemon.end() == 0
