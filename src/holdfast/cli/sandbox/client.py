"""What a client plugged into a LAN of the router would get, tried for real."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Interface, ip_address

from holdfast.cli import namespaces
from holdfast.cli.sandbox import advertisement, dhcp, ground
from holdfast.cli.sandbox.ground import Lan, SandboxNetwork
from holdfast.errors import HoldfastError
from holdfast.resources.spec.durations import format_duration
from holdfast.resources.uplinks.health_target import Target
from holdfast.runtime.probes import probe

_HOST = 0x1000  # the client's own part of its IPv6 addresses
_REFUSED = "code 5"  # of DNS
_OFFER_S, _ADVERTISEMENT_S, _ANSWER_S = 6.0, 4.0, 2.0


def look(lan: Lan, laid: SandboxNetwork) -> list[tuple[str, str]]:
    """What and how, line by line; found out by a process in the network of the clients."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            namespaces.join_network(ground.place(ground.CLIENTS))
            found: list[tuple[str, str]] = []
            try:
                found.extend(_findings(lan, laid))
            except (HoldfastError, OSError) as error:
                found.append(("problem", str(error)))
            os.write(writer, json.dumps(found).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return [(what, how) for what, how in json.loads(said)] if said else []


def _findings(lan: Lan, laid: SandboxNetwork) -> Iterator[tuple[str, str]]:
    offer = dhcp.ask(lan.far, _OFFER_S)
    yield "DHCP", _offered(offer)
    heard = advertisement.ask(lan.far, _ADVERTISEMENT_S)
    yield "IPv6", _heard(heard)
    if offer is not None and offer.router is not None:
        _configure(lan, offer)
        yield from _names(offer.dns)
        yield from _beyond(laid, 4)
    if heard is not None and heard.lifetime_s and heard.prefixes:
        own = _configure6(lan, heard)
        yield "address", ", ".join(map(str, own))
        yield from _names(heard.dns)
        yield from _beyond(laid, 6)


def _names(servers: Sequence[IPv4Address | IPv6Address]) -> Iterator[tuple[str, str]]:
    for server in servers[:1]:
        target = Target("dns", server, port=53, name="www.example.net")
        problem = asyncio.run(probe(target, _ANSWER_S))
        if problem.endswith(_REFUSED):
            problem += ", which is what dnsmasq says while it knows no server to ask"
        yield "names", problem or f"{server} answers"


def _beyond(laid: SandboxNetwork, version: int) -> Iterator[tuple[str, str]]:
    for uplink in laid.uplinks:
        gateway = uplink.gateway if version == 4 else uplink.gateway6
        problem = asyncio.run(probe(Target("ping", ip_address(gateway)), _ANSWER_S))
        how = f"the provider behind {uplink.nic.ifname} answers"
        yield "beyond", problem or (how if version == 4 else f"{how} over IPv6")


def _configure(lan: Lan, offer: dhcp.Offer) -> None:
    address = f"{offer.address}/{offer.prefix_length}"
    ground.run("ip", "address", "add", address, "dev", lan.far)
    # A client on another LAN of the router may have been here before.
    ground.run("ip", "route", "replace", "default", "via", str(offer.router), "dev", lan.far)


def _configure6(lan: Lan, heard: advertisement.Advertisement) -> list[IPv6Interface]:
    """An address of each prefix, as a client makes it for itself."""
    own = [IPv6Interface((prefix[_HOST], prefix.prefixlen)) for prefix in heard.prefixes]
    for address in own:
        ground.run("ip", "address", "add", str(address), "dev", lan.far, "nodad")
    router = ("via", heard.router, "dev", lan.far)
    # Before those that the kernel makes of advertisements by itself.
    ground.run("ip", "-6", "route", "replace", "default", *router, "metric", "1")
    return own


def _offered(offer: dhcp.Offer | None) -> str:
    if offer is None:
        return "nobody offers an address"
    words = [f"{offer.address}/{offer.prefix_length} for {format_duration(offer.lease_s)}"]
    if offer.router is not None:
        words.append(f"router {offer.router}")
    if offer.dns:
        words.append(f"DNS {', '.join(map(str, offer.dns))}")
    if offer.domain:
        words.append(f"domain {offer.domain}")
    return ", ".join(words)


def _heard(heard: advertisement.Advertisement | None) -> str:
    if heard is None:
        return "no router advertises itself"
    words = [f"prefix {prefix}" for prefix in heard.prefixes] or ["no prefix"]
    words.append(f"router {heard.router}" if heard.lifetime_s else "no default route")
    if heard.mtu:
        words.append(f"MTU {heard.mtu}")
    if heard.dns:
        words.append(f"DNS {', '.join(map(str, heard.dns))}")
    return ", ".join(words)
