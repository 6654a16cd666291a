"""IPv4 routes of equal destination, table, TOS and metric. The kernel keeps them in a list, ours
and others', of which the first is in effect; it tells them in the order of that list."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from holdfast.host.foreign_state import routes
from holdfast.host.netlink import tags
from holdfast.host.netlink.routes.route_decode import key_of, pick, select
from holdfast.host.netlink.routes.route_read import dump_runs
from holdfast.host.netlink.socket import NetlinkSocket

_FEW = 64  # destinations that are looked for in the memory of a dump
_UNICAST = 1


def beside_others(sock: NetlinkSocket, keys: set[bytes]) -> list[bytes]:
    """Of the routes to these destinations, those that do not stand alone."""
    found = []
    for _, group in itertools.groupby(_to(sock, keys), key_of):
        members = list(group)  # one in most cases, of a million
        if len(members) > 1:
            found += [one for equal in _by_identity(members).values() for one in _several(equal)]
    return found


def there(sock: NetlinkSocket, keys: set[bytes]) -> dict[routes.Identity, list[bytes]]:
    """All that lead to these destinations, whoever made them."""
    return _by_identity(_to(sock, keys))


def _by_identity(bodies: Iterable[bytes]) -> dict[routes.Identity, list[bytes]]:
    found: dict[routes.Identity, list[bytes]] = defaultdict(list)
    for body in bodies:
        found[routes.identity(body)].append(body)
    return found


def _to(sock: NetlinkSocket, keys: set[bytes]) -> Iterator[bytes]:
    if not keys:
        return
    dump = dump_runs(sock, 4)
    if len(keys) <= _FEW:
        yield from pick(dump, 4, keys)
    else:
        for run in dump.runs:
            yield from select(run.bodies(), 4, keys)


def _several(equal: list[bytes]) -> list[bytes]:
    """None where there is one, or where they are the kernel's own for broadcasts on several links:
    the order of those says nothing."""
    matters = any(body[5] != tags.KERNEL or body[7] == _UNICAST for body in equal)
    return equal if len(equal) > 1 and matters else []
