"""What a program that Holdfast starts as a unit of systemd may do: what it is for, and little else.

A fault in one of them (each talks to strangers) is then not a fault of root. Lines that begin with
`+` in the unit are our own, and not bound by it: they make folders below /etc and end processes.
"""

from __future__ import annotations

from holdfast.dataclass import dataclass
from holdfast.engine.kinds.service import pppoe_session

# For every program there is: none loads modules, reads the kernel's log or makes set-id files.
_EVERY = (
    "NoNewPrivileges=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
)
# With either, systemd gives a unit another /proc/sys than the machine's. In a container that has a
# boot of its own there, a lease would seem to be of an earlier one: not for what notes the boot.
_SYSTEM = ("ProtectControlGroups=yes", "ProtectKernelTunables=yes")
_FILES = ("ProtectHome=yes", "PrivateTmp=yes")
# Where it opens files as root that belong to whom it becomes after that.
_BECOMES_ANOTHER = ("SETUID", "SETGID", "CHOWN", "FOWNER", "DAC_OVERRIDE")
_NETWORK = ("NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE")


@dataclass(frozen=True, slots=True)
class _Sandbox:
    capabilities: tuple[str, ...]
    more: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        bound = " ".join(f"CAP_{capability}" for capability in self.capabilities)
        return (*_EVERY, *_FILES, *self.more, f"CapabilityBoundingSet={bound}")


_SANDBOXES = {
    # NET_RAW for router advertisements and answers to clients that have no address yet.
    "dnsmasq": _Sandbox(
        (*_NETWORK, *_BECOMES_ANOTHER),
        (
            "ProtectSystem=full",
            *_SYSTEM,
            "ProtectClock=yes",
            "RestrictNamespaces=yes",
            "RestrictRealtime=yes",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET",
        ),
    ),
    # SYS_CHROOT and KILL: it parts itself into processes that see an empty folder. It also turns
    # off that the kernel takes router advertisements, a sysctl.
    "dhcpcd": _Sandbox(
        (*_NETWORK, *_BECOMES_ANOTHER, "SYS_CHROOT", "KILL"),
        (
            "ProtectSystem=full",
            "ProtectClock=yes",
            "RestrictNamespaces=yes",
            "RestrictRealtime=yes",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET",
        ),
    ),
    # SYS_TIME is what it is for. /dev stays: clocks are there.
    "chrony": _Sandbox(
        ("SYS_TIME", "SYS_NICE", "IPC_LOCK", *_NETWORK, *_BECOMES_ANOTHER),
        (
            "ProtectSystem=full",
            *_SYSTEM,
            "RestrictNamespaces=yes",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        ),
    ),
    # Its hook goes on with the machine's own scripts, which write below /etc. SYS_ADMIN is theirs
    # neither.
    pppoe_session(""): _Sandbox(
        (*_NETWORK, *_BECOMES_ANOTHER, "KILL", "SYS_RESOURCE", "SYS_NICE"),
        ("ProtectSystem=yes", "ProtectClock=yes", "RestrictRealtime=yes"),
    ),
}


def lines(name: str) -> tuple[str, ...]:
    """Of the unit of a service, by its name."""
    for start, sandbox in _SANDBOXES.items():
        if name.startswith(start):
            return sandbox.lines
    return _EVERY
