"""HealthCheck: whether something answers, asked again and again over one path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.engine.intent import Waiting
from holdfast.resources.resource import Fault, Kind, Resource, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.dns_name import domain
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    integer,
    link_reference,
    no_networks,
    optional,
    parsed,
)
from holdfast.resources.spec.values import Address, address, mark

_HOUR = 3600.0
_TIMEOUT = 3.0
_PORTS = {"http": 80, "dns": 53}
# Which types have which fields; the others have no use for them.
_FIELDS = {
    "port": ("tcp", "http", "dns"),
    "path": ("http",),
    "host": ("http",),
    "queryName": ("dns",),
}


def parse_path(text: str) -> str:
    # It goes into a request line: a blank or a newline would end it there.
    if not re.fullmatch(r"/[!-~]*", text):
        raise ValueError(f"{text!r} is not a path such as /health: ASCII without blanks, after '/'")
    return text


class HealthCheck(Spec):
    type: str = optional(
        choice("ping", "tcp", "http", "dns"),
        "`ping`: echo request; `tcp`: connect; `http`: GET, any answer below 400; `dns`: query",
        default="ping",
    )
    role: str = optional(
        choice("link", "next-hop", "internet", "service", "policy"),
        "what the answer tells of; it stands where the check is said to be unhealthy",
        default="next-hop",
    )
    address_family: str | None = optional(
        choice("ipv4", "ipv6"), "that of `target`; ipv6 for `dsliteRemote`, else ipv4"
    )
    target: Address | None = optional(address(), "the address to ask")
    target_source: str = optional(
        choice("auto", "static", "defaultGateway", "dsliteRemote"),
        "`static`: `target`; `defaultGateway`: the gateway learned over `interface`, or the far end"
        " of its PPP session; `dsliteRemote`: the far end of the tunnel; `auto`: `target` where it"
        " is given, else the far end of a tunnel, else the gateway",
        default="auto",
    )
    interface: str | None = optional(link_reference(), "the link to ask through")
    mark: int | None = optional(
        mark(),
        "ask with this mark: over the table that it leads to; where not given, with that of the"
        " candidate that names the check",
    )
    port: int | None = optional(
        integer(1, 65535), "for `tcp`, which needs it; `http` takes 80 and `dns` 53"
    )
    path: str | None = optional(
        parsed(parse_path, "path", {"pattern": "^/[!-~]*$"}, reach=no_networks),
        "for `http`; / where not given",
    )
    host: str | None = optional(
        domain(no_networks), "for `http`: the Host header, else the address"
    )
    query_name: str | None = optional(
        domain(no_networks), "for `dns`, which needs it: the name to look up"
    )
    interval: float = optional(duration(0.1, _HOUR), "from one probe to the next", default=60.0)
    given_timeout: float | None = optional(
        duration(0.01, 60.0),
        "how long to wait for an answer; 3s where not given, or `interval` where that is shorter",
        name="timeout",
    )
    healthy_threshold: int = optional(
        integer(1, 100), "so many answers in a row make it healthy", default=2
    )
    unhealthy_threshold: int = optional(
        integer(1, 100), "so many failures in a row make it unhealthy", default=3
    )

    @property
    def timeout(self) -> float:
        if self.given_timeout is not None:
            return self.given_timeout
        return min(_TIMEOUT, self.interval)

    @property
    def version(self) -> int:
        """4 or 6."""
        if self.target is not None:
            return self.target.version
        if self.address_family is not None:
            return 6 if self.address_family == "ipv6" else 4
        return 6 if self.target_source == "dsliteRemote" else 4

    @property
    def asked_port(self) -> int:
        """0 where the type has none."""
        return self.port or _PORTS.get(self.type, 0)


def check(resource: Resource) -> Iterator[Fault]:
    spec: HealthCheck = resource.spec
    yield from _check_target(spec)
    for name, types in _FIELDS.items():
        value = spec.query_name if name == "queryName" else getattr(spec, name)
        if value is not None and spec.type not in types:
            yield Fault((name,), f"has no meaning for `type: {spec.type}`")
    if spec.type == "tcp" and spec.port is None:
        yield Fault(("port",), "is missing; `type: tcp` needs it")
    if spec.type == "dns" and spec.query_name is None:
        yield Fault(("queryName",), "is missing; `type: dns` needs it")
    if spec.mark == 0:
        yield Fault(("mark",), "0 is what packets without a mark have; leave it out")
    if spec.timeout > spec.interval:
        message = "is longer than `interval`: the next probe would be due before this one is over"
        yield Fault(("timeout",), message)


def _check_target(spec: HealthCheck) -> Iterator[Fault]:
    if spec.target is not None and spec.target_source not in ("auto", "static"):
        message = f"has no meaning with `targetSource: {spec.target_source}`"
        yield Fault(("target",), message)
    if spec.target_source == "static" and spec.target is None:
        yield Fault(("target",), "is missing; `targetSource: static` needs it")
    if spec.target is None and spec.target_source != "static" and spec.interface is None:
        yield Fault(("interface",), "is missing; without `target` it tells whom to ask")
    if spec.target is not None and spec.address_family not in (None, f"ipv{spec.target.version}"):
        message = f"{spec.target} is not {spec.address_family}, which `addressFamily` says"
        yield Fault(("target",), message)
    if spec.target_source == "dsliteRemote" and spec.address_family == "ipv4":
        yield Fault(("addressFamily",), "the far end of a DS-Lite tunnel has an IPv6 address")


def intents(resource: Resource, site: Site) -> Iterator[Waiting]:
    """Nothing is made for it; but whoever asks how it is shall not be told that all is well."""
    verdict = site.facts.verdicts.get(resource.name)
    if verdict is not None and not verdict.healthy:
        reason = f"{resource.spec.role} unhealthy: {verdict.reason}"
        yield Waiting(resource.id, resource.place, reason, keeps=False)


KINDS = (
    Kind(
        HealthCheck,
        "Asks a target again and again, and says whether it is healthy.",
        (),
        "type: ping\ntarget: 192.0.2.254\ninterface: wan\ninterval: 5s\nunhealthyThreshold: 3\n",
        intents,
        check,
        effect="`holdfast serve` probes the target; its verdict decides between the candidates of"
        " default route policies",
        open_to_others=nothing_against,
        cross_checks="uplinks.policy_checks",
        needs_facts=True,
        has_verdict=True,
    ),
)
