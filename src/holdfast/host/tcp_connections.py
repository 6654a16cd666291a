"""How a TCP connection of this machine fares, by the kernel's list of them.

Not over inet_diag, which is a module that is not everywhere.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

# The list is that of the network namespace of the thread.
_LISTS = {4: Path("/proc/thread-self/net/tcp"), 6: Path("/proc/thread-self/net/tcp6")}
_ESTABLISHED = "01"

End = tuple[IPv4Address | IPv6Address, int]


def retransmissions(local: End, remote: End) -> int | None:
    """How often the same was sent again since the other end was last heard from; None where there
    is no such connection."""
    mapped = [(IPv6Address(f"::ffff:{a}"), p) for a, p in (local, remote) if a.version == 4]
    for ends in ([local, remote], mapped):  # sshd may listen to both families on one socket
        if ends:
            found = _find(ends[0][0].version, [_written(end) for end in ends])
            if found is not None:
                return found
    return None


def _find(version: int, wanted: list[str]) -> int | None:
    try:
        lines = _LISTS[version].read_text().splitlines()
    except OSError:
        return None  # no IPv6
    for line in lines:
        words = line.split()
        if words[1:4] == [*wanted, _ESTABLISHED]:
            return int(words[6], 16)
    return None


def _written(end: End) -> str:
    """As the kernel writes it: words of 32 bits in the machine's own order."""
    address, port = end
    count = len(address.packed) // 4
    words = struct.unpack(f"={count}I", address.packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
