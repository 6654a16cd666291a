"""Messages as plain values, for programs that read and write JSON or YAML."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from holdfast.errors import HoldfastError

M = TypeVar("M", bound=Message)


def to_dict(message: Message) -> dict[str, Any]:
    """With every field, by its name in the schema."""
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def from_dict(values: object, message: M, what: str) -> M:
    if not isinstance(values, dict):
        raise HoldfastError(f"{what}: is no mapping of fields")
    try:
        return ParseDict(values, message)
    except ParseError as error:
        raise HoldfastError(f"{what}: {error}") from None
