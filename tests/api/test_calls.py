"""Every call on a real daemon, on both sockets, and with what is wrong."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import sockets
from holdfast.api.calls import CALLS, Call
from holdfast.api.client import Client
from holdfast.errors import ConfigError, HoldfastError, Refused
from tests.agent.daemon import serve
from tests.agent.two_providers import until
from tests.api.conftest import ROUTER, Served, declare
from tests.namespace import Namespace
from tests.resources.parts import admitting

LONG = 120.0
ADMITTING = ROUTER | {"DynamicConfigSource/ci": json.dumps(admitting()[2])}
TEXT = pb.Form(text=True)


def whole(client: Client, call: str, request: Message, kind: Any) -> bytes:
    return b"".join(piece.data for piece in client.stream(call, request, kind, LONG))


def resources(client: Client) -> list[str]:
    reply = client.ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG)
    return [one.resource for one in reply.resources]


def test_who_answers(served: Served) -> None:
    about = served.client().about()
    assert about.pid == served.daemon.process.pid
    assert (about.file, about.root) == (str(served.file), str(served.root))
    assert about.network_namespace == Path("/proc/self/ns/net").stat().st_ino
    assert not about.read_only
    assert served.client("holdfast-ro.sock").about().read_only


@pytest.mark.parametrize("last_pass", [False, True])
def test_status(served: Served, last_pass: bool) -> None:
    request = pb.StatusRequest(last_pass=last_pass)
    reply = served.client().ask("Router.Status", request, pb.StatusReply, LONG)
    phases = {one.resource: one.phase for one in reply.resources}
    assert phases == {"Interface/wan": "Healthy", "IPv4StaticAddress/wan": "Healthy"}
    assert reply.healthy
    assert reply.generation.number == 1
    assert reply.generation.state == "converged"
    assert reply.passes.count >= 1
    assert json.loads(reply.last_pass)["outcome"] == "converged"


def test_the_plan_is_that_of_the_command(served: Served) -> None:
    client = served.client()
    data = whole(client, "Router.Plan", pb.PlanRequest(), pb.PlanReply)
    plan = json.loads(data)
    assert plan["summary"]["keep"] == 2
    assert plan["config"]["path"] == str(served.file)
    head = next(client.stream("Router.Plan", pb.PlanRequest(), pb.PlanReply, LONG)).head
    assert not head.changes
    assert not head.unknown
    assert whole(client, "Router.Plan", pb.PlanRequest(form=TEXT), pb.PlanReply).startswith(
        b"Plan: nothing to do"
    )


def test_explain(served: Served) -> None:
    client = served.client()
    asked = pb.ExplainRequest(name="address 192.0.2.1/24 dev wan0", form=TEXT)
    assert b"by IPv4StaticAddress/wan" in whole(client, "Router.Explain", asked, pb.Document)
    asked = pb.ExplainRequest(name="IPv4StaticAddress/wan")
    story = json.loads(whole(client, "Router.Explain", asked, pb.Document))
    assert story["phase"] == "Healthy"


def apply(client: Client, **request: Any) -> tuple[pb.ApplyResult, bytes]:
    replies = list(client.stream("Router.Apply", pb.ApplyRequest(**request), pb.ApplyReply, LONG))
    results = [reply.result for reply in replies if reply.HasField("result")]
    assert len(results) == 1
    return results[0], b"".join(reply.data for reply in replies)


def test_apply_takes_what_the_file_says_now(served: Served) -> None:
    client = served.client()
    declare(
        served.file, ROUTER | {"IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.9/24}"}
    )
    result, data = apply(client, form=TEXT)
    assert result.converged
    assert result.generation == 2
    assert b"Converged: 2 artifacts as declared." in data
    found = served.netns.ip_json("addr show dev wan0")[0]["addr_info"]
    assert [one["local"] for one in found if one["family"] == "inet"] == ["192.0.2.9"]
    _, data = apply(client)
    assert json.loads(data)["outcome"] == "converged"


def test_apply_tells_how_far_it_is(served: Served) -> None:
    lines = "".join(f"10.1.{n // 256}.{n % 256}/32\n" for n in range(3000))
    (served.file.parent / "many.routes").write_text(lines)
    many = "{file: many.routes, interface: wan, gateway: 192.0.2.254}"
    declare(served.file, ROUTER | {"RouteList/many": many})
    asked = pb.ApplyRequest(form=TEXT)
    replies = list(served.client().stream("Router.Apply", asked, pb.ApplyReply, LONG))
    kinds = [reply.WhichOneof("part") for reply in replies]
    assert kinds.index("result") < kinds.index("data")
    # The daemon may have begun by itself when the file changed; then nothing was left to do.
    steps = [reply.progress for reply in replies if reply.HasField("progress")]
    assert all(0 <= step.done <= step.total for step in steps)
    assert len(served.netns.ip_json("route show proto 72")) == 3000


def test_apply_of_an_invalid_file_tells_its_problems(served: Served) -> None:
    served.file.write_text("apiVersion: holdfast.dev/v1alpha1\nkind: Router\nspec: [1]\n")
    with pytest.raises(ConfigError) as told:
        apply(served.client())
    assert told.value.exit_code == 3
    assert all(problem.place.startswith(str(served.file)) for problem in told.value.problems)
    assert served.client().ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG).healthy


def test_apply_of_a_mass_delete_is_refused_until_it_is_allowed(served: Served) -> None:
    many = {
        f"IPv4Route/r{n}": f"{{destination: 10.{n}.0.0/16, gateway: 192.0.2.254, interface: wan}}"
        for n in range(30)
    }
    declare(served.file, ROUTER | many)
    assert apply(served.client())[0].converged
    declare(served.file, ROUTER)
    with pytest.raises(Refused, match="allow-mass-delete"):
        apply(served.client())
    assert len(served.netns.ip_json("route show proto 72")) == 30
    assert apply(served.client(), allow_mass_delete=True)[0].converged
    assert served.netns.ip_json("route show proto 72") == []


def events(client: Client, **request: Any) -> list[pb.ReadEventsReply]:
    asked = pb.ReadEventsRequest(**request)
    return list(client.stream("Events.Read", asked, pb.ReadEventsReply, LONG))


def test_events_from_a_number_on_and_by_filter(served: Served) -> None:
    client = served.client()
    for last in (2, 3, 4):
        address = f"{{interface: wan, address: 192.0.2.{last}/24}}"
        declare(served.file, ROUTER | {"IPv4StaticAddress/wan": address})
        apply(client)
    every = [reply.event for reply in events(client)]
    numbers = [event.sequence for event in every]
    assert numbers == list(range(1, len(every) + 1))
    after = [reply.event.sequence for reply in events(client, after=2)]
    assert after == numbers[2:]
    assert [reply.event.sequence for reply in events(client, last=2)] == numbers[-2:]
    created = events(client, kinds=["created"])
    assert {reply.event.kind for reply in created} == {"created"}
    assert len(created) == 4
    assert len(events(client, kinds=["created"], subject="192.0.2.3")) == 1
    assert len(events(client, resource="IPv4StaticAddress/wan")) == len(every)
    assert events(client, resource="Interface/wan") == []
    assert events(client, kinds=["nonsense"]) == []


def test_events_as_they_come(served: Served) -> None:
    client = served.client()
    asked = pb.ReadEventsRequest(follow=True, kinds=["created"])
    stream = client.stream("Events.Read", asked, pb.ReadEventsReply, LONG)
    assert next(stream).event.subject == "address 192.0.2.1/24 dev wan0"
    address = "{interface: wan, address: 192.0.2.77/24}"
    declare(served.file, ROUTER | {"IPv4StaticAddress/wan": address})
    assert next(stream).event.subject == "address 192.0.2.77/24 dev wan0"


def refusal(client: Client, call: Call) -> str:
    try:
        if call.streams:
            list(client.stream(call.short, call.request(), call.reply, LONG))
        else:
            client.ask(call.short, call.request(), call.reply, LONG)
    except HoldfastError as error:
        return str(error)
    return ""


def test_the_socket_for_reading_answers_nothing_else(served: Served) -> None:
    name = "holdfast-ro.sock"
    client = served.client(name)
    answered = [call for call in CALLS.values() if call.service in sockets.services(name)]
    assert len(answered) > len(CALLS) / 2
    for call in answered:
        told = refusal(client, call)
        assert ("this socket is for reading" in told) == (not call.reads), call.short


ROUTE = {
    "apiVersion": "net.holdfast.dev/v1alpha1",
    "kind": "IPv4Route",
    "metadata": {"name": "extra"},
    "spec": {"destination": "10.7.0.0/16", "gateway": "192.0.2.254", "interface": "wan"},
}
PART: dict[str, Any] = {
    "apiVersion": "config.holdfast.dev/v1alpha1",
    "kind": "DynamicConfigPart",
    "metadata": {"name": "ci"},
    "spec": {"source": "Owner/ci", "generation": 1, "observedAt": "2026-01-01T00:00:00Z"},
}


def put(document: Any) -> pb.PutPartRequest:
    return pb.PutPartRequest(document=json.dumps(document).encode())


def spec(**changed: Any) -> dict[str, Any]:
    return PART | {"spec": PART["spec"] | changed}


# Call, what it is asked with, the error that comes back, and some of its words.
WRONG: tuple[tuple[str, Message, type[HoldfastError], str], ...] = (
    ("Router.Explain", pb.ExplainRequest(), HoldfastError, "about nothing"),
    ("Router.Explain", pb.ExplainRequest(name="Nope/x"), HoldfastError, "no such resource"),
    (
        "Router.Explain",
        pb.ExplainRequest(name="a\n\x00b"),
        HoldfastError,
        "is there, declared or claimed",
    ),
    ("Router.Confirm", pb.ConfirmRequest(), Refused, "nothing waits to be confirmed"),
    ("Router.Confirm", pb.ConfirmRequest(generation=7), Refused, "nothing waits"),
    ("Dynamic.Describe", pb.DescribePartRequest(source="Owner/x"), HoldfastError, "no such source"),
    ("Dynamic.Put", pb.PutPartRequest(document=b"{"), HoldfastError, "not JSON"),
    ("Dynamic.Put", pb.PutPartRequest(document=b"[" * 100_000), HoldfastError, "not JSON"),
    ("Dynamic.Put", put([]), ConfigError, "must be"),
    ("Dynamic.Put", put(spec(source="Owner/../x")), ConfigError, "source"),
    ("Dynamic.Put", put(spec(source="Plugin/x")), Refused, "parts of plugins come from their runs"),
    ("Dynamic.Put", put(spec(generation=0)), ConfigError, "generation"),
    ("Dynamic.Put", put(spec(observedAt="2099-01-01T00:00:00Z")), ConfigError, "in the future"),
    ("Dynamic.Put", put(spec(expiresAt="2025-01-01T00:00:00Z")), ConfigError, "not after observed"),
    ("Dynamic.Withdraw", pb.WithdrawPartRequest(), HoldfastError, "contributes nothing"),
    ("Plugins.Run", pb.RunPluginRequest(name="../x"), Refused, "there is no Plugin/../x"),
    ("Actions.Show", pb.ActionRequest(key="no"), Refused, "there is no action no"),
    ("Actions.Approve", pb.ActionRequest(key="no"), Refused, "no"),
    ("Actions.Execute", pb.ExecuteRequest(key="no"), Refused, "no"),
    ("Actions.Execute", pb.ExecuteRequest(dry_run=True), Refused, "needs the key"),
    ("Actions.Rollback", pb.ActionRequest(key="no"), Refused, "no"),
    ("Events.Read", pb.ReadEventsRequest(after=10**9), HoldfastError, "no event 1000000000 yet"),
    ("Events.Read", pb.ReadEventsRequest(after=2**64 - 1), HoldfastError, "no event"),
)


def test_what_is_wrong_is_said_as_on_the_command_line(served: Served) -> None:
    client = served.client()
    for short, request, kind, words in WRONG:
        call = CALLS[short]
        form = "form" in call.request.DESCRIPTOR.fields_by_name
        if form:
            request.form.CopyFrom(TEXT)  # type: ignore[attr-defined]  # it has one
        with pytest.raises(HoldfastError) as told:
            if call.streams:
                list(client.stream(short, request, call.reply, LONG))
            else:
                client.ask(short, request, call.reply, LONG)
        assert type(told.value) is kind, (short, str(request), told.value)
        assert words in str(told.value), (short, str(request))
    assert served.client().ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG).healthy
    assert "a fault of Holdfast's" not in served.daemon.said()


def test_parts(served: Served) -> None:
    client = served.client()
    declare(served.file, ADMITTING)
    until(lambda: "DynamicConfigSource/ci" in resources(client), "the source to be admitted")
    request = put(spec(resources=[ROUTE]))
    reply = client.ask("Dynamic.Put", request, pb.PutPartReply, LONG)
    assert reply.ref == "Owner/ci#1"
    assert not reply.rejected
    until(lambda: bool(served.netns.ip_json("route show 10.7.0.0/16")), "the route")
    listed = json.loads(whole(client, "Dynamic.List", pb.ListPartsRequest(), pb.Document))
    assert [one["status"] for one in listed["parts"]] == ["Active"]
    told = whole(client, "Dynamic.Describe", pb.DescribePartRequest(source="Owner/ci"), pb.Document)
    assert json.loads(told)["parts"][0]["resources"] == [ROUTE]
    rendered = json.loads(whole(client, "Dynamic.Render", pb.RenderRequest(), pb.Document))
    assert rendered["spec"]["resources"][-1] == ROUTE
    twice = put(spec(generation=2, resources=[ROUTE, ROUTE]))
    assert client.ask("Dynamic.Put", twice, pb.PutPartReply, LONG).rejected
    gone = client.ask(
        "Dynamic.Withdraw", pb.WithdrawPartRequest(source="Owner/ci"), pb.WithdrawPartReply, LONG
    )
    assert gone.ref == "Owner/ci#2"
    until(lambda: not served.netns.ip_json("route show 10.7.0.0/16"), "the route to go")


def test_nothing_waits_and_nothing_is_proposed(served: Served) -> None:
    client = served.client()
    reply = client.ask("Router.TakeBack", pb.TakeBackRequest(), pb.TakeBackReply, LONG)
    assert not reply.waited
    listed = client.ask("Actions.List", pb.ListActionsRequest(), pb.Document, LONG)
    assert json.loads(listed.data)["actions"] == []
    journal = client.ask("Actions.Journal", pb.JournalRequest(), pb.Document, LONG)
    assert json.loads(journal.data)["actions"] == []
    done = client.ask("Actions.Execute", pb.ExecuteRequest(), pb.Document, LONG)
    assert json.loads(done.data)["results"] == []
    plugins = client.ask("Plugins.List", pb.ListPluginsRequest(), pb.Document, LONG)
    assert json.loads(plugins.data)["plugins"] == []


def test_a_part_that_comes_before_a_valid_file(netns: Namespace, root: Path) -> None:
    """It is stored, and that is what is said."""
    root.mkdir()
    netns.veth("wan0", "far0")
    file = root / "router.yaml"
    file.write_text("kind: Nonsense\n")
    with serve(root, file) as daemon, ExitStack() as held:
        daemon.wait_for("was never valid")
        served = Served(root, file, netns, daemon, held)
        request = put(spec(resources=[ROUTE]))
        reply = served.client().ask("Dynamic.Put", request, pb.PutPartReply, LONG)
        assert reply.ref == "Owner/ci#1"
        assert "is not in force" in reply.rejected[0]
        declare(file, ADMITTING)
        until(lambda: bool(netns.ip_json("route show 10.7.0.0/16")), "the route of the part")


def test_a_number_that_is_no_longer_kept(served: Served) -> None:
    from holdfast.engine import event_kinds
    from holdfast.state.events import Event
    from holdfast.state.ledger import Ledger

    with Ledger.open(served.paths, command="test", wait=LONG) as ledger:
        newest = ledger.append_events(
            Event(event_kinds.CREATED, "test", str(n)) for n in range(10_100)
        )
    first, *rest = events(served.client(), after=5)
    assert first.lagged.missed == newest - 10_000 - 5
    assert first.lagged.replay_after == newest - 10_000
    assert [reply.event.sequence for reply in rest] == list(range(newest - 9_999, newest + 1))


def test_calls_go_on_while_others_come_and_go(served: Served) -> None:
    """Many at once, some of them broken off, beside passes."""
    from concurrent.futures import ThreadPoolExecutor

    client = served.client()

    def work(number: int) -> bool:
        if number % 3 == 0:
            stream = client.stream(
                "Events.Read", pb.ReadEventsRequest(follow=True), pb.ReadEventsReply, LONG
            )
            next(stream)
            stream.close()  # type: ignore[attr-defined]  # a generator
            return True
        if number % 3 == 1:
            return apply(client)[0].converged
        return client.ask("Router.Status", pb.StatusRequest(), pb.StatusReply, LONG).healthy

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, range(60)))
    until(lambda: served.daemon.process.poll() is None, "the daemon to be there")
