"""What a resource is, and what a kind of resource has to declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.config.document import Location, Place, SourceFile, read_file
from holdfast.dataclass import dataclass, field
from holdfast.errors import ConfigError, Problem

if TYPE_CHECKING:
    from holdfast.engine.intent import BulkIntent, Intent, Waiting
    from holdfast.resources.facts import Gone, Lease, Lookup
    from holdfast.resources.site import Site
    from holdfast.resources.spec.shape import Spec
    from holdfast.resources.spec.values import Address, Network
    from holdfast.resources.uplinks.uplink import Uplink


Identity = tuple[bytes, bytes]  # scope and key of a route


@dataclass(frozen=True, slots=True)
class Resource:
    kind: str
    name: str
    spec: Any  # an instance of the kind's spec
    place: str  # "router.yaml:12:5", or "Plugin/inventory#12 resources[3]"
    index: int = field(repr=False)  # in spec.resources; of parts, after those of the file
    alias: bool = field(default=False, repr=False)  # declared under routerd.net
    content: Any = field(default=None, repr=False)  # what the kind read besides its spec
    part: str = field(default="", repr=False)  # that contributed it; "" for the startup file
    # For people and their programs; nothing goes by them.
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"

    def __str__(self) -> str:
        return f"{self.id} at {self.place}"


def id_of(kind: type[Spec], name: str) -> str:
    """The id of a resource that is known by its name alone."""
    return f"{kind.__name__}/{name}"


# An intent, or why there is none yet, with the resource that has it.
Declared = tuple[Resource, "Intent | BulkIntent | Waiting"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with one resource."""

    location: Location  # inside the spec
    message: str
    warning: bool = False
    at: Place | None = None  # where it stands, if not at `location`


Finding = tuple[Resource, Fault]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a resource has an effect on although no field of its spec says so by its type: a policy
    of a source has to allow that as well."""

    location: Location  # inside the spec
    network: Network | None = None
    packed: Sequence[bytes] = ()  # or many: prefix length and address of each
    link: str = ""  # the name of a resource, or the kernel's name where no resource has it
    ifname: str = ""  # or in any case the kernel's name
    # How the link `ifname` is cut off: "take link {} down". A pattern is not enough to allow that.
    cut: str = ""
    advertised: bool = False  # the network is told to others, who send packets to it here
    peer: str = ""  # the address of whom a session is held with
    autonomous_system: int = 0  # that is spoken for, or to
    unnumbered_as: bool = False  # it is spoken to, whatever its number
    learned: bool = False  # routes to the network come by it
    instance: bool = False  # it is about what all owners of routes share


@dataclass(frozen=True, slots=True)
class Setting:
    """A kernel setting of the network that a resource sets."""

    location: Location  # inside the spec
    key: str  # "net.ipv4.conf.{}.rp_filter"
    link: str = ""  # the resource whose kernel name stands for the {}


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the files stand that a configuration names."""

    path: Path  # that of the YAML file
    root: Path  # what `--root` says
    # What kinds read besides the spec of each resource (by its id) when this was last loaded: what
    # it was made of is compared, and need not be read once more.
    before: Mapping[str, Any] = field(default_factory=dict)
    # Files as they were read once, by their paths: they are taken from here alone then. Secrets
    # are never kept, so those are read where they are.
    stored: Mapping[str, bytes] | None = field(default=None, repr=False)
    # False: this is not the machine it is for, so that a secret may be elsewhere.
    on_host: bool = True

    def find(self, name: str) -> Path:
        """Relative names start from the YAML file, absolute ones from the root."""
        return self.root / name.lstrip("/") if name.startswith("/") else self.path / name

    def read(self, name: str) -> SourceFile:
        """Raises ConfigError in the system's own words."""
        return read_source(self.find(name), self.stored)


def read_source(
    path: Path, stored: Mapping[str, bytes] | None, *, handed: bool = False
) -> SourceFile:
    """A file from the disk, or as it is stored. handed: as `read_file` has it."""
    if stored is None:
        return read_file(path, handed=handed)
    if str(path) not in stored:
        raise ConfigError([Problem(str(path), "", "is not among the files that were stored")])
    return SourceFile(str(path), stored[str(path)])


@dataclass(frozen=True, slots=True)
class Content:
    """What a kind read besides its spec."""

    value: Any
    file: SourceFile | None = None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """What a kind says of the links that its resources stand for."""

    ifname: Callable[[Resource], str]  # the kernel name
    mtu: int  # what it carries where nobody says otherwise
    field: str = "ifname"  # of the spec, which says the kernel name
    over: str = "interface"  # of the spec, which names the link underneath
    device: bool = False  # any device of the kernel: its spec says type, master and parent
    remote: Callable[[Resource, Site], Address | None] | None = None  # the far end of a tunnel


