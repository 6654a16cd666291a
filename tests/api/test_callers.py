"""Who calls a real daemon, by its sockets and by tokens, and what each may do there."""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits, sockets, tokens
from holdfast.api.client import Client, connected
from holdfast.errors import Refused
from holdfast.resources.dynamic.tokens import as_declared
from tests.agent.two_providers import until
from tests.api.conftest import ROUTER, Served, declare
from tests.namespace import Namespace
from tests.resources.parts import admitting

LONG = 120.0
CI, NEXT, OTHER, MAIN = (secrets.token_urlsafe(32) for _ in range(4))
STATUS = pb.StatusRequest(last_pass=True)


def digest_line(token: str) -> str:
    return as_declared(tokens.digest_of(token))


def source(name: str, **fields: Any) -> str:
    return json.dumps({"source": name, **fields})


def sources(**more: Any) -> dict[str, str]:
    """ci and other have tokens and no sockets, main is a manager that may read plans."""
    ci = admitting()[2] | {"tokens": [digest_line(CI)]} | more
    return ROUTER | {
        "DynamicConfigSource/ci": json.dumps(ci),
        "DynamicConfigSource/other": source("Owner/other", tokens=[digest_line(OTHER)]),
        "DynamicConfigSource/main": source(
            "Manager/main", tokens=[digest_line(MAIN)], grants=["plan"]
        ),
    }


def part(name: str = "Owner/ci", generation: int = 1) -> bytes:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps(
        {
            "apiVersion": "config.holdfast.dev/v1alpha1",
            "kind": "DynamicConfigPart",
            "metadata": {"name": "app"},
            "spec": {"source": name, "generation": generation, "observedAt": now},
        }
    ).encode()


def put(client: Client, name: str = "Owner/ci", generation: int = 1) -> str:
    asked = pb.PutPartRequest(document=part(name, generation))
    return client.ask("Dynamic.Put", asked, pb.PutPartReply, LONG).ref


def status(client: Client) -> pb.StatusReply:
    return client.ask("Router.Status", STATUS, pb.StatusReply, LONG)


def as_one(served: Served, token: str, name: str = "holdfast.sock") -> Client:
    """A client with a token."""
    found = served.client(name)
    return Client(found.channel, token)


