"""Every resource kind, found by its name.

A kind lives in the module of an area that is named for it: `IPv4DHCPScope` in lan/dhcp_scope.py.
That module's `KINDS` declares all there is to say of it, so a new kind is named nowhere else.
Modules are imported only for kinds that a file holds, since every pass starts a fresh process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import resources
from holdfast.resources.spec.shape import DEVICE, LINK

if TYPE_CHECKING:
    from holdfast.resources.resource import Declared, Finding, Kind, Resource
    from holdfast.resources.site import Site

VERSION = "v1alpha1"
DOMAINS = ("holdfast.dev", "routerd.net")  # the second is an alias of the first
ALIAS = DOMAINS[1]
# The folders that hold kinds, in the order in which people are told of them.
AREAS = ("links", "wan", "routes", "routing", "uplinks", "lan", "firewall", "system", "dynamic")

# Documents that are handed in by themselves and are no resources of a Router, and how.
DOCUMENTS: dict[str, str] = {
    "DynamicConfigPart": "`holdfast dynamic put FILE` hands one in",
    "DynamicConfigDirective": "directives stand in a DynamicConfigPart",
}

_KNOWN: dict[str, Kind] = {}  # those that were asked for
Asked = Callable[["Kind"], object]  # a property that some kinds have


@cache
def _modules() -> Mapping[str, str]:
    """The modules of all areas, by their names without underscores."""
    found: dict[str, str] = {}
    for area in AREAS:
        for folder in resources.__path__:
            for stem in sorted(file.stem for file in Path(folder, area).glob("*.py")):
                found.setdefault(stem.replace("_", ""), f"{area}.{stem}")
    return found


def _declared(module: str) -> Iterable[Kind]:
    found: Iterable[Kind] = getattr(import_module(f"holdfast.resources.{module}"), "KINDS", ())
    return found


def find(name: str) -> Kind | None:
    known = _KNOWN.get(name)
    if known is None:
        module = _modules().get(name.removeprefix("IPv4").removeprefix("IPv6").lower())
        for kind in _declared(module) if module is not None else ():
            _KNOWN[kind.name] = kind
        known = _KNOWN.get(name)
    return known


def kind(name: str) -> Kind:
    """Asked for every resource."""
    return _KNOWN.get(name) or _expected(name)


def _expected(name: str) -> Kind:
    found = find(name)
    if found is None:
        raise LookupError(f"there is no resource kind {name}")
    return found


@cache
def names() -> tuple[str, ...]:
    """Of all kinds. This imports every module, so it is for documentation and for mistakes."""
    return tuple(kind.name for module in _modules().values() for kind in _declared(module))


def having(among: Iterable[Resource], asked: Asked) -> list[Resource]:
    """The resources of the kinds that have a property."""
    known = list(among)
    wanted = {name for name in {resource.kind for resource in known} if asked(kind(name))}
    return [resource for resource in known if resource.kind in wanted]


def referred_as(name: str) -> tuple[str, ...]:
    """What references to resources of a kind may ask for: the kind, a link, a device."""
    found = find(name)
    if found is None or found.link is None:
        return (name,)
    return (name, LINK, DEVICE) if found.link.device else (name, LINK)


def referred(asked: str) -> str:
    """The kinds that a reference may be of, in words. This is for documentation and mistakes."""
    return " or ".join(name for name in names() if asked in referred_as(name))


def combiners(
    kinds: Collection[str],
) -> Iterator[tuple[list[str], Callable[[Site], Iterable[Declared]]]]:
    """The combiners that have something to say of a file with these kinds, and which of them are
    the reason."""
    wanting = _named(kinds, lambda kind: kind.combiner)
    found = {import_module(f"holdfast.resources.{name}"): names for name, names in wanting.items()}
    for module in sorted(found, key=lambda module: module.ORDER):
        yield found[module], module.combine


def checks(kinds: Collection[str]) -> Iterator[Callable[[Site], Iterable[Finding]]]:
    """The checks across resources that a file with these kinds needs."""
    for module in _named(kinds, lambda kind: kind.cross_checks):
        yield import_module(f"holdfast.resources.{module}").check


def _named(kinds: Iterable[str], module: Callable[[Kind], str]) -> dict[str, list[str]]:
    """The modules that kinds name, in the order of the kinds, and the kinds that name each."""
    found: dict[str, list[str]] = {}
    for name in kinds:
        found.setdefault(module(kind(name)), []).append(name)
    found.pop("", None)
    return found


def router_versions() -> list[str]:
    return [f"{domain}/{VERSION}" for domain in DOMAINS]


def api_versions(kind_name: str) -> list[str]:
    """Under which groups a kind may be declared; the first is the one to use."""
    groups = kind(kind_name).groups
    return [f"{group}.{domain}/{VERSION}" for domain in DOMAINS for group in groups]


def kind_trouble(name: str) -> str:
    """What is wrong with a kind, empty if nothing is."""
    if find(name) is not None:
        return ""
    if name in DOCUMENTS:
        return f"{name} is no resource of a Router: {DOCUMENTS[name]}"
    from holdfast.resources.spec.nearest import nearest  # only mistakes need it

    known = nearest(name, names())
    return f"unknown kind {name!r}{known or '; supported are ' + ', '.join(names())}"
