"""Advertises a service address while a TCP connection to the service can be made.

    HOLDFAST_TOKEN=… python advertise_while_healthy.py edge 192.0.2.10/32 127.0.0.1 8080

A fifth word is the path of the socket, where it is another. Where this program dies, the owner's
lease withdraws the address.
"""

from __future__ import annotations

import asyncio
import sys

from holdfast.client import AsyncRoutes, RouteError

EVERY_S, LONGEST_S, FALL, RISE = 1.0, 1.0, 3, 2


async def healthy(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(LONGEST_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def main(
    owner: str, prefix: str, host: str, port: str, socket: str = "/run/holdfast/routes.sock"
) -> None:
    async with AsyncRoutes(owner, socket=socket) as routes:
        advertised, row = False, 0
        while True:
            well = await healthy(host, int(port))
            row = 0 if well == advertised else row + 1
            if row >= (RISE if well else FALL):
                try:
                    await (routes.advertise(prefix) if well else routes.withdraw(prefix))
                    advertised, row = well, 0
                except RouteError as error:
                    print(f"{prefix}: {error.code}: {error}", file=sys.stderr)
            await asyncio.sleep(EVERY_S)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
