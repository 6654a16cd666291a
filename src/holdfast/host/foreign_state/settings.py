"""Settings that the kernel keeps for each link, below /proc/sys/net: they go with the link, and
those of IPv6 with its IPv6, which a small MTU ends. A link that is made anew has the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.engine.artifact import Key
from holdfast.engine.kinds.sysctl import SYSCTL

_ROOT = Path("/proc/sys/net")
_IPV6, _MTU = "ipv6/conf", "mtu"
_FOLDERS = {4: ("ipv4/conf", "ipv4/neigh"), 6: (_IPV6, "ipv6/neigh")}
# The same in another unit: the kernel rounds, and sets the other along.
_OTHER_UNITS = ("base_reachable_time", "retrans_time", "unres_qlen")
_NONE = "1"  # IN6_ADDR_GEN_MODE_NONE
# A secret says how addresses are made, and is said first.
_FIRST = "stable_secret"


def read(dev: str, version: int, mtu: int) -> Iterator[bytes]:
    """Those that differ from what a new link has, each as `NAME=VALUE`. mtu: the link's."""
    for folder in _FOLDERS[version]:
        for place in sorted((_ROOT / folder / dev).glob("*"), key=_in_order):
            if place.name not in _OTHER_UNITS:
                yield from _told(f"{folder}/{dev}/{place.name}", mtu)


def read_mtu(dev: str, mtu: int) -> Iterator[bytes]:
    """That of IPv6 alone: the kernel forgets it whenever the link goes down or gets another."""
    return _told(f"{_IPV6}/{dev}/{_MTU}", mtu)


def decode(body: bytes) -> tuple[str, str]:
    name, _, value = body.decode().partition("=")
    return name, value


def dev(name: str) -> str:
    return name.split("/")[2]


def is_ipv6(name: str) -> bool:
    return name.startswith("ipv6/")


def key(name: str) -> Key:
    """As sysctl(8) writes it."""
    return Key(SYSCTL.name, f"net/{name}".translate({ord("/"): ".", ord("."): "/"}))


def without_link_local(bodies: Iterable[bytes]) -> Iterator[str]:
    """Links that somebody told to make no link-local addresses."""
    for name, value in map(decode, bodies):
        if name == f"{_IPV6}/{dev(name)}/addr_gen_mode" and value == _NONE:
            yield dev(name)


def set_back(name: str, value: str, mtu: int) -> str | None:
    """None where it is as it was, or as somebody set it since; else what is wrong, or "" where it
    was set. mtu: the link's."""
    now, usual = _read(name), _new(name, mtu)
    if now == value or (usual and now != usual):
        return None
    try:
        (_ROOT / name).write_text(value)
    except OSError as error:
        return f"cannot write {value}: {error.strerror}"
    return ""


def _told(name: str, mtu: int) -> Iterator[bytes]:
    value = _read(name)
    if value and value != _new(name, mtu):
        yield f"{name}={value}".encode()


def _new(name: str, mtu: int) -> str:
    """What a link has that is made now; "" where the kernel does not tell: in other network
    namespaces than the first one it has no defaults of neighbours to show."""
    version, kind, _, setting = name.split("/")
    if setting == _MTU:
        return str(mtu)
    return _read(f"{version}/{kind}/default/{setting}")


def _in_order(place: Path) -> tuple[bool, str]:
    return place.name != _FIRST, place.name


def _read(name: str) -> str:
    try:
        return (_ROOT / name).read_text().strip()
    except OSError:
        return ""  # a secret that is not set, or no such link
