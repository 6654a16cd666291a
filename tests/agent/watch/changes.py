"""Another program that changes routes of its own, in small portions, as they come from BGP.

    python -m tests.agent.watch.changes add|replace TURNS RATE

Each turn is 5 000 changes, RATE of them a second. `add` adds them all in one turn and deletes them
in the next; `replace` gives them another gateway each time. Prints how many it made, and in how
many seconds.
"""

from __future__ import annotations

import sys
import time

from holdfast.engine.kinds.route import Nexthop, pack_key, template
from holdfast.host.netlink.routes.route_codec import RTM_DELROUTE, RTM_NEWROUTE, Leg, Shape, created
from holdfast.host.netlink.socket import (
    BATCH_MESSAGES,
    CREATE,
    EXCL,
    REPLACE,
    REQUEST,
    NetlinkSocket,
)

TURN = 5_000
_PORTION = 10
_BGP = 186


def _way(number: int) -> Shape:
    return created(template(4), [Leg(Nexthop(f"192.0.2.{2 + number % 200}"), 0)], _BGP)


def main(how: str, turns: str, rate: str) -> None:
    sock = NetlinkSocket()
    keys = [pack_key(bytes((10, at >> 8, at & 255, 0)), 24) for at in range(TURN)]
    made, began = 0, time.monotonic()
    for turn in range(int(turns)):
        if how == "replace":
            kind, flags, shape = RTM_NEWROUTE, CREATE | REPLACE, _way(turn)
        else:
            kind, flags = (RTM_DELROUTE, 0) if turn % 2 else (RTM_NEWROUTE, CREATE | EXCL)
            shape = _way(0)
        for at in range(0, TURN, _PORTION):
            part = keys[at : at + _PORTION]
            failed = sock.transact_blocks(
                shape.requests(kind, REQUEST | flags, part, BATCH_MESSAGES)
            )
            assert not failed, failed
            made += len(part)
            ahead = began + made / float(rate) - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
    print(made, time.monotonic() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
