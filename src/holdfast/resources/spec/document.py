"""The outer form: the Router document and the frame around each resource."""

from __future__ import annotations

import re
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.engine import protocols
from holdfast.resources.registry import router_versions
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    integer,
    listed,
    nested,
    optional,
    parsed,
    required,
)
from holdfast.resources.spec.values import Address, parse_address

DEFAULT_TAG = 72
DEFAULT_MAX_DELETE_SHARE = 50
EMPTY_HINT = "a router that shall have none is written `resources: []`"

# The protocol numbers of other programs; those below belong to the kernel and the administrator.
_TAKEN_TAGS = {number: name for number, name in protocols.NAMES.items() if number > 4}
_TAKEN_TAGS[9] = "router advertisements"
# Of a name in labels and annotations, as long as Kubernetes has them: a domain, a slash, a word.
_LONGEST_NOTE = 317
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"


def parse_name(text: str) -> str:
    # Names become parts of file names and of `Kind/name`.
    if not re.fullmatch(_NAME, text):
        raise ValueError(
            f"{text!r} is not a name: 1 to 63 letters, digits, '-', '_' and '.', the first and the"
            " last a letter or digit"
        )
    return text


def parse_tag(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 255:
        raise ValueError(f"{value!r} is not a tag: a number from 5 to 255")
    if value <= 4:
        raise ValueError(f"{value} belongs to the kernel and the administrator (0 to 4)")
    if value in _TAKEN_TAGS:
        raise ValueError(f"{value} is the protocol number of {_TAKEN_TAGS[value]}; choose another")
    return value


def parse_version(text: str) -> str:
    if text not in router_versions():
        raise ValueError(f"{text!r} is not {' or '.join(router_versions())}")
    return text


def parse_router(text: str) -> str:
    if text != "Router":
        raise ValueError(f"the document must be of kind Router, not {text!r}")
    return text


def parse_resources(value: Any) -> tuple[Any, ...]:
    if value is None:
        raise ValueError(f"has no value; {EMPTY_HINT}")
    if not isinstance(value, list):
        raise ValueError(f"must be a list of resources; {EMPTY_HINT}")
    return tuple(value)


def read_notes(value: Any) -> dict[str, str]:
    """Names and texts that people and their programs attach. They are shown in terminals."""
    if not isinstance(value, dict):
        raise ValueError("must be a mapping of names to text")
    for name, said in value.items():
        if not name or not name.isprintable() or len(name) > _LONGEST_NOTE:
            raise ValueError(f"{name[:80]!r} is not a name: printable characters, at most 317")
        if not isinstance(said, str):
            raise ValueError(f"{name} must be text; write it in quotes")
    return dict(value)


_NAME_JSON = {"minLength": 1, "maxLength": 63, "pattern": f"^{_NAME}$"}
_FREE_TAGS = [tag for tag in range(5, 256) if tag not in _TAKEN_TAGS]
_NOTES = Shape(
    read_notes,
    {"type": "object", "additionalProperties": {"type": "string"}},
    "mapping of names to text",
)
_ANY = Shape(lambda value: value, {}, "anything", unchecked=True)


class Metadata(Spec):
    name: str = required(parsed(parse_name, "name", _NAME_JSON), "unique within its kind")
    labels: dict[str, str] = optional(
        _NOTES, "for people and their programs: `status -o json` tells them again", default={}
    )
    annotations: dict[str, str] = optional(_NOTES, "the same", default={})


class Ownership(Spec):
    tag: int = optional(
        Shape(parse_tag, {"enum": _FREE_TAGS}, "number from 5 to 255 that no other program uses"),
        "the protocol number that marks what Holdfast makes in the kernel",
        default=DEFAULT_TAG,
    )
    max_delete_share: int = optional(
        integer(0, 100),
        "percent of what is owned that one pass may delete without being told twice",
        default=DEFAULT_MAX_DELETE_SHARE,
    )


_WITH_PORT = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfirmTarget:
    address: Address
    port: int = 0  # 0: it answers a ping; else it takes a TCP connection there

    def __str__(self) -> str:
        if not self.port:
            return str(self.address)
        shown = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{shown}:{self.port}"


def parse_target(text: str) -> ConfirmTarget:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = parse_address((found["v6"] or found["v4"]) if found else text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a target: an address, or an address and a port such as"
            " 192.0.2.1:443 or [2001:db8::1]:443"
        ) from None
    port = int(found["port"]) if found else 0
    if found and not 1 <= port <= 65535:
        raise ValueError(f"{text!r}: {port} is not a port from 1 to 65535")
    if address.is_multicast or address.is_unspecified or address.is_link_local:
        raise ValueError(f"{text!r} cannot be asked: it must be the address of one host")
    return ConfirmTarget(address, port)


class Confirm(Spec):
    targets: tuple[ConfirmTarget, ...] = optional(
        listed(parsed(parse_target, "address or address:port", {"minLength": 2}), least=0),
        "what has to answer after `apply --confirm-within` if it did before: addresses that answer"
        " a ping, or take a TCP connection where a port is given",
        default=(),
    )


class RouterSpec(Spec):
    resources: tuple[Any, ...] | None = optional(
        Shape(parse_resources, {"type": "array"}, "list of resources", unchecked=True),
        "what is declared",
    )
    ownership: Ownership = optional(
        nested(Ownership), "how ownership is marked and guarded", default=Ownership()
    )
    confirm: Confirm = optional(
        nested(Confirm), "how a change that waits to be confirmed is judged", default=Confirm()
    )


class RouterDocument(Spec):
    api_version: str = required(
        parsed(parse_version, "version", {"enum": router_versions()}), "version of the document"
    )
    kind: str = required(parsed(parse_router, "`Router`", {"enum": ["Router"]}), "always Router")
    metadata: Metadata = required(nested(Metadata), "the name of the router")
    spec: RouterSpec = required(nested(RouterSpec), "what the router shall be")


class Frame(Spec):
    """What every resource has around its spec."""

    api_version: str = required(parsed(str, "group and version"), "group and version of the kind")
    kind: str = required(parsed(str, "kind"), "what is declared")
    metadata: Metadata = required(nested(Metadata), "the name of the resource")
    spec: Any = required(_ANY, "the fields of the kind")
    status: Any = optional(_ANY, "in files of the alias system; not read")
