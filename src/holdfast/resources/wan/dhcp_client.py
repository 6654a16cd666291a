"""What the kinds that need a DHCP client have in common: which program it is."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.resources.resource import Fault, Resource
from holdfast.resources.spec.shape import choice, optional

CLIENTS = ("dhcpcd", "dhclient", "networkd")  # the first is the one there is


def client() -> str:
    """The field `client`."""
    found: str = optional(
        choice(*CLIENTS),
        "the program that talks to the server; the others are accepted in files of routerd.net,"
        " and dhcpcd is used in their place",
        default=CLIENTS[0],
    )
    return found


def check(resource: Resource) -> Iterator[Fault]:
    asked = resource.spec.client
    if asked != CLIENTS[0]:
        what = "is used instead" if resource.alias else "is the one there is"
        message = f"Holdfast does not drive {asked}: {CLIENTS[0]} {what}"
        yield Fault(("client",), message, warning=resource.alias)
