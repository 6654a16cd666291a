"""How records stand in JSON: each is declared once, for the way out and the way in.

Whoever reads a record is told of every fault in it, each with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from holdfast import characters
from holdfast.dataclass import dataclass
from holdfast.resources.spec.moments import parse_moment

T = TypeVar("T")
_REQUIRED: Any = object()
# Whatever comes next is numbered on from there, and SQLite has 64 bits for it.
_MOST = 2**53


class Wrong(ValueError):  # noqa: N818 (what is wrong with a value, not an error of ours)
    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults = list(faults)  # path, and what is wrong there
        super().__init__("; ".join(said for _, said in self.faults))


@dataclass(frozen=True, slots=True)
class Form:
    read: Callable[[Any], Any]  # ValueError
    write: Callable[[Any], Any] = lambda value: value


def _of_type(wanted: type, what: str) -> Form:
    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise ValueError(f"Input should be a valid {what}")
        return value

    return Form(read)


TEXT = _of_type(str, "string")
BOOLEAN = _of_type(bool, "boolean")
OBJECT = Form(lambda value: _named(value), dict)


def _named(value: Any) -> dict[str, Any]:
    if type(value) is not dict or not all(type(name) is str for name in value):
        raise ValueError("Input should be a valid dictionary")
    return value


def checked(form: Form, check: Callable[[Any], Any]) -> Form:
    """check: answers with the value, or another in its place; ValueError."""
    return Form(lambda value: check(form.read(value)), form.write)


def _check_name(text: str) -> str:
    wrong = "Input should have at least 1 character" if not text else characters.trouble(text)
    if wrong:
        raise ValueError(wrong)
    return text


NAME = checked(TEXT, _check_name)


def whole_number(least: int) -> Form:
    def check(value: int) -> int:
        if not least <= value <= _MOST:
            raise ValueError(f"Input should be a number from {least} to {_MOST}")
        return value

    return checked(_of_type(int, "integer"), check)


COUNT, NUMBER = whole_number(0), whole_number(1)


def choice(*words: str) -> Form:
    def check(value: Any) -> Any:
        if type(value) is not str or value not in words:
            first, last = ", ".join(map(repr, words[:-1])), repr(words[-1])
            raise ValueError(f"Input should be {first} or {last}")
        return value

    return Form(check)


def _write_moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


MOMENT = Form(lambda value: parse_moment(TEXT.read(value)), _write_moment)


def or_none(form: Form) -> Form:
    return Form(
        lambda value: None if value is None else form.read(value),
        lambda value: None if value is None else form.write(value),
    )


def several(form: Form) -> Form:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ValueError("Input should be a valid list")
        return tuple(_each(form, ((f"[{at}]", item) for at, item in enumerate(value))).values())

    return Form(read, lambda value: [form.write(item) for item in value])


def by_name(form: Form) -> Form:
    def read(value: Any) -> dict[str, Any]:
        found = _each(form, ((f".{name}", item) for name, item in _named(value).items()))
        return {place[1:]: item for place, item in found.items()}

    return Form(read, lambda value: {name: form.write(item) for name, item in value.items()})


def _each(form: Form, items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    faults: list[tuple[str, str]] = []
    for place, item in items:
        try:
            found[place] = form.read(item)
        except ValueError as error:
            faults += _at(place, error)
    if faults:
        raise Wrong(faults)
    return found


def _at(place: str, error: ValueError) -> list[tuple[str, str]]:
    if isinstance(error, Wrong):
        return [(place + inner, said) for inner, said in error.faults]
    return [(place, str(error))]


@dataclass(frozen=True, slots=True)
class Member:
    form: Form
    default: Any = _REQUIRED
    get: Callable[[Any], Any] | None = None  # from a record; without: what it calls by this name


class Record(Generic[T]):
    """make: of the members by their names; ValueError, with Wrong for the place of a fault."""

    def __init__(self, make: Callable[..., T], members: Mapping[str, Member | Form]) -> None:
        self._make = make
        self._members = {
            name: member if isinstance(member, Member) else Member(member)
            for name, member in members.items()
        }
        self._written = {
            name: (member.get or attrgetter(name), member.form.write)
            for name, member in self._members.items()
        }

    @property
    def form(self) -> Form:
        return Form(self.read, self.write)

    def read(self, value: Any) -> T:
        given = _named(value)
        found: dict[str, Any] = {}
        faults: list[tuple[str, str]] = []
        for name, member in self._members.items():
            if name in given:
                try:
                    found[name] = member.form.read(given[name])
                except ValueError as error:
                    faults += _at(f".{name}", error)
            elif member.default is _REQUIRED:
                faults.append((f".{name}", "Field required"))
            else:
                found[name] = member.default
        unknown = given.keys() - self._members.keys()
        faults += [(f".{name}", "Extra inputs are not permitted") for name in sorted(unknown)]
        if faults:
            raise Wrong(faults)
        return self._make(**found)

    def write(self, record: T) -> dict[str, Any]:
        return {name: write(get(record)) for name, (get, write) in self._written.items()}
