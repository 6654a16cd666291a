"""What a session is told: fields that peers and groups of them have alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from holdfast.config.document import Location
from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.kinds import bgp_filter as filters
from holdfast.engine.kinds import bgp_peer as peers
from holdfast.engine.kinds.bgp_peer import FAMILIES
from holdfast.errors import ConfigError
from holdfast.resources.resource import Content, Fault, Folder, Reach, Resource
from holdfast.resources.routing import bfd_use, bgp_filter
from holdfast.resources.routing.bfd_use import BFDUse
from holdfast.resources.routing.bgp_filter import BGPFilter
from holdfast.resources.routing.bgp_instance import BGPInstance
from holdfast.resources.routing.values import (
    as_number,
    frr_text,
    parse_password,
    remote_as,
)
from holdfast.resources.site import Site
from holdfast.resources.spec import secret_file
from holdfast.resources.spec.durations import duration
from holdfast.resources.spec.shape import (
    Spec,
    choice,
    flag,
    integer,
    link_reference,
    listed,
    nested,
    optional,
    reference,
    required,
    text,
)
from holdfast.resources.spec.values import EVERYTHING, Address, address

_FAMILY = {"ipv4": 4, "ipv6": 6}
_STAND_IN = "secret"  # where a password is not to be had


class Family(Spec):
    family: str = required(choice(*_FAMILY), "of the routes")
    import_filter: str | None = optional(
        reference(BGPFilter), "which routes of the peer are taken; where not given, none"
    )
    import_all: bool = optional(flag(), "take all routes of the peer", default=False)
    export_filter: str | None = optional(
        reference(BGPFilter),
        "which routes it is told; where not given, those that this router's AS begins",
    )
    export_all: bool = optional(
        flag(), "tell it all routes, those that other peers told among them", default=False
    )
    max_prefixes: int | None = optional(
        integer(1, 0xFFFFFFFF), "how many it may tell; more end the session"
    )
    max_prefixes_warning: bool = optional(
        flag(), "more are logged, and the session stays", default=False
    )
    max_prefixes_restart: float | None = optional(
        duration(60, 65535 * 60), "after which an ended session begins again, in whole minutes"
    )
    soft_reconfiguration: bool = optional(
        flag(), "keep what the peer told as it told it, to look at what is filtered", default=False
    )
    next_hop_self: bool = optional(
        flag(), "tell it this router as next hop of what others told", default=False
    )
    route_reflector_client: bool = optional(
        flag(), "it is told what other peers of the own AS tell", default=False
    )
    send_default: bool = optional(flag(), "tell it a default route", default=False)
    allow_own_as: int | None = optional(
        integer(1, 10), "how often the own AS may stand in paths that it tells", name="allowOwnAS"
    )


class Session(Spec):
    instance: str | None = optional(
        reference(BGPInstance), "where it belongs; where not given, the one outside of all VRFs"
    )
    remote_as: str | None = optional(
        remote_as(), "that of the neighbour, or whether it is the own", name="remoteAS"
    )
    description: str | None = optional(frr_text(), "for people")
    local_as: int | None = optional(
        as_number(), "the AS number that this neighbour sees instead of the own", name="localAS"
    )
    local_as_path: str = optional(
        choice("both", "no-prepend", "replace"),
        "which of `localAS` and the own stand in paths: both, the second not in what it tells, or"
        " the first in place of the second",
        name="localASPath",
        default="both",
    )
    source: Address | None = optional(address(), "the own address of the session")
    source_interface: str | None = optional(link_reference(), "or the link whose address it is")
    ebgp_multihop: int | None = optional(
        integer(1, 255), "hops to a neighbour of another AS that is not on the link"
    )
    ttl_security: int | None = optional(
        integer(1, 254), "hops that its packets may have come at most (RFC 5082)"
    )
    disable_connected_check: bool = optional(
        flag(), "the neighbour is on the link although no address says so", default=False
    )
    password_file: str | None = optional(
        text("path"),
        "a file that only its owner can read, with the TCP MD5 password on its first line;"
        " relative to the YAML file",
    )
    keepalive: float | None = optional(
        duration(0, 65535), "time between signs of life; needs `holdTime`"
    )
    hold_time: float | None = optional(
        duration(0, 65535), "time without a sign of life after which the neighbour is gone"
    )
    connect_retry: float | None = optional(duration(1, 65535), "time between attempts to reach it")
    advertisement_interval: float | None = optional(
        duration(0, 600), "least time between updates to it"
    )
    passive: bool = optional(flag(), "wait until it connects", default=False)
    shutdown: bool = optional(flag(), "keep the session down", default=False)
    graceful_restart: str | None = optional(
        choice("restart", "helper", "disable"), "otherwise than the instance says"
    )
    extended_nexthop: bool = optional(
        flag(), "IPv4 routes by an IPv6 session may have an IPv6 next hop", default=False
    )
    bfd: BFDUse | None = optional(
        nested(BFDUse), "end the session as soon as BFD sees a failure; `{}` with FRR's times"
    )
    families: tuple[Family, ...] = optional(
        listed(nested(Family), least=0), "what is spoken about", default=()
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        "tcpAO": "no FRR has TCP-AO; `passwordFile` is TCP MD5",
        "tcpAo": "no FRR has TCP-AO; `passwordFile` is TCP MD5",
        "password": "write it into a file that only root can read, and say `passwordFile`",
        "authentication": "`passwordFile` names a file with the TCP MD5 password",
        "multihop": "`ebgpMultihop` says how many hops",
    }


def check(spec: Session) -> Iterator[Fault]:
    yield from _times(spec)
    if spec.source is not None and spec.source_interface is not None:
        yield Fault(("sourceInterface",), "say it here or in `source`, not in both")
    if spec.ebgp_multihop is not None and spec.ttl_security is not None:
        yield Fault(("ttlSecurity",), "says how far the neighbour is: leave `ebgpMultihop` out")
    if spec.remote_as == "internal":
        if spec.ebgp_multihop is not None:
            yield Fault(
                ("ebgpMultihop",), "has no meaning within an AS, which may be any hops wide"
            )
        if spec.local_as is not None:
            yield Fault(("localAS",), "has no meaning where the neighbour is of the own AS")
    if spec.local_as is None and spec.local_as_path != "both":
        yield Fault(("localASPath",), "has no meaning without `localAS`")
    if spec.local_as is not None and spec.remote_as == str(spec.local_as):
        yield Fault(("localAS",), "is that of the neighbour")
    yield from bfd_use.check(spec.bfd, ("bfd",))
    seen: dict[str, int] = {}
    for index, family in enumerate(spec.families):
        at = ("families", index)
        first = seen.setdefault(family.family, index)
        if first != index:
            yield Fault((*at, "family"), f"families[{first}] is {family.family} already")
        yield from _family(family, at, spec)


def _times(spec: Session) -> Iterator[Fault]:
    for name, value in (
        ("keepalive", spec.keepalive),
        ("holdTime", spec.hold_time),
        ("connectRetry", spec.connect_retry),
        ("advertisementInterval", spec.advertisement_interval),
    ):
        if value is not None and value % 1:
            yield Fault((name,), "must be whole seconds")
    if (spec.keepalive is None) != (spec.hold_time is None):
        given, lacking = (
            ("keepalive", "holdTime") if spec.hold_time is None else ("holdTime", "keepalive")
        )
        yield Fault((given,), f"needs `{lacking}` beside it: FRR takes both or none")
        return
    if spec.hold_time is None or spec.keepalive is None:
        return
    if 0 < spec.hold_time < 3:
        yield Fault(("holdTime",), "must be 3s or more, or 0s for a session that never ends by it")
    elif spec.hold_time < 3 * spec.keepalive:
        most = int(spec.hold_time // 3)
        yield Fault(
            ("keepalive",),
            f"must be a third of `holdTime` at most, which is {most}s",
        )
    elif spec.hold_time and not spec.keepalive:
        yield Fault(("keepalive",), "cannot be 0s while `holdTime` is not: the session would end")


def _family(family: Family, at: Location, spec: Session) -> Iterator[Fault]:
    for way, named, everything in (
        ("import", family.import_filter, family.import_all),
        ("export", family.export_filter, family.export_all),
    ):
        if named is not None and everything:
            yield Fault(
                (*at, f"{way}All"), f"says something else than `{way}Filter`: leave one out"
            )
    if family.max_prefixes is None:
        for name, given in (
            ("maxPrefixesWarning", family.max_prefixes_warning),
            ("maxPrefixesRestart", family.max_prefixes_restart is not None),
        ):
            if given:
                yield Fault((*at, name), "has no meaning without `maxPrefixes`")
    elif family.max_prefixes_warning and family.max_prefixes_restart is not None:
        yield Fault((*at, "maxPrefixesRestart"), "has no meaning where the session stays")
    if family.max_prefixes_restart is not None and family.max_prefixes_restart % 60:
        yield Fault((*at, "maxPrefixesRestart"), "must be whole minutes")
    if family.route_reflector_client and spec.remote_as == "external":
        words = "is for neighbours of the own AS, and this one is of another"
        yield Fault((*at, "routeReflectorClient"), words)


def read_password(resource: Resource, folder: Folder) -> Content:
    """It is no part of the configuration that the ledger keeps."""
    spec: Session = resource.spec
    if spec.password_file is None:
        return Content(None)
    at = ("passwordFile",)
    try:
        found = secret_file.read(folder, spec.password_file, at, parse_password, stand_in=_STAND_IN)
    except ConfigError as error:  # of a part, which names no files
        return Content(None, faults=tuple(Fault(at, problem.message) for problem in error.problems))
    return Content(found.value or None, faults=found.faults)


def reaches(resource: Resource) -> Iterator[Reach]:
    """Routes to anywhere may come by a session that takes all, and traffic for anywhere by one that
    tells all or a default route."""
    for index, family in enumerate(resource.spec.families):
        everything = EVERYTHING[_FAMILY[family.family]]
        for name, given in (
            ("importAll", family.import_all),
            ("exportAll", family.export_all),
            ("sendDefault", family.send_default),
        ):
            if given:
                learned = name == "importAll"
                yield Reach(("families", index, name), everything, learned=learned)


@dataclass(frozen=True, slots=True)
class Told:
    """What FRR is told of a session, and what has to be there for it."""

    session: peers.Session
    artifacts: tuple[Artifact, ...]  # that nothing else declares
    requires: tuple[Key, ...]


def told(
    resource: Resource, site: Site, instance: Resource | None, default: tuple[str, ...]
) -> Told:
    """default: the families of a session that says none itself."""
    spec: Session = resource.spec
    local_as = instance.spec.local_as if instance is not None else 0
    profile, profile_key, made = bfd_use.profile(spec.bfd)
    artifacts = [made] if made is not None else []
    requires = [profile_key] if profile_key is not None else []
    families: dict[str, tuple[str, ...]] = {}
    for family in spec.families or tuple(map(_plain, default)):
        number = _FAMILY[family.family]
        maps = [(way, _filter(family, way, number, local_as, site)) for way in ("import", "export")]
        for _, (artifact, declared) in maps:
            requires.append(artifact.key)
            if not declared:
                artifacts.append(artifact)
        names = {way: artifact.key.name for way, (artifact, _) in maps}
        families[FAMILIES[number]] = tuple(_settings(family, names["import"], names["export"]))
    source = str(spec.source) if spec.source is not None else None
    if spec.source_interface is not None:
        source = site.ifname(spec.source_interface)
        requires += site.link_key(source)
    elif spec.source is not None:
        requires += site.holding(spec.source)
    session = peers.Session(
        remote_as=spec.remote_as,
        description=spec.description,
        local_as=_local_as(spec),
        update_source=source,
        ebgp_multihop=spec.ebgp_multihop,
        ttl_security=spec.ttl_security,
        disable_connected_check=spec.disable_connected_check,
        password=resource.content,
        keepalive=_whole(spec.keepalive),
        hold_time=_whole(spec.hold_time),
        connect_time=_whole(spec.connect_retry),
        advertisement_interval=_whole(spec.advertisement_interval),
        passive=spec.passive,
        shutdown=spec.shutdown,
        graceful_restart=spec.graceful_restart,
        extended_nexthop=spec.extended_nexthop,
        bfd=spec.bfd is not None,
        bfd_profile=profile,
        **families,  # type: ignore[arg-type]  # by the names of its fields
    )
    by_key = {artifact.key: artifact for artifact in artifacts}  # families share maps
    return Told(session, tuple(by_key.values()), tuple(dict.fromkeys(requires)))


def _plain(family: str) -> Family:
    return Family(family=family)


def _whole(seconds: float | None) -> int | None:
    return int(seconds) if seconds is not None else None


def _local_as(spec: Session) -> str | None:
    if spec.local_as is None:
        return None
    words = {"both": "", "no-prepend": " no-prepend", "replace": " no-prepend replace-as"}
    return f"{spec.local_as}{words[spec.local_as_path]}"


def _filter(
    family: Family, way: str, number: int, local_as: int, site: Site
) -> tuple[Artifact, bool]:
    """The map of a way, and whether a resource declares it. There is always one, so that nothing
    goes by what FRR does without."""
    if way == "import":
        named, everything = family.import_filter, family.import_all
        otherwise = ("nothing", ["route-map @ deny 10"])
    else:
        named, everything = family.export_filter, family.export_all
        otherwise = ("own", _own(local_as))
    if named is not None:
        return bgp_filter.made(site.get(BGPFilter, named), number), True
    name, lines = ("all", ["route-map @ permit 10"]) if everything else otherwise
    return filters.bgp_filter(name, lines), False


def _own(local_as: int) -> list[str]:
    """Routes that this AS begins: their path is empty, or only the own AS that was put there."""
    paths = ["^$", *([f"^{local_as}(_{local_as})*$"] if local_as else [])]
    return [
        *(
            f"bgp as-path access-list @-1 seq {number * 5} permit {path}"
            for number, path in enumerate(paths, 1)
        ),
        "route-map @ permit 10",
        "match as-path @-1",
    ]


def _settings(family: Family, taken: str, given: str) -> Iterator[str]:
    """As FRR writes them."""
    yield "activate"
    yield f"route-map {taken} in"
    yield f"route-map {given} out"
    if family.max_prefixes is not None:
        words = [f"maximum-prefix {family.max_prefixes}"]
        if family.max_prefixes_warning:
            words.append("warning-only")
        if family.max_prefixes_restart is not None:
            words.append(f"restart {int(family.max_prefixes_restart) // 60}")
        yield " ".join(words)
    if family.soft_reconfiguration:
        yield "soft-reconfiguration inbound"
    if family.next_hop_self:
        yield "next-hop-self"
    if family.route_reflector_client:
        yield "route-reflector-client"
    if family.send_default:
        yield "default-originate"
    if family.allow_own_as is not None:
        # FRR writes no number where it is the one it takes by itself.
        yield "allowas-in" if family.allow_own_as == 3 else f"allowas-in {family.allow_own_as}"
