"""Sysctl: one kernel setting, now, at boot, or both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.file import file
from holdfast.engine.kinds.sysctl import sysctl
from holdfast.resources.resource import Fault, Kind, Resource
from holdfast.resources.shape import Shape, Spec, flag, optional, parsed, required
from holdfast.resources.site import Site

# Settings of one link: what stands between is its name, dots and all, as in eth0.10.
_PER_LINK = re.compile(r"(net\.(?:ipv4|ipv6|mpls)\.(?:conf|neigh))\.(.+)\.([^.]+)")


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
    if "\n" in value.strip() or "\0" in value:
        raise ValueError("must be one line")
    return value.strip()


class Sysctl(Spec):
    key: str = required(
        parsed(parse_key, "key with dots", {"pattern": r"^[^\s/.]+(\.[^\s/.]+)+$"}), "the setting"
    )
    value: str = required(
        Shape(
            parse_value,
            {"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "integer"}]},
            "text or number",
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


KINDS = {
    "Sysctl": Kind(
        "Sysctl",
        Sysctl,
        "A kernel setting under /proc/sys.",
        ("sysctl", "file"),
        'key: net.ipv4.ip_forward\nvalue: "1"\npersistent: true\n',
        intents,
        check,
    )
}
