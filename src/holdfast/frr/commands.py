"""What may be sent to FRR: every line passes here before it goes near a socket.

A daemon reads bytes up to a NUL and splits them at white space, newlines included. Of more than
4 096 bytes it runs the rest as a command of its own. It takes `| ` for a pipe, cuts the line there
and stores what stood before. None of this is an error to it, so it must not get there.
"""

from __future__ import annotations

from holdfast.dataclass import dataclass, field
from holdfast.errors import DriverError

# Of 4 096 that a daemon takes, so that no word of ours can come near it.
MOST_BYTES = 1_000
PASSWORD_MOST = 80
HIDDEN = "(not shown)"


class Unsendable(DriverError):  # noqa: N818 (it is refused before it is tried)
    """Text that FRR would not store as it was meant."""


@dataclass(frozen=True, slots=True)
class Line:
    """One command, safe to send. It may hold a secret, so it is shown by `str` alone."""

    text: str = field(repr=False)
    secret: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.hide(self.text)

    def hide(self, text: str) -> str:
        """The same text without the secret: FRR repeats a command it does not take."""
        return text.replace(self.secret, HIDDEN) if self.secret else text


def line(text: str, secret: str = "") -> Line:
    """The command in the form that FRR stores it in: runs of spaces are one. Raises Unsendable.

    secret: the word of it that is for FRR alone.
    """
    hidden = Line(text, secret)
    control = next((char for char in text if char < " " or "\x7f" <= char <= "\x9f"), "")
    if control:
        raise Unsendable(f"FRR takes no control character (U+{ord(control):04X}) in {_of(hidden)}")
    normal = " ".join(word for word in text.split(" ") if word)
    try:
        size = len(normal.encode())
    except UnicodeEncodeError as error:
        raise Unsendable(f"no text: {error.reason}") from error
    if not normal or normal[0] in "!#":
        raise Unsendable(f"FRR takes this for a comment: {_of(hidden)}")
    if size >= MOST_BYTES:
        raise Unsendable(f"{size} bytes are too long for a line of FRR: {_of(hidden)}")
    if "| " in normal:
        raise Unsendable(f"FRR would cut the line at '| ': {_of(hidden)}")
    return Line(normal, secret)


def word(value: object) -> str:
    """A value that is one word of a line. Raises Unsendable where FRR would see more, or none."""
    text = str(value)
    if not text or any(char.isspace() for char in text):
        raise Unsendable(f"FRR takes one word here, not {text[:80]!r}")
    return text


def password(value: str) -> str:
    if len(value.encode()) > PASSWORD_MOST or any(char.isspace() for char in value) or not value:
        raise Unsendable(f"FRR takes a password of 1 to {PASSWORD_MOST} bytes without spaces")
    return value


def _of(shown: Line) -> str:
    return f"{str(shown)[:80]!r}"
