"""Sysctl: one kernel setting, now, at boot, or both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.file import FILE, file
from holdfast.engine.kinds.sysctl import SYSCTL, sysctl
from holdfast.resources.resource import Fault, Kind, Reach, Resource, Setting
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Shape, Spec, flag, no_networks, optional, parsed, required

# Settings of one link: what stands between is its name, dots and all, as in eth0.10.
_PER_LINK = re.compile(r"(net\.(?:ipv4|ipv6|mpls)\.(?:conf|neigh))\.(.+)\.([^.]+)")
_NO_LINKS = ("all", "default")  # which stand where the name of a link does

# Settings of the network alone: other sources may set them where a DynamicOverridePolicy lets them.
# Neighbours of these give rights to users (ping_group_range, ip_unprivileged_port_start), load
# modules (default_qdisc) or weaken the kernel (bpf_jit_harden), so this is a list and no prefix.
_OF_NETWORK = re.compile(
    r"net\.(?:"
    r"(?:ipv4|ipv6|mpls)\.(?:conf|neigh)\..+\.\w+"
    r"|ipv[46]\.(?:route|icmp)\.\w+"
    r"|ipv4\.(?:ip_forward|ip_default_ttl|ip_no_pmtu_disc|ip_forward_update_priority"
    r"|ip_nonlocal_bind|ip_local_port_range|fwmark_reflect|(?:arp|fib|icmp|igmp|ipfrag|tcp|udp)_\w+)"
    r"|ipv6\.(?:bindv6only|ip_nonlocal_bind|fwmark_reflect|(?:fib|flowlabel|ip6frag|mld)_\w+)"
    r"|mpls\.(?:platform_labels|ip_ttl_propagate|default_ttl)"
    r"|netfilter\.nf_conntrack_\w+"
    r"|core\.(?:somaxconn|(?:rmem|wmem|netdev)_\w+)"
    r")",
    re.ASCII,
)
_NUMBERS = re.compile(r"-?[0-9]+(?:[ \t]+-?[0-9]+)*")


def parse_key(text: str) -> str:
    if not text or any(c.isspace() for c in text) or not text.isprintable():
        raise ValueError(f"{text!r} is not a sysctl key: no blanks, not empty")
    if "/" in text:
        raise ValueError(f"{text!r}: write the key with dots, not slashes")
    if text.startswith(".") or text.endswith(".") or ".." in text or "." not in text:
        raise ValueError(f"{text!r} is not a sysctl key such as net.ipv4.ip_forward")
    return text


def parse_value(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise ValueError("must be text or a number; write it in quotes")
    if not value.strip():
        raise ValueError("cannot be empty")
    if "\n" in value.strip():
        raise ValueError("must be one line")
    return value.strip()


class Sysctl(Spec):
    key: str = required(
        parsed(
            parse_key, "key with dots", {"pattern": r"^[^\s/.]+(\.[^\s/.]+)+$"}, reach=no_networks
        ),
        "the setting",
    )
    value: str = required(
        Shape(
            parse_value,
            {"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "integer"}]},
            "text or number",
            lines=True,
            reach=no_networks,
        ),
        "what to set it to",
    )
    runtime: bool = optional(flag(), "set it in the running kernel", default=True)
    persistent: bool = optional(
        flag(), "also write /etc/sysctl.d/90-holdfast-NAME.conf, read at boot", default=False
    )
    revert_on_release: bool = optional(
        flag(),
        "set it back to the value it had before once nothing declares it any more, if nobody"
        " changed it since",
        default=False,
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: Sysctl = resource.spec
    if not spec.runtime and not spec.persistent:
        yield Fault(("runtime",), "sets nothing: neither `runtime` nor `persistent` is true")
    if spec.revert_on_release and not spec.runtime:
        yield Fault(("revertOnRelease",), "has no meaning with `runtime: false`")


def against_others(resource: Resource) -> Iterator[Fault]:
    """A setting of another source is one of the network, and no file outlives the source."""
    spec: Sysctl = resource.spec
    if not _OF_NETWORK.fullmatch(spec.key):
        message = f"{spec.key} is no setting of the network alone: the startup file can set it"
        yield Fault(("key",), message)
    elif not _NUMBERS.fullmatch(spec.value):
        yield Fault(
            ("value",), f"{spec.value!r} is not made of numbers: the startup file can set it"
        )
    if spec.persistent:
        yield Fault(
            ("persistent",), "writes a file that is read at boot: the startup file can do so"
        )


def reaches(resource: Resource) -> Iterator[Reach]:
    """The link that the setting is of, where it is of a single one."""
    found = _PER_LINK.fullmatch(resource.spec.key)
    if found and found[2] not in _NO_LINKS:
        yield Reach(("key",), ifname=found[2])


def settings(resource: Resource) -> Iterator[Setting]:
    yield Setting(("key",), resource.spec.key)


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: Sysctl = resource.spec
    found = _PER_LINK.fullmatch(spec.key)
    dev = found[2] if found else ""
    if spec.runtime:
        # sysctl(8): a slash stands for a dot within a name.
        key = f"{found[1]}.{dev.replace('.', '/')}.{found[3]}" if found else spec.key
        yield Intent(
            resource.id,
            sysctl(key, spec.value),
            resource.place,
            requires=site.link_key(dev),
            revert=spec.revert_on_release,
        )
    if spec.persistent:
        # sysctl.d(5): a key that starts in the slash form keeps the dots inside.
        key = spec.key
        if found and "." in dev:
            key = f"{found[1].replace('.', '/')}/{dev}/{found[3]}"
        text = f"# Holdfast wrote this file for {resource.id} and will write it again.\n"
        text += f"{key} = {spec.value}\n"
        path = f"/etc/sysctl.d/90-holdfast-{resource.name}.conf"
        yield Intent(resource.id, file(path, text.encode()), resource.place)


KINDS = (
    Kind(
        Sysctl,
        "A kernel setting under /proc/sys.",
        (SYSCTL.name, FILE.name),
        'key: net.ipv4.ip_forward\nvalue: "1"\npersistent: true\n',
        intents,
        check,
        open_to_others=against_others,
        reaches=reaches,
        settings=settings,
        groups=("system",),
    ),
)