def code(client: Client, said: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
    """Of a call for the status with these fields in its metadata."""
    call = client.channel.unary_unary(
        "/holdfast.v1.Router/Status",
        request_serializer=pb.StatusRequest.SerializeToString,
        response_deserializer=pb.StatusReply.FromString,
    )
    try:
        call(STATUS, timeout=LONG, metadata=said)
    except grpc.RpcError as error:
        found: grpc.StatusCode = error.code()
        return found
    return grpc.StatusCode.OK


def tell(served: Served, resources: dict[str, str], wanted: Any, what: str) -> None:
    declare(served.file, resources)
    until(wanted, what)


def speaks(served: Served, token: str, name: str = "holdfast.sock") -> bool:
    bearer = (("authorization", f"Bearer {token}"),)
    with sockets.folder(served.paths) as folder, connected(f"{folder}/{name}") as client:
        return code(client, bearer) is grpc.StatusCode.OK


def metrics() -> str:
    with socket.create_connection(("127.0.0.1", 9473), LONG) as found:
        found.sendall(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:9473\r\n\r\n")
        data = b""
        while piece := found.recv(1 << 16):
            data += piece
    return data.decode()


@pytest.fixture
def told(served: Served) -> Served:
    tell(served, sources(), lambda: speaks(served, CI), "the token of Owner/ci counts")
    return served


def test_an_owner_does_what_is_its_own_and_nothing_else(told: Served) -> None:
    for name in ("holdfast.sock", "holdfast-ro.sock"):
        client = as_one(told, CI, name)
        generation = 1 + (name != "holdfast.sock")
        assert put(client, generation=generation) == f"Owner/ci#{generation}"
        assert status(client).router
        asked = pb.ListPartsRequest()
        listed = b"".join(
            piece.data for piece in client.stream("Dynamic.List", asked, pb.Document, LONG)
        )
        assert [piece["source"] for piece in json.loads(listed)["parts"]] == ["Owner/ci"]
        with pytest.raises(Refused, match="Owner/ci may not speak for"):
            put(client, "Owner/other")
        with pytest.raises(Refused, match="Owner/ci may not speak for"):
            declared = pb.DeclareRequest(source="Owner/other")
            client.ask("Dynamic.Declare", declared, pb.DeclareReply, LONG)
        with pytest.raises(Refused, match="name Owner/ci"):
            withdraw = pb.WithdrawPartRequest(source="Owner/other")
            client.ask("Dynamic.Withdraw", withdraw, pb.WithdrawPartReply, LONG)
        with pytest.raises(Refused, match=r"Owner/ci may not call Router\.Apply: it takes root"):
            next(client.stream("Router.Apply", pb.ApplyRequest(), pb.ApplyReply, LONG))
        with pytest.raises(Refused, match=r"may not call Router\.Plan"):
            next(client.stream("Router.Plan", pb.PlanRequest(), pb.PlanReply, LONG))
    withdraw = pb.WithdrawPartRequest(source="Owner/ci")
    reply = as_one(told, CI).ask("Dynamic.Withdraw", withdraw, pb.WithdrawPartReply, LONG)
    assert reply.ref == "Owner/ci#2"


def test_a_manager_does_what_it_is_granted_besides(told: Served) -> None:
    client = as_one(told, MAIN, "holdfast-ro.sock")
    assert next(client.stream("Router.Plan", pb.PlanRequest(), pb.PlanReply, LONG)).HasField("head")
    with pytest.raises(Refused, match=r"`grants: \[config\]` in the DynamicConfigSource"):
        list(client.stream("Dynamic.Render", pb.RenderRequest(), pb.Document, LONG))
    with pytest.raises(Refused, match="Manager/main may not speak for"):
        put(client)


def test_without_a_token_the_two_sockets_are_as_they_were(told: Served) -> None:
    assert put(told.client()) == "Owner/ci#1"
    with pytest.raises(Refused, match="this socket is for reading"):
        put(told.client("holdfast-ro.sock"))
    assert status(told.client("holdfast-ro.sock")).router


@pytest.mark.parametrize(
    "said",
    [
        (("authorization", f"Bearer {NEXT}"),),
        (("authorization", f"Bearer {digest_line(CI)}"),),
        (("authorization", f"Bearer {CI} "),),
        (("authorization", f"Bearer {CI[:-1]}"),),
        (("authorization", f"bearer {CI}"),),
        (("authorization", CI),),
        (("authorization", "Bearer "),),
        (("authorization", ""),),
        (("authorization", "Basic cm9vdDpyb290"),),
        (("authorization", f"Bearer {'x' * 4000}"),),
        (("authorization", f"Bearer {CI}"), ("authorization", f"Bearer {OTHER}")),
        (("authorization", f"Bearer {CI}"), ("authorization", f"Bearer {CI}")),
    ],
)
def test_a_token_that_nobody_has(told: Served, said: tuple[tuple[str, str], ...]) -> None:
    """Neither root's socket nor the one for reading makes up for it."""
    for name in ("holdfast.sock", "holdfast-ro.sock"):
        assert code(told.client(name), said) is grpc.StatusCode.UNAUTHENTICATED
    assert CI not in told.daemon.said()


def test_control_bytes_in_a_token(told: Served) -> None:
    """A client of gRPC does not send them; what sends them all the same is not let in."""
    with connected_raw(told) as raw:
        for value in (
            b"Bearer " + CI.encode() + b"\x00",
            b"Bearer \x1b[2J" + b"x" * 20,
            b"\xff" * 30,
        ):
            raw.sendall(_request(value))
            answered = raw.recv(1 << 16)
            assert b"OK" not in answered
    assert speaks(told, CI)
    assert "\x1b" not in told.daemon.said()


def connected_raw(served: Served) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.settimeout(LONG)
    place = served.socket("holdfast.sock")
    here = os.open(place.parent, os.O_PATH)
    found.connect(f"/proc/self/fd/{here}/{place.name}")
    os.close(here)
    found.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9 - 6) + b"\x04" + bytes(5))
    return found


def _request(value: bytes) -> bytes:
    """A HEADERS frame of HTTP/2 with that value, in literals, and an empty message."""

    def literal(name: bytes, content: bytes) -> bytes:
        assert len(name) < 127 and len(content) < 127
        return b"\x00" + bytes([len(name)]) + name + bytes([len(content)]) + content

    block = b"".join(
        literal(name, content)
        for name, content in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/holdfast.v1.Router/Status"),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            (b"authorization", value),
        )
    )
    head = len(block).to_bytes(3) + b"\x01\x04" + (1).to_bytes(4)
    data = bytes(5)
    return head + block + len(data).to_bytes(3) + b"\x00\x01" + (1).to_bytes(4) + data


def test_ten_thousand_calls_of_nobody_hold_up_nobody(told: Served) -> None:
    """Each is counted, the log says it once in a while, and whoever may is answered meanwhile."""
    client, wrong = told.client(), (("authorization", f"Bearer {NEXT}"),)
    owner, right = told.client(), (("authorization", f"Bearer {CI}"),)
    call = client.channel.unary_unary(
        "/holdfast.v1.Router/Status",
        request_serializer=pb.StatusRequest.SerializeToString,
        response_deserializer=pb.StatusReply.FromString,
    )
    codes: dict[grpc.StatusCode, int] = {}
    tries = 10_000
    for _ in range(tries // 50):
        waiting = [call.future(STATUS, timeout=LONG, metadata=wrong) for _ in range(50)]
        for answer in waiting:
            codes[answer.code()] = codes.get(answer.code(), 0) + 1
        assert code(owner, right) is grpc.StatusCode.OK
    assert status(told.client()).router
    assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert sum(codes.values()) == tries
    lines = [line for line in metrics().splitlines() if line.startswith("holdfast_api_refused")]
    counted = [int(float(line.split()[1])) for line in lines if 'socket="holdfast.sock"' in line]
    assert sum(counted) >= tries
    reasons = {'reason="unauthenticated"', 'reason="denied"', 'reason="too-many"'}
    assert all(any(reason in line for reason in reasons) for line in lines)
    assert NEXT not in "".join(lines)
    said = told.daemon.said()
    assert said.count("was refused") <= 2 + LONG / limits.REFUSALS_SAID_S
    assert NEXT not in said


def test_a_socket_of_its_own(served: Served) -> None:
    place = served.paths.under("/run/holdfast/owner-ci.sock")
    tell(served, sources(socket=True), place.exists, "the socket of Owner/ci")
    client = served.client("owner-ci.sock")
    until(lambda: code(client, ()) is grpc.StatusCode.OK, "it answers")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert put(client) == "Owner/ci#1"
    assert put(as_one(served, CI, "owner-ci.sock"), generation=2) == "Owner/ci#2"
    with pytest.raises(Refused, match="may not speak for"):
        put(client, "Owner/other")
    with pytest.raises(Refused, match="over this socket, calls are those of Owner/ci alone"):
        put(as_one(served, OTHER, "owner-ci.sock"))
    assert not client.about().read_only
    tell(served, sources(), lambda: not place.exists(), "it is gone with its declaration")
    assert status(served.client()).router


def test_where_a_socket_is_and_who_may_open_it(served: Served) -> None:
    """A folder that others may write is none for it, and the trouble says what to do."""
    folder = served.root / "srv"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    wanted = sources(socket="/srv/ci.sock", socketGroup="daemon")
    tell(served, wanted, lambda: "others may write the folder" in served.daemon.said(), "a trouble")
    folder.chmod(0o755)
    place = folder / "ci.sock"
    until(place.exists, "it is made once that is mended")
    found = place.stat()
    assert stat.S_IMODE(found.st_mode) == 0o660
    assert found.st_gid == __import__("grp").getgrnam("daemon").gr_gid
    with connected(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/ci.sock") as client:
        assert put(client) == "Owner/ci#1"


def test_a_token_is_replaced_under_traffic(told: Served) -> None:
    """With two digests, no call of a program that changes over is refused."""
    token, failed, over = [CI], [], threading.Event()

    def calls() -> None:
        client = told.client()
        while not over.is_set():
            said = (("authorization", f"Bearer {token[0]}"),)
            found = code(client, said)
            if found is not grpc.StatusCode.OK:
                failed.append(found)

    thread = threading.Thread(target=calls)
    thread.start()
    try:
        both = sources(tokens=[digest_line(CI), digest_line(NEXT)])
        tell(told, both, lambda: speaks(told, NEXT), "the next one counts as well")
        token[0] = NEXT
        time.sleep(0.2)  # a call with the old one may be under way
        declare(told.file, sources(tokens=[digest_line(NEXT)]))
        until(lambda: not speaks(told, CI), "the old one is nobody's")
    finally:
        over.set()
        thread.join(LONG)
    assert not failed


def test_a_stream_ends_with_the_token_that_it_was_asked_for_with(told: Served) -> None:
    client = as_one(told, CI)
    asked = pb.ReadEventsRequest(follow=True)
    events = client.stream("Events.Read", asked, pb.ReadEventsReply, LONG)
    assert next(events).event.sequence
    declare(told.file, sources(tokens=[digest_line(NEXT)]))
    with pytest.raises(Refused, match="not one of a DynamicConfigSource"):
        for _ in events:
            continue


def test_digests_in_a_file_and_in_the_environment(netns: Namespace, root: Path) -> None:
    from tests.agent.daemon import serve

    root.mkdir()
    netns.veth("wan0", "far0")
    file, kept = root / "router.yaml", root / "etc/ci.tokens"
    kept.parent.mkdir()
    kept.write_text(f"# the one in use\n{digest_line(CI)}\n")
    kept.chmod(0o600)
    wanted = sources() | {
        "DynamicConfigSource/ci": source("Owner/ci", tokenFile="/etc/ci.tokens"),
        "DynamicConfigSource/other": source("Owner/other", tokens=["${OTHER}"]),
        "DynamicConfigSource/main": source("Manager/main", tokens=["${MAIN}", "${NOT_THERE}"]),
    }
    declare(file, wanted)
    environment = {"OTHER": OTHER, "MAIN": digest_line(MAIN)}
    with serve(root, file, environment) as daemon:
        daemon.wait_for("because of the start")
        served = Served(root, file, netns, daemon)
        with served.held:
            for token in (CI, OTHER, MAIN):
                until(lambda token=token: speaks(served, token), "it counts")  # type: ignore[misc]
            daemon.wait_for("Manager/main is not heard")
            assert "${NOT_THERE}, which the daemon's environment does not have" in daemon.said()
            kept.write_text(f"{digest_line(NEXT)}\n")
            until(lambda: speaks(served, NEXT), "it is read again")
            assert not speaks(served, CI)
            kept.chmod(0o666)
            until(lambda: not speaks(served, NEXT), "a file that others may write counts for none")
            daemon.wait_for("others than its owner may write")
            for secret in (CI, OTHER, NEXT, MAIN):
                assert secret not in daemon.said()


def test_no_digest_or_token_is_shown(told: Served) -> None:
    client = told.client()
    shown = b""
    for call, asked in (
        ("Dynamic.Render", pb.RenderRequest()),
        ("Router.Generations", pb.GenerationsRequest(show=1)),
        ("Dynamic.List", pb.ListPartsRequest()),
    ):
        shown += b"".join(piece.data for piece in client.stream(call, asked, pb.Document, LONG))
    newest = pb.GenerationsRequest(show=status(client).generation.number)
    shown += b"".join(
        piece.data for piece in client.stream("Router.Generations", newest, pb.Document, LONG)
    )
    assert b"DynamicConfigSource" in shown
    assert digest_line(CI).encode() not in shown
