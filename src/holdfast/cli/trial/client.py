"""What a client plugged into a LAN of the router would get, tried for real."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from ipaddress import ip_address

from holdfast.agent.probes import probe
from holdfast.cli import namespaces
from holdfast.cli.trial import advertisement, dhcp, ground
from holdfast.cli.trial.ground import Ground, Lan
from holdfast.resources.durations import format_duration
from holdfast.resources.health_target import Target

_OFFER_S, _ADVERTISEMENT_S, _ANSWER_S = 6.0, 4.0, 2.0


def look(lan: Lan, laid: Ground) -> list[tuple[str, str]]:
    """What and how, line by line; found out by a process in the network of the clients."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            namespaces.join_network(ground.place(ground.CLIENTS))
            found = list(_findings(lan, laid))
            os.write(writer, json.dumps(found).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return [(what, how) for what, how in json.loads(said)] if said else []


def _findings(lan: Lan, laid: Ground) -> Iterator[tuple[str, str]]:
    offer = dhcp.ask(lan.far, _OFFER_S)
    yield "DHCP", _offered(offer)
    heard = advertisement.ask(lan.far, _ADVERTISEMENT_S)
    yield "IPv6", _heard(heard)
    if offer is None or offer.router is None:
        return
    _configure(lan, offer)
    for server in offer.dns[:1]:
        target = Target("dns", server, port=53, name="www.example.net")
        problem = asyncio.run(probe(target, _ANSWER_S))
        yield "names", problem or f"{server} answers"
    for uplink in laid.uplinks:
        target = Target("ping", ip_address(uplink.gateway))
        problem = asyncio.run(probe(target, _ANSWER_S))
        yield "beyond", problem or f"the provider behind {uplink.nic.ifname} answers"


def _configure(lan: Lan, offer: dhcp.Offer) -> None:
    address = f"{offer.address}/{offer.prefix_length}"
    ground.run("ip", "address", "add", address, "dev", lan.far)
    ground.run("ip", "route", "add", "default", "via", str(offer.router), "dev", lan.far)


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
