"""`dataclass` as the standard library has it, made in a quarter of the time.

The standard one compiles six functions for a frozen class, one by one. At 0.65 ms a class, more
than a quarter of the processor time of a small plan went there. Here only `__init__` is compiled;
to show, compare and hash works the same way for every class.

mypy takes this for the standard one, and refuses to assign to what is frozen. Nothing does at run
time, which makes it four times as fast to create one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "replace"]


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True
) -> Callable[[Any], Any]:
    def made(cls: Any) -> Any:
        # Without one, the standard library works out a signature to put there.
        cls.__doc__ = cls.__doc__ or cls.__name__
        cls = dataclasses.dataclass(cls, repr=False, eq=False, slots=slots)
        cls.__repr__ = _shown
        if eq:
            _compare_fields(cls)
            if not frozen:
                cls.__hash__ = None
        return cls

    return made


def _shown(self: Any) -> str:
    fields = (each.name for each in dataclasses.fields(self) if each.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields)
    return f"{type(self).__qualname__}({values})"


def _compare_fields(cls: Any) -> None:
    names = (each.name for each in dataclasses.fields(cls) if each.compare)
    values = attrgetter("__class__", *names)  # which takes one name at least

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def digest(self: Any) -> int:
        return hash(values(self))

    cls.__eq__, cls.__hash__ = equal, digest


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass
