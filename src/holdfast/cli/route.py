"""`holdfast route`: what the node advertises, every session, and whose each is."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.characters import escaped_json
from holdfast.cli import output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import say
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.api import routes_pb2 as pb
    from holdfast.api.client import Client

_CALL_S = 60.0
_WATCH_S = 2.0
_TABLES = ("peers", "prefixes", "bfd", "ospf")


@click.group()
@click.option(
    "--socket", "place", metavar="PATH", type=click.Path(path_type=Path), help="Another socket."
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Holds the token of the owner who declares; without, HOLDFAST_TOKEN does.",
)
@click.pass_context
def command(context: click.Context, place: Path | None, token_file: Path | None) -> None:
    """Look at routing control, and declare routes for an owner.

    Who declares is said by its token, which is never an argument: it stands in a file or in
    HOLDFAST_TOKEN. Looking needs none where the socket may be opened.
    """
    paths: Paths = context.obj
    context.obj = _Asking(paths, place, token_file)


class _Asking:
    def __init__(self, paths: Paths, place: Path | None, file: Path | None) -> None:
        self.paths, self.place, self.file = paths, place, file

    @contextmanager
    def client(self, token: str = "") -> Iterator[Client]:
        from holdfast.api import sockets
        from holdfast.api.client import connected

        if self.place is not None:
            with connected(str(self.place), token) as client:
                yield client
            return
        with (
            sockets.folder(self.paths) as folder,
            connected(f"{folder}/{sockets.ROUTES.name}", token) as client,
        ):
            yield client

    def status(self, owner: str) -> pb.RouteStatusReply:
        from holdfast.api import routes_pb2 as pb

        with self.client() as client:
            request = pb.RouteStatusRequest(owner=owner)
            return client.ask("Routes.Status", request, pb.RouteStatusReply, _CALL_S)

    def declare(
        self, put: Sequence[pb.RouteObject] = (), withdraw: Sequence[pb.RouteKey] = (), **more: Any
    ) -> int:
        """Says what became of each; 1 where something was refused."""
        from holdfast.api import routes_pb2 as pb
        from holdfast.client.requests import token_of

        request = pb.DeclareRoutesRequest(put=put, withdraw=withdraw, **more)
        with self.client(token_of("", self.file or "")) as client:
            reply = client.ask("Routes.Declare", request, pb.DeclareRoutesReply, _CALL_S)
        refused = [outcome for outcome in reply.outcomes if outcome.code != "OK"]
        for outcome in reply.outcomes:
            if outcome.code == "OK":
                how = (
                    "unchanged"
                    if outcome.unchanged
                    else "in place"
                    if outcome.applied
                    else "accepted"
                )
                click.echo(f"{outcome.resource}: {how}")
            else:
                what = outcome.resource or "an object"
                say([f"{what}: {outcome.code}: {outcome.message}"], sys.stderr)
        return Exit.FAILED if refused else Exit.OK


_owner = click.option("--owner", default="", metavar="NAME", help="Only what this owner declares.")
_watch = click.option("-w", "--watch", is_flag=True, help="Show it again every two seconds.")


def _show(asking: _Asking, form: str, tables: Sequence[str], owner: str, watch: bool) -> int:
    while True:
        found = _document(asking.status(owner), tables)
        if form == "table":
            click.echo("\n".join(_lines(found)))
        else:
            output.write(found.items(), form, sys.stdout)
        if not watch:
            return Exit.OK
        time.sleep(_WATCH_S)


def _document(reply: pb.RouteStatusReply, tables: Sequence[str]) -> dict[str, Any]:
    from holdfast.api.json_form import to_dict

    def rows(messages: Any) -> list[dict[str, Any]]:
        return [to_dict(message) for message in messages]

    summary = reply.summary
    found = {
        "peers": rows(summary.peers),
        "prefixes": rows(summary.prefixes),
        "bfd": rows(summary.bfd_sessions),
        "ospf": rows(summary.ospf_interfaces),
    }
    chosen: dict[str, Any] = {name: found[name] for name in tables}
    if tuple(tables) == _TABLES:
        chosen |= {
            "frr": rows([summary.frr_status])[0],
            "owners": rows(reply.owners),
            "objects": rows(reply.objects),
        }
    return chosen


_COLUMNS = {
    "peers": (
        "neighbor_address", "remote_as", "state", "owner", "prefixes_received", "prefixes_sent",
        "uptime", "bfd_status",
    ),
    "prefixes": ("prefix", "protocol", "state", "owner"),
    "bfd": (
        "peer_address", "state", "owner", "min_rx_ms", "min_tx_ms", "detect_multiplier", "uptime",
    ),
    "ospf": ("interface_name", "area_id", "state", "owner", "neighbor_count", "cost"),
    "owners": ("owner", "registered", "connected", "objects"),
}  # fmt: skip


def _lines(found: dict[str, Any]) -> Iterator[str]:
    if "frr" in found:
        frr = found["frr"]
        yield f"FRR {frr['version']} answers" if frr["connected"] else "FRR does not answer"
    for name, columns in _COLUMNS.items():
        if name not in found:
            continue
        rows = [[_cell(row[column]) for column in columns] for row in found[name]]
        heads = [column.replace("_", " ").upper() for column in columns]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        yield f"\n{name}: {len(rows)}"
        for row in (heads, *rows) if rows else ():
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(cells).rstrip()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    from holdfast.characters import escaped

    return escaped(str(value)) or "-"


@command.command()
@_owner
@_watch
@output.option
@click.pass_obj
def status(asking: _Asking, owner: str, watch: bool, output: str) -> int:
    """Show everything: FRR, sessions, what is advertised, and whose each is."""
    return _show(asking, output, _TABLES, owner, watch)


def _table(name: str, about: str) -> None:
    @command.command(name=name, help=about)
    @_owner
    @_watch
    @output.option
    @click.pass_obj
    def shown(asking: _Asking, owner: str, watch: bool, output: str) -> int:
        return _show(asking, output, (name,), owner, watch)


_table("peers", "Show BGP neighbours, and whose each is.")
_table("prefixes", "Show prefixes, and how far each has come.")
_table("bfd", "Show sessions of BFD.")
_table("ospf", "Show the interfaces that OSPF runs on.")


@command.command()
@_owner
@click.option("-w", "--watch", is_flag=True, help="Go on with those that come.")
@click.option("--after", type=int, default=0, metavar="N", help="Those after number N.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Such as PEER_UP; repeatable.")
@click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json")), default="table",
    show_default=True, help="For people, or one JSON object a line.",
)  # fmt: skip
@click.pass_obj
def events(
    asking: _Asking, owner: str, watch: bool, after: int, types: tuple[str, ...], form: str
) -> int:
    """Show what happened to sessions and prefixes."""
    from holdfast.api import routes_pb2 as pb
    from holdfast.characters import escaped
    from holdfast.client.requests import event_of

    request = pb.RouteEventsRequest(after=after, owner=owner, event_types=types, follow=watch)
    with asking.client() as client:
        replies = client.stream(
            "Routes.Events", request, pb.RouteEventReply, None if watch else _CALL_S
        )
        for event in map(event_of, replies):
            if form == "json":
                row = {name: getattr(event, name) for name in event.__slots__}
                click.echo(escaped_json(json.dumps(row)))
            elif event.missed:
                say([f"{event.missed} events were dropped before they were read"], sys.stderr)
            else:
                when = time.strftime("%F %T", time.localtime(event.time))
                whose = f" {event.owner}" if event.owner else ""
                click.echo(escaped(f"{event.number} {when} {event.type}{whose}: {event.message}"))
    return Exit.OK


@command.command()
@click.option(
    "-f", "--file", required=True, metavar="FILE", type=click.File("rb"), help="`-`: stdin."
)
@click.option("--dry-run", is_flag=True, help="Say what would become of it.")
@click.option("--each", is_flag=True, help="Take what can be taken.")
@click.pass_obj
def apply(asking: _Asking, file: Any, dry_run: bool, each: bool) -> int:
    """Declare and withdraw in one step what FILE lists: {put: […], withdraw: […]}, in the fields
    of RouteObject and RouteKey."""
    from holdfast.api import json_form
    from holdfast.api import routes_pb2 as pb
    from holdfast.config.document import SourceFile, parse

    found = parse(SourceFile(file.name, file.read()), "`put` and `withdraw`")
    request = json_form.from_dict(found.data, pb.DeclareRoutesRequest(), file.name)
    return asking.declare(request.put, request.withdraw, dry_run=dry_run, each=each)


_protocol = click.option(
    "--protocol", type=click.Choice(("bgp", "ospf")), default="bgp", show_default=True
)


@command.command()
@click.argument("prefix")
@_protocol
@click.option("--community", "communities", multiple=True, metavar="N:N", help="Repeatable.")
@click.option("--med", type=click.IntRange(0, 0xFFFFFFFF))
@click.option("--local-preference", type=click.IntRange(0, 0xFFFFFFFF))
@click.option("--next-hop", default="")
@click.pass_obj
def advertise(asking: _Asking, /, prefix: str, **attributes: Any) -> int:
    """Declare that PREFIX is advertised."""
    from holdfast.client.requests import advertised

    return asking.declare([advertised(prefix, **attributes)])


@command.command()
@click.argument("prefix")
@_protocol
@click.pass_obj
def withdraw(asking: _Asking, prefix: str, protocol: str) -> int:
    """Advertise PREFIX no more."""
    from holdfast.client.requests import prefix_key

    return asking.declare(withdraw=[prefix_key(prefix, protocol)])


@command.command()
@click.argument("address")
@click.argument("remote_as", type=click.IntRange(1, 0xFFFFFFFF))
@click.option("--description", default="")
@click.option("--bfd", is_flag=True, help="End the session as soon as BFD sees a failure.")
@click.option("--ipv6", is_flag=True, help="IPv6 as well as IPv4.")
@click.pass_obj
def peer(
    asking: _Asking, address: str, remote_as: int, description: str, bfd: bool, ipv6: bool
) -> int:
    """Declare the BGP neighbour ADDRESS of the AS REMOTE_AS."""
    from holdfast.api import route_control_pb2 as rc
    from holdfast.api import routes_pb2 as pb

    families = [rc.ADDRESS_FAMILY_IPV4_UNICAST]
    declared = rc.BGPPeer(
        neighbor_address=address,
        remote_as=remote_as,
        description=description,
        bfd_enabled=bfd,
        address_families=families + [rc.ADDRESS_FAMILY_IPV6_UNICAST] * ipv6,
    )
    return asking.declare([pb.RouteObject(peer=declared)])


@command.command(name="remove-peer")
@click.argument("address")
@click.pass_obj
def remove_peer(asking: _Asking, address: str) -> int:
    """Withdraw the BGP neighbour ADDRESS."""
    from holdfast.api import routes_pb2 as pb

    return asking.declare(withdraw=[pb.RouteKey(peer=address)])
