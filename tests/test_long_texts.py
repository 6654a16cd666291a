"""Texts of others may be as long as they like: whatever is searched takes time in proportion.

`re` holds the interpreter while it searches. A pattern that begins anew at every character of a
word of 20 000 takes a minute, in which the daemon repairs nothing.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, ModuleType
from typing import Any

import pytest

import holdfast
from holdfast import characters
from holdfast.cli import terminal
from holdfast.config import said_secrets, yaml12
from holdfast.config.redaction import redact, redact_lines
from holdfast.config.secret_names import holds_secrets, is_secret
from holdfast.engine import difference
from holdfast.errors import HoldfastError
from holdfast.host import shown
from holdfast.host.services import log, unit_file
from holdfast.render.explain import selector
from holdfast.resources.dynamic import dynamic_override_policy
from holdfast.resources.spec.dns_name import parse_domain, parse_host
from holdfast.resources.spec.durations import parse_duration
from holdfast.resources.spec.moments import parse_moment
from holdfast.runtime.actions.named_addresses import named
from holdfast.runtime.plugins import sanitize

pytestmark = pytest.mark.long

SIZE = 20_000
# Seconds of this process for all texts together. In proportion it is a few; in its square, one text
# takes longer.
LIMIT = 20
# What is repeated: of every kind of character that patterns have, and what leads them astray.
REPEATED = (
    *(
        "a",
        "A",
        "0",
        "_",
        "-",
        ".",
        ":",
        "=",
        "/",
        "*",
        "@",
        "#",
        '"',
        "'",
        "\\",
        "{",
        "[",
        ",",
        ";",
    ),
    *(
        " ",
        "\t",
        "\n",
        " \n",
        "#\n",
        "\r\n",
        "a ",
        "a\t",
        "a\n",
        "- ",
        "* ",
        '" ',
        "' ",
        "# ",
        " #",
    ),
    *(
        "a-",
        "a.",
        "a:",
        "a=",
        "a: ",
        "a = ",
        "a/",
        "1.",
        "1-",
        "1:",
        "0x",
        "1m",
        "1.1s",
        "ff:",
        "ä",
    ),
    *(
        "password",
        "password ",
        "password:",
        'password "',
        "password is ",
        "key a",
        "token-",
        "include ",
    ),
    *(
        "://",
        "a://",
        "://a:",
        "://a@",
        "\x1b[",
        "\x1b[1;",
        '"\\',
        '\\"',
        "/a/",
        "+",
        "A=",
        "(",
        "to",
        "1 - ",
    ),
)
AROUND = (("", "!"), ("# key ", ""), ('a: "', "\x00"))


def texts(size: int = SIZE) -> Iterator[str]:
    for one in REPEATED:
        for before, after in AROUND:
            yield f"{before}{one * (size // len(one))}{after}"


@contextmanager
def in_time() -> Iterator[None]:
    """By the time that this process uses itself: others may have the cores."""

    def too_late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {LIMIT} s")

    before = signal.signal(signal.SIGVTALRM, too_late)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns() -> Iterator[Any]:
    """Every one, as its module uses it: from the start of a text alone, or from anywhere in it."""
    for module in modules():
        compiled = {name: one for name, one in vars(module).items() if isinstance(one, re.Pattern)}
        source = inspect.getsource(module) if compiled else ""
        for name, one in compiled.items():
            anywhere = re.search(rf"\b{name}\.(search|find\w+|sub|split)\b", source)
            calls = (one.search, one.sub) if anywhere else (one.match, one.fullmatch)
            yield pytest.param(one, calls, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize(("pattern", "calls"), list(patterns()))
def test_a_pattern(pattern: re.Pattern[Any], calls: tuple[Callable[..., object], ...]) -> None:
    with in_time():
        for text in texts():
            given = text if isinstance(pattern.pattern, str) else text.encode()
            for call in calls:
                call("", given) if call == pattern.sub else call(given)


def _built(text: str) -> None:
    node = yaml12.compose(text)
    if node is not None:
        yaml12.Construction().build(node)


def _cleaned(text: str) -> None:
    shown.cleaned(difference.of(difference.text([], [text])))


def _allowed(text: str) -> None:
    dynamic_override_policy.matches("net.*a*a*a*a*b", f"net.{text}")


READERS: dict[str, Callable[[str], object]] = {
    "redact": redact,
    "redact_lines": redact_lines,
    "redact, a document": lambda text: redact(f"a: b\nenv:\n  A: c # {text}\n# {text}\nd: e\n"),
    "struck": lambda text: said_secrets.struck(text, holds_secrets),
    "is_secret": is_secret,
    "a difference": _cleaned,
    "a log": lambda text: log.joined(text, 4),
    "sanitize.line": lambda text: sanitize.line(text, ("hunter2",)),
    "sanitize.lines": lambda text: sanitize.lines(text, ("hunter2",)),
    "named_addresses": lambda text: list(named("", text[:8000])),
    "escaped": characters.escaped,
    "selector": selector.parse,
    "YAML": _built,
    "duration": parse_duration,
    "moment": parse_moment,
    "domain": parse_domain,
    "host": parse_host,
    "a unit": unit_file._said,
    "a path": lambda text: terminal._relative_places(text, "/a/"),
    "settings": _allowed,
}


@pytest.mark.parametrize("name", READERS)
def test_what_reads_texts(name: str) -> None:
    with in_time():
        for text in texts():
            with suppress(ValueError, HoldfastError, yaml12.UnreadableError):
                READERS[name](text)


def test_many_fields_that_are_lengths() -> None:
    """Each is joined with each address that stands beside it."""
    plan = {f"a{number}": f"10.{number >> 8}.{number & 255}.1" for number in range(4_000)}
    lengths = {f"bits{number}": str(number % 33) for number in range(4_000)}
    with in_time():
        assert sum(1 for _ in named("", {**plan, **lengths}))


def test_a_line_that_is_too_long_is_counted() -> None:
    text = f"a: b\n# key {'a-' * 50_000}\nc: d\n"
    assert redact(text) == "a: b\n#(100005 characters, not shown)\nc: d\n"
    assert (
        redact(f"10.0.0.0/8\n{'a' * 100_000}\n") == "10.0.0.0/8\n(100000 characters, not shown)\n"
    )
