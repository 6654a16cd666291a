"""`holdfast events`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holdfast.characters import escaped_json
from holdfast.cli import arguments, complete, daemon, output
from holdfast.cli.exit import Exit
from holdfast.cli.terminal import Style, say
from holdfast.dataclass import dataclass, replace
from holdfast.errors import LedgerError
from holdfast.paths import Paths

if TYPE_CHECKING:
    from holdfast.runtime.event_log import Filter, Missed
    from holdfast.state.events import StoredEvent

# Enough to see what happened a moment ago.
_LAST = 50
# Between two tries to find a daemon that ended.
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Wanted:
    filter: Filter
    after: int
    last: int
    follow: bool


def _known(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Of a misspelt one there is never an event, and somebody may be waiting for it."""
    from holdfast.engine.event_kinds import EVENT_KINDS

    for kind in kinds:
        if kind not in EVENT_KINDS:
            from holdfast.resources.spec.nearest import nearest

            hint = nearest(kind, EVENT_KINDS) or f"; there are {', '.join(EVENT_KINDS)}"
            raise click.UsageError(f"there are no events of the kind {kind!r}{hint}")
    return kinds


def _whole(resource: str) -> str:
    """No event is about a name alone: whoever gives one would wait for nothing."""
    kind, slash, name = resource.partition("/")
    if resource and not (kind and slash and name):
        raise click.UsageError(
            f"{resource!r} is no resource: give its kind and name, such as Interface/wan, or look"
            f" for the word with --subject {resource}"
        )
    return resource


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with those that come.")
@click.option(
    "--after", metavar="N", type=arguments.NUMBER, default=None, help="Those after number N."
)
@click.option(
    "--last",
    metavar="N",
    type=arguments.NUMBER,
    default=_LAST,
    show_default=True,
    help="Without --after: so many of the newest.",
)
@click.option(
    "--kind",
    metavar="KIND",
    multiple=True,
    callback=lambda _ctx, _param, kinds: _known(kinds),
    shell_complete=complete.event_kinds,
    help="Only this kind; may be repeated.",
)
@click.option("--subject", metavar="TEXT", default="", help="Only with TEXT in the subject.")
@click.option(
    "--resource",
    metavar="KIND/NAME",
    default="",
    callback=lambda _ctx, _param, resource: _whole(resource),
    shell_complete=complete.resources,
    help="Only about this resource.",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="For people, or for programs; with --follow, JSON is one event per line.",
)
@click.pass_obj
def command(
    paths: Paths,
    follow: bool,
    after: int | None,
    last: int,
    kind: tuple[str, ...],
    subject: str,
    resource: str,
    form: str,
) -> int:
    """Show what happened: the daemon's events, or those in the ledger where no daemon runs."""
    from holdfast.runtime.event_log import Filter

    chosen = Filter(frozenset(kind), subject, resource)
    wanted = Wanted(chosen, after or 0, 0 if after else last, follow)
    found = _follow(paths, wanted) if follow else _once(paths, wanted)
    try:
        if form == "table":
            _table(found)
        elif follow:
            _json_lines(found)
        else:
            _document(found)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED  # which is how following ends: nothing to be said
    return Exit.OK


def _table(found: Iterator[StoredEvent | Missed]) -> None:
    from holdfast.render import event as story

    style = Style.of(sys.stdout)
    count = 0
    for event in found:
        say([story.line(event, style, time.strftime("%Y-%m-%d"))], sys.stdout)
        sys.stdout.flush()
        count += 1
    if not count:
        say(["there are no such events"], sys.stderr)


def _json_lines(found: Iterator[StoredEvent | Missed]) -> None:
    from holdfast.render import event as story

    for event in found:
        print(escaped_json(json.dumps(story.entry(event), ensure_ascii=False)), flush=True)


def _document(found: Iterator[StoredEvent | Missed]) -> None:
    from holdfast.engine import document
    from holdfast.render import event as story

    members = (("format_version", document.FORMAT_VERSION), ("events", map(story.entry, found)))
    output.write(members, "json", sys.stdout)


def _once(paths: Paths, wanted: Wanted) -> Iterator[StoredEvent | Missed]:
    with daemon.connect(paths, reads=True) as found:
        yield from of_daemon(found, wanted) if found is not None else _of_ledger(paths, wanted)


def _follow(paths: Paths, wanted: Wanted) -> Iterator[StoredEvent | Missed]:
    """Whoever of daemon and ledger can be read; a daemon that ends is waited for."""
    from holdfast.api.conditions import Gone, Silent

    while True:
        try:
            for event in _once(paths, wanted):
                yield event
                wanted = replace(wanted, after=number(event), last=0)
        except Gone:
            say(["the daemon ended; waiting for another one"], sys.stderr)
        except Silent as error:
            say([str(error)], sys.stderr)
        except LedgerError:
            # Not for us to read, and no daemon there to read it: this one was, a moment ago.
            if not wanted.after:
                raise
        time.sleep(_AGAIN_S)


def number(event: StoredEvent | Missed) -> int:
    from holdfast.runtime.event_log import Missed

    return event.replay_after if isinstance(event, Missed) else event.sequence


def of_daemon(found: daemon.Daemon, wanted: Wanted) -> Iterator[StoredEvent | Missed]:
    from holdfast.agent.services.wire import event_from
    from holdfast.api import holdfast_pb2 as pb

    request = pb.ReadEventsRequest(
        after=wanted.after,
        last=wanted.last,
        kinds=sorted(wanted.filter.kinds),
        subject=wanted.filter.subject,
        resource=wanted.filter.resource,
        follow=wanted.follow,
    )
    limit = None if wanted.follow else daemon.READ_S
    replies = found.client.stream("Events.Read", request, pb.ReadEventsReply, limit)
    return map(event_from, replies)


def _of_ledger(paths: Paths, wanted: Wanted) -> Iterator[StoredEvent | Missed]:
    from holdfast.runtime.event_log import POLL_S, Mark, read_last, read_page

    mark = Mark(paths)
    mark.changed()
    if wanted.last:
        page = read_last(paths, wanted.last, wanted.filter)
    else:
        page = read_page(paths, wanted.after, wanted.filter)
    while True:
        if page.missed is not None:
            yield page.missed
        yield from page.events
        if not page.full:
            if not wanted.follow:
                return
            while not mark.changed():
                time.sleep(POLL_S)
        page = read_page(paths, page.cursor, wanted.filter)