@dataclass(frozen=True, slots=True)
class Kind:
    """The one declaration of a resource kind: all that any other code asks of kinds.

    Its module is named for it (registry.py), and is imported only for files that hold the kind.
    """

    spec: type[Spec]  # which the kind has its name from
    summary: str
    emits: tuple[str, ...]  # artifact kinds
    example: str  # YAML of a spec, for the documentation
    # What a resource asks for by itself; what it contributes to with others is for a combiner.
    intents: Callable[[Resource, Site], Iterable[Intent | BulkIntent | Waiting]]
    check: Callable[[Resource], Iterable[Fault]] = lambda _resource: ()
    read: Callable[[Resource, Folder], Content] | None = None
    groups: tuple[str, ...] = ("net",)  # it may be declared under; the first is the one to use
    effect: str = ""  # of a kind that has no artifact: what it does then
    # Of a kind that other sources than the startup file may declare, what speaks against one of
    # theirs. A kind that leads to a program, a file or a kernel setting outside the network is
    # never open to them (ADR 0045), and none is unless it says so.
    open_to_others: Callable[[Resource], Iterable[Fault]] | None = None
    reaches: Callable[[Resource], Iterable[Reach]] = lambda _resource: ()  # besides its fields
    # Those of an open kind that has a `sysctl` among its artifacts: a DynamicOverridePolicy has to
    # allow a source each of them.
    settings: Callable[[Resource], Iterable[Setting]] = lambda _resource: ()
    size: Callable[[Resource], int] = lambda _resource: 1  # as a policy of a source counts it
    # Whether a resource can be checked and compiled by itself: nothing else goes by it, and no
    # check across resources has more to say of it than whether its references lead somewhere and
    # whether others declare its artifact, of which there is one. None: no resource of the kind can.
    alone: Callable[[Resource, Site], bool] | None = None
    goes_by_reach: bool = False  # it asks which networks routes lead to (`behind`)

    maskable: bool = True  # by a source that a DynamicOverridePolicy lets do so
    alias_asks_managed: bool = False  # routerd.net manages it only where `managed: true` is said

    # With other resources. Modules below holdfast.resources, since they need the kind themselves.
    combiner: str = ""  # makes one artifact out of many resources: `combine(site)`
    cross_checks: str = ""  # `check(site)`; references may lead nowhere there
    only_one: str = ""  # managed one in a file: what a second is told, before the first is named
    link: Link | None = (
        None  # it stands for a link, and may be named where an interface is asked for
    )

    # Facts, and what is to be asked outside for them.
    needs_facts: bool = False  # a file without such a kind is read without asking for any
    lookups: Callable[[Resource], Iterable[Lookup]] | None = None  # of the DNS
    # Of a kind that declares routes: gateways without a link, each packed and with its table.
    lone_gateways: Callable[[Resource], Iterable[tuple[int, bytes]]] | None = None
    # Of a list of routes, the numbers of the lines (or items) that declare the wanted ones.
    lines_declaring: (
        Callable[[Resource, Iterable[SourceFile], Set[Identity]], Iterable[tuple[int, Identity]]]
        | None
    ) = None
    # What a provider gave by it, and on which link (kernel name).
    lease: Callable[[Resource, Site], tuple[str, Lease | Gone | None]] | None = None
    has_verdict: bool = False  # it is probed, and facts have a verdict under its name

    # Addresses and networks.
    static_address: bool = False  # `spec.address` stands on `spec.interface`
    brings_addresses: bool = False  # to `spec.interface`, and the file does not say which
    # What is on links by it: routing table, network (or a list of packed ones) and kernel name.
    # Of a kind without, the intents tell.
    on_link: Callable[[Resource, Site], Iterable[tuple[int, Network | list[bytes], str]]] | None = (
        None
    )
    # The networks of a family behind its link, where hosts may be; None: any.
    behind: Callable[[Resource, int], Iterable[Network] | None] | None = None
    uplinks: Callable[[Resource], Iterable[Uplink]] | None = None  # the ways out that it declares
    leads_out: str = ""  # the field that names the link to a provider, or candidates that do
    opens_ports: bool = False  # and rules of others may be in the way

    # Programs and parts.
    program: Callable[[Resource], tuple[str, str] | None] | None = None  # field and path of it
    receives_events: bool = False
    proposes_parts: bool = False
    admits_parts: bool = False  # those of `spec.contributor`, as far as `spec.allow` goes

    @property
    def name(self) -> str:
        return self.spec.__name__


def nothing_alone(_resource: Resource, _site: Site) -> Iterable[Intent | BulkIntent | Waiting]:
    """The intents of a kind that only contributes to what a combiner makes."""
    return ()


def nothing_against(_resource: Resource) -> Iterable[Fault]:
    """Of a kind that other sources may declare as the startup file does."""
    return ()
