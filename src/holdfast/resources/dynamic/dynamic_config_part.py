"""DynamicConfigPart: what a source contributes, as a document of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.config.document import Document, Place, parse, read_file
from holdfast.config.part import Directive, Part
from holdfast.errors import ConfigError, Problem
from holdfast.resources.dynamic.dynamic_target import TargetSpec
from holdfast.resources.dynamic.source_name import source
from holdfast.resources.registry import DOMAINS, VERSION
from holdfast.resources.spec.document import Metadata
from holdfast.resources.spec.moments import moment
from holdfast.resources.spec.reading import dotted
from holdfast.resources.spec.shape import (
    Shape,
    ShapeError,
    Spec,
    choice,
    integer,
    listed,
    nested,
    optional,
    parsed,
    required,
    text,
)

KIND = "DynamicConfigPart"
API_VERSIONS = tuple(f"config.{domain}/{VERSION}" for domain in DOMAINS)
GENERATION_MAX = 2**63 - 1
_REASON_MAX = 1024


def _read_mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a mapping of fields")
    return value


def _parse_digest(text: str) -> str:
    digest = text if text.startswith("sha256:") else f"sha256:{text}"
    if len(digest) != 71 or not all(c in "0123456789abcdef" for c in digest[7:]):
        raise ValueError(f"{text!r} is not a SHA-256 digest")
    return digest


_RESOURCE = Shape(_read_mapping, {"type": "object"}, "resource", unchecked=True)


class DynamicConfigDirective(Spec):
    op: str = required(choice("mask"), "what is done to the target")
    target: TargetSpec = required(nested(TargetSpec), "a resource of the startup file")
    reason: str = optional(text(least=0, longest=_REASON_MAX), "why, for whoever looks", default="")


class PartSpec(Spec):
    source: str = required(source(), "who contributes it")
    generation: int = required(
        integer(1, GENERATION_MAX), "above that of every earlier part of the source"
    )
    observed_at: float = required(moment(), "when the source looked")
    expires_at: float | None = optional(moment(), "when it is over; without, when it is withdrawn")
    digest: str | None = optional(
        parsed(_parse_digest, "sha256:…"), "of resources and directives, checked where it is given"
    )
    resources: tuple[Mapping[str, Any], ...] = optional(
        listed(_RESOURCE, least=0), "what it adds to the effective config", default=()
    )
    directives: tuple[DynamicConfigDirective, ...] = optional(
        listed(nested(DynamicConfigDirective), least=0), "what it masks", default=()
    )
    action_plans: tuple[Mapping[str, Any], ...] = optional(
        listed(Shape(_read_mapping, {"type": "object"}, "proposal"), least=0),
        "proposals for providers; never part of the effective config",
        default=(),
    )

    def part(self, called: str) -> Part:
        return Part(
            self.source,
            self.generation,
            self.observed_at,
            self.expires_at,
            self.resources,
            tuple(
                Directive(directive.op, directive.target.target, directive.reason)
                for directive in self.directives
            ),
            self.action_plans,
            called,
        )


class PartDocument(Spec):
    api_version: str = required(choice(*API_VERSIONS), "version of the document")
    kind: str = required(choice(KIND), f"always {KIND}")
    metadata: Metadata = required(nested(Metadata), "a name for people")
    spec: PartSpec = required(nested(PartSpec), "what is contributed")


def read_part(path: Path) -> Part:
    """From a file. Raises ConfigError with every problem there is."""
    document = parse(read_file(path, handed=True), f"a {KIND} document")
    if document.troubles:
        raise ConfigError(
            [
                Problem(str(document.place_at(trouble.position)), "", trouble.message)
                for trouble in document.troubles
            ]
        )
    return part_of(document.data, document)


def part_of(data: Any, document: Document | None = None, name: str = KIND) -> Part:
    """From plain values. Raises ConfigError; places are those of the document where there is one,
    else `name` and the path inside."""

    def place(location: tuple[str | int, ...], *, of_key: bool = False) -> str:
        where = document.place(location, of_key=of_key) if document else Place(name, 0, 0)
        return str(where)

    try:
        read = PartDocument.read(data)
    except ShapeError as error:
        raise ConfigError(
            [
                Problem(
                    place(complaint.location, of_key=complaint.of_key),
                    dotted(complaint.location),
                    complaint.message,
                )
                for complaint in error.complaints
            ]
        ) from None
    except ValueError as error:
        raise ConfigError([Problem(place(()), "", str(error))]) from None
    spec, part = read.spec, read.spec.part(read.metadata.name)
    if spec.digest not in (None, part.digest):
        at = place(("spec", "digest"))
        message = f"is not that of the resources and directives, which is {part.digest}"
        raise ConfigError([Problem(at, "spec.digest", message)])
    return part
