"""The same routes in the words of each program: a RouteList, `ip -batch`, BIRD, netlink."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.host.netlink import attributes
from holdfast.host.netlink.links.link_names import read_names
from holdfast.host.netlink.socket import CREATE, EXCL, NetlinkSocket, Request

GATEWAY = "192.0.2.2"
_FIRST = 10 << 24  # 10.0.0.0; a million /24 reach up to 25.66.64.0
_RTM_NEWROUTE = 24
_RTA_DST, _RTA_OIF, _RTA_GATEWAY = 1, 4, 5
_TABLE_MAIN, _UNICAST = 254, 1
_FILL_AT_ONCE = 20_000

CONFIG = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: benchmark}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan, managed: false}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: wan}
      spec: {interface: wan, address: 192.0.2.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: RouteList
      metadata: {name: routes}
      spec: {file: routes.txt}
"""


def destinations(count: int, skip: int = 0) -> Iterator[str]:
    for number in range(skip, skip + count):
        address = _FIRST + (number << 8)
        yield f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.0/24"


def _write(path: Path, lines: Iterable[str]) -> Path:
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def router_file(folder: Path, count: int) -> Path:
    _write(folder / "routes.txt", (f"{d} via {GATEWAY} dev wan" for d in destinations(count)))
    path = folder / "router.yaml"
    path.write_text(CONFIG)
    return path


def ip_batch_file(folder: Path, count: int) -> Path:
    lines = (f"route add {d} via {GATEWAY} dev wan" for d in destinations(count))
    return _write(folder / "routes.batch", lines)


def bird_file(folder: Path, count: int) -> Path:
    """No protocol here listens or sends: static routes in, kernel routes out."""
    head = [
        "router id 192.0.2.1;",
        "protocol device {}",
        "protocol kernel { ipv4 { import none; export all; }; }",
        "protocol static { ipv4;",
    ]
    lines = (f"route {d} via {GATEWAY};" for d in destinations(count))
    return _write(folder / "bird.conf", [*head, *lines, "}"])


def fill_foreign(count: int, protocol: int, skip: int) -> None:
    """Routes that another program made, in this namespace, past the first `skip`."""
    netlink = NetlinkSocket()
    try:
        index = read_names(netlink).indexes["wan"]
        header = bytes((socket.AF_INET, 24, 0, 0, _TABLE_MAIN, protocol, 0, _UNICAST, 0, 0, 0, 0))
        gateway = attributes.attribute(_RTA_GATEWAY, socket.inet_aton(GATEWAY))
        tail = gateway + attributes.u32(_RTA_OIF, index)
        for start in range(skip, skip + count, _FILL_AT_ONCE):
            size = min(_FILL_AT_ONCE, skip + count - start)
            failed = netlink.transact(
                [
                    Request(_RTM_NEWROUTE, CREATE | EXCL, header + _destination(number) + tail)
                    for number in range(start, start + size)
                ]
            )
            if failed:
                raise RuntimeError(f"{len(failed)} routes not added: {next(iter(failed.values()))}")
    finally:
        netlink.close()


def _destination(number: int) -> bytes:
    return attributes.attribute(_RTA_DST, (_FIRST + (number << 8)).to_bytes(4, "big"))


def count_in_kernel() -> int:
    """How many IPv4 prefixes the main table holds; some milliseconds where a dump takes many.

    Until the first rule is added, the local table is one with the main one and its prefixes are
    counted in both, so callers compare with what was there before.
    """
    section = ""
    for line in Path("/proc/net/fib_triestat").read_text().splitlines():
        word, _, value = line.partition(":")
        if not line.startswith("\t"):
            section = word
        elif word.strip() == "Prefixes" and section == "Main":
            return int(value)
    raise RuntimeError("/proc/net/fib_triestat does not tell the prefixes of the main table")
