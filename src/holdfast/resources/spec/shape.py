"""What a field of a spec may hold, said once for all its readers.

A spec is a class whose fields are declared with `required` and `optional`. From that one
declaration come the reading of YAML with every fault named, the JSON Schema for editors and the
reference documentation. It is plain Python because every pass is a fresh process: importing
pydantic and building two models took 120 ms of it, this takes 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from holdfast.characters import trouble, trouble_within

if TYPE_CHECKING:  # which loads YAML, and not only files have shapes
    from ipaddress import IPv4Network, IPv6Network

    from holdfast.config.document import Location

Json = dict[str, Any]
Reaching = Callable[[Any], "Iterable[IPv4Network | IPv6Network]"]
# What references ask for where they do not name a kind (registry.referred_as).
LINK, DEVICE = "link", "device"
REFERRED = "name of {}"  # the kinds come in where it is shown: many are known only to the registry
_HALF = re.compile("[\ud800-\udfff]")
# Of one mapping: what has more is no mistake in a field but another file.
_UNKNOWN_SHOWN = 50
# What YAML 1.1 took for them, and people remember.
_OLD_FLAGS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Complaint:
    """One thing wrong with a value: where inside it, and what."""

    __slots__ = ("location", "message", "of_key")

    def __init__(self, location: Location, message: str, *, of_key: bool = False) -> None:
        self.location = location
        self.message = message
        self.of_key = of_key  # about the key rather than its value


class ShapeError(ValueError):
    """Everything that is wrong with a value made of several."""

    def __init__(self, complaints: list[Complaint], rest: Spec | None = None) -> None:
        super().__init__("; ".join(complaint.message for complaint in complaints))
        self.complaints = complaints
        self.rest = rest  # what could be read, the faulty fields left out


class Shape:
    """What a value may be: for the reader, for editors, and for people."""

    __slots__ = (
        "ifname", "json", "lines", "many", "nested",
        "reach", "read", "refers", "shown", "unchecked",
    )  # fmt: skip

    def __init__(
        self,
        read: Callable[[Any], Any],  # raises ValueError that says what is wrong
        json: Mapping[str, Any],
        shown: str,
        *,
        refers: str = "",  # what the text has to name: a kind, LINK or DEVICE
        nested: type[Spec] | None = None,  # the spec inside
        many: bool = False,
        lines: bool = False,  # tabs and ends of lines may be in it
        unchecked: bool = False,  # whoever reads what it holds looks for unfit characters
        ifname: bool = False,  # the text is the kernel's name of a link
        # The networks that a value lies in or may lie in, for the policy of a source. None: nobody
        # can tell, and such a policy refuses it.
        reach: Reaching | None = None,
    ) -> None:
        self.read = read
        self.json = json
        self.shown = shown
        self.refers = refers
        self.nested = nested
        self.many = many
        self.lines = lines
        self.unchecked = unchecked
        self.ifname = ifname
        self.reach = reach


class Entry:
    """One field of a spec, as declared."""

    __slots__ = ("about", "attribute", "default", "name", "required", "secret", "shape")

    def __init__(
        self,
        shape: Shape,
        about: str,
        name: str,
        *,
        required: bool,
        default: Any = None,
        secret: bool = False,
    ) -> None:
        self.attribute = ""
        self.name = name  # in YAML
        self.shape = shape
        self.about = about
        self.required = required
        self.default = default
        self.secret = secret  # never shown, wherever what was declared is


def required(shape: Shape, about: str, *, name: str = "") -> Any:
    return Entry(shape, about, name, required=True)


def optional(
    shape: Shape, about: str, *, default: Any = None, name: str = "", secret: bool = False
) -> Any:
    return Entry(shape, about, name, required=False, default=default, secret=secret)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Spec:
    """What stands under `spec` of a resource, or under a field of it: immutable once read."""

    entries: ClassVar[tuple[Entry, ...]] = ()
    # Fields that people look for here: where what they mean is said instead.
    elsewhere: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        found = [(name, value) for name, value in vars(cls).items() if isinstance(value, Entry)]
        for attribute, entry in found:
            entry.attribute = attribute
            entry.name = entry.name or _camel(attribute)
            delattr(cls, attribute)
        # Of a spec that is made of another, its own come first.
        cls.entries = (*(entry for _, entry in found), *cls.entries)

    def __init__(self, **values: Any) -> None:
        """Takes values as they are; what comes from outside goes through `read`."""
        defaults = {entry.attribute: entry.default for entry in self.entries}
        self.__dict__.update(defaults | values)

    @classmethod
    def read(cls, data: Any) -> Self:
        """From plain YAML values. Raises ShapeError with all that is wrong with them."""
        if not isinstance(data, dict):
            raise ValueError(_not(data, "a mapping of fields"))
        values: dict[str, Any] = {}
        wrong: list[Complaint] = []
        known = 0
        for entry in cls.entries:
            if entry.name not in data:
                values[entry.attribute] = entry.default
                if entry.required:
                    wrong.append(Complaint((entry.name,), "is missing"))
                continue
            known += 1
            try:
                value = entry.shape.read(data[entry.name])
                # After what the field itself says of it, which is more to the point.
                _refuse_unfit(data[entry.name], entry.shape)
                values[entry.attribute] = value
            except ValueError as error:
                wrong += _inside(entry.name, error)
        if known != len(data):
            wrong += cls._unknown(data)
        if wrong:
            raise ShapeError(wrong, cls(**values))
        return cls(**values)

    @classmethod
    def _unknown(cls, data: dict[str, Any]) -> Iterator[Complaint]:
        from holdfast.resources.spec.nearest import nearest  # only mistakes need it

        names = [entry.name for entry in cls.entries]
        unknown = [name for name in data if name not in names]
        for name in unknown[:_UNKNOWN_SHOWN]:
            hint = f": {cls.elsewhere[name]}" if name in cls.elsewhere else nearest(name, names)
            hint = hint or f"; known are {', '.join(names)}"
            yield Complaint((name,), f"unknown field{hint}", of_key=True)
        if len(unknown) > _UNKNOWN_SHOWN:
            more = f"and {len(unknown) - _UNKNOWN_SHOWN} more unknown fields"
            yield Complaint((unknown[_UNKNOWN_SHOWN],), more, of_key=True)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({said})"


def _refuse_unfit(value: Any, shape: Shape) -> None:
    """Here, so that no field can leave it out. Specs inside do it themselves."""
    if shape.unchecked or (shape.nested is not None and not isinstance(value, str)):
        return
    found = trouble_within(value, lines=shape.lines)
    if found is not None:
        location, message, of_key = found
        raise ShapeError([Complaint(location, message, of_key=of_key)])


def _camel(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(word.capitalize() for word in others)


def _inside(step: str | int, error: ValueError) -> list[Complaint]:
    if not isinstance(error, ShapeError):
        return [Complaint((step,), str(error))]
    return [
        Complaint((step, *found.location), found.message, of_key=found.of_key)
        for found in error.complaints
    ]


def _not(value: Any, wanted: str) -> str:
    if value is None:
        return "has no value; give one or leave the field out"
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, dict | list):
        shown = "a mapping" if isinstance(value, dict) else "a list"
    else:
        shown = repr(value)
    quotes = f'; write it in quotes: "{shown}"' if wanted == "text" and _scalar(value) else ""
    return f"must be {wanted}, not {shown}{quotes}"


def no_networks(_value: Any) -> tuple[()]:
    """The reach of what is neither an address nor a network."""
    return ()


def _scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(_not(value, "text"))
    # Before anything reads it: what cannot be encoded, or ends for others where it does not for us.
    if "\0" in value or not (value.isascii() or _HALF.search(value) is None):
        raise ValueError(trouble(value, lines=True))
    return value


def text(
    shown: str = "text",
    *,
    least: int = 1,
    longest: int = 0,
    lines: bool = False,
    unchecked: bool = False,
    reach: Reaching | None = None,
) -> Shape:
    def read(value: Any) -> str:
        given = _text(value)
        if len(given) < least:
            raise ValueError("cannot be empty")
        if longest and len(given.encode()) > longest:
            raise ValueError(f"must be at most {longest} bytes, not {len(given.encode())}")
        return given

    json: Json = {"type": "string", "minLength": least}
    json |= {"maxLength": longest} if longest else {}
    return Shape(read, json, shown, lines=lines, unchecked=unchecked, reach=reach)


def flag() -> Shape:
    def read(value: Any) -> bool:
        if not isinstance(value, bool):
            meant = _flag_meant(value) if isinstance(value, str) else ""
            raise ValueError(_not(value, "true or false") + meant)
        return value

    return Shape(read, {"type": "boolean"}, "true or false", reach=no_networks)


def _flag_meant(value: str) -> str:
    if value in ("true", "false"):
        return "; write it without quotes"
    meant = _OLD_FLAGS.get(value.lower())
    return f"; write {meant}" if meant else ""


def integer(low: int, high: int) -> Shape:
    def read(value: Any) -> int:
        if type(value) is not int:
            quoted = isinstance(value, str) and value.isdecimal()
            more = "; write it without quotes" if quoted else ""
            raise ValueError(_not(value, "a whole number") + more)
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}, not {value}")
        return value

    json: Json = {"type": "integer", "minimum": low, "maximum": high}
    return Shape(read, json, f"{low} to {high}", reach=no_networks)


def choice(*values: str) -> Shape:
    def read(value: Any) -> str:
        if value not in values:
            raise ValueError(_not(value, f"one of {', '.join(values)}"))
        return str(value)

    shown = ", ".join(f"`{value}`" for value in values)
    return Shape(read, {"enum": list(values)}, shown, reach=no_networks)


def parsed(
    parse: Callable[[str], Any],
    shown: str,
    json: Json | None = None,
    *,
    ifname: bool = False,
    reach: Reaching | None = None,
) -> Shape:
    """Text that `parse` turns into a value, or refuses with a ValueError that says why."""

    def read(value: Any) -> Any:
        return parse(_text(value))

    return Shape(read, {"type": "string", **(json or {})}, shown, ifname=ifname, reach=reach)


def reference(kind: type[Spec]) -> Shape:
    """The name of another resource, of the kind that has this spec."""
    return _reference(kind.__name__)


def link_reference() -> Shape:
    """The name of a resource of any kind that stands for a link."""
    return _reference(LINK)


def device_reference(*, empty: bool = False) -> Shape:
    """As `link_reference`, of a kind that any device of the kernel may be of. `empty`: "" stands
    for none."""
    return _reference(DEVICE, empty=empty)


def _reference(refers: str, *, empty: bool = False) -> Shape:
    inner = text(least=0 if empty else 1)
    more = ', `""` for none' if empty else ""
    return Shape(inner.read, inner.json, REFERRED + more, refers=refers, reach=no_networks)


def nested(spec: type[Spec]) -> Shape:
    return Shape(spec.read, {}, "fields below", nested=spec)


def listed(item: Shape, *, least: int = 1) -> Shape:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(_not(value, "a list"))
        if len(value) < least:
            raise ValueError(f"needs at least {least} items, not {len(value)}")
        found: list[Any] = []
        wrong: list[Complaint] = []
        for index, one in enumerate(value):
            try:
                found.append(item.read(one))
            except ValueError as error:
                wrong += _inside(index, error)
        if wrong:
            raise ShapeError(wrong)
        return tuple(found)

    shown = "list of objects with the fields below" if item.nested else f"list of {item.shown}"
    json: Json = {"type": "array", "items": item.json, "minItems": least}
    return Shape(
        read,
        json,
        shown,
        refers=item.refers,
        nested=item.nested,
        many=True,
        lines=item.lines,
        unchecked=item.unchecked,
        ifname=item.ifname,
        reach=item.reach,
    )


def values(spec: Spec) -> Iterator[tuple[Location, Shape, Any]]:
    """Every value in a spec that is given or has a default: where it stands and what it may be."""
    for entry in spec.entries:
        value = getattr(spec, entry.attribute)
        if value is None:
            continue
        items = enumerate(value) if entry.shape.many else ((None, value),)
        for index, item in items:
            here: Location = (entry.name,) if index is None else (entry.name, index)
            if entry.shape.nested is None:
                yield here, entry.shape, item
            else:
                for location, shape, inner in values(item):
                    yield (*here, *location), shape, inner


def references(spec: Spec) -> Iterator[tuple[Location, str, str]]:
    """Every reference in a spec: where it stands, what it asks for, the name it says."""
    for entry in spec.entries:
        if not entry.shape.refers and entry.shape.nested is None:
            continue
        value = getattr(spec, entry.attribute)
        if value is None:
            continue
        items = enumerate(value) if entry.shape.many else ((None, value),)
        for index, item in items:
            here: Location = (entry.name,) if index is None else (entry.name, index)
            if entry.shape.nested is not None:
                for location, asked, name in references(item):
                    yield (*here, *location), asked, name
            elif item:
                yield here, entry.shape.refers, item
