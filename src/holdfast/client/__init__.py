"""Speak to Holdfast's routing control from a program: `Routes`, or `AsyncRoutes` under asyncio.

    from holdfast.client import Routes

    with Routes("edge", token_file="/etc/edge/token") as routes:
        routes.advertise("192.0.2.10/32", communities=["65001:100"])

What was declared is asserted again whenever Holdfast comes back, and the lease is held for as long
as the object is open. The names here stay as they are; what they send may change.
"""

from __future__ import annotations

from holdfast.client.async_routes import AsyncRoutes
from holdfast.client.requests import Event, RouteError, Unavailable
from holdfast.client.routes import Routes

__all__ = ["AsyncRoutes", "Event", "RouteError", "Routes", "Unavailable"]
