"""Unit files of systemd: how a definition is written as one, and told from others'."""

from __future__ import annotations

import hashlib
import re

from holdfast.config.redaction import SHOWN, is_secret
from holdfast.dataclass import dataclass
from holdfast.engine.kinds.service import PREFIX
from holdfast.engine.kinds.unit import FOLDER
from holdfast.host.services import reads, sandbox
from holdfast.host.services.folder import PLACE as RECORDS
from holdfast.host.services.folder import Definition

# systemd passes over sections whose names begin so.
_SECTION = "[X-Holdfast]\n"
_MARKS = ("Mark", "Unit", "Reload", "Read")
# Asks every second until the first process is over, which is seen by its folder: another process
# that gets its number has another one. Not run where that process ended by itself: no number then.
_STOP = (
    'test -n "$1" && cd "/proc/$1" || exit 0;'
    ' while kill -TERM "$1";'
    " do for pause in .01 .04 .05 .1 .2 .3 .3;"
    ' do sleep "$pause"; test -e stat || exit 0; done; done'
)
_SHOWN = {"Description": "description", "TimeoutStopSec": "seconds to stop"}
_HEAD = "# Holdfast wrote this file and will write it again.\n"


@dataclass(frozen=True, slots=True)
class Marked:
    """What a unit file of ours says of itself."""

    mark: str
    unit: str
    reload: str
    read: str
    intact: bool  # nobody changed it by hand


def unit_name(name: str) -> str:
    return f"{PREFIX}{name}.service"


def place(name: str) -> str:
    return f"{FOLDER}/{unit_name(name)}"


def render(definition: Definition) -> bytes:
    description = definition.description or definition.name
    lines = [
        "[Unit]",
        f"Description={_line(description)}",
        "After=network-pre.target",
        # Tried for as long as it is declared.
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
    ]
    if definition.folders:
        lines.append(f"ExecStartPre=+{_words(('/usr/bin/mkdir', '-p', '--', *definition.folders))}")
    note = ("/bin/sh", "-c", reads.NOTE, "sh", f"{RECORDS}/{definition.name}.started")
    lines += [
        f"ExecStartPre=+{_words((*note, *definition.files))}",
        f"ExecStart={_words(definition.argv)}",
        "ExecReload=+/bin/kill -HUP $MAINPID",
        *(
            f"Environment={_quoted(f'{name}={value}')}"
            for name, value in sorted(definition.environment.items())
        ),
        "Restart=always",
        "RestartSec=1",
        # dhcpcd 9.4.1 loses a signal that comes while its hook runs, and systemd asks only once.
        f"ExecStop=+/bin/sh -c {_quoted(_STOP.replace('$', '$$'))} sh $MAINPID",
        f"TimeoutStopSec={definition.stop_timeout}",
        "KillSignal=SIGKILL",  # after that, where ExecStop has not ended it
        # As our own supervisor has it: the first process is asked, the others end with it.
        "KillMode=mixed",
        *sandbox.lines(definition.name),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
        "",
    ]
    text = _HEAD + "\n".join(lines) + "\n"
    marks = _marks(definition.mark, definition.unit, definition.reload, definition.read)
    return f"{text}{_SECTION}{marks}Digest={_digest(text + marks)}\n".encode()


def read(content: bytes) -> Marked | None:
    """None where it is not one of ours."""
    text, section, marks = content.decode(errors="replace").partition(f"\n{_SECTION}")
    if not section:
        return None
    said = dict(line.partition("=")[::2] for line in marks.splitlines())
    mark, unit, reload, read = (said.get(name, "") for name in _MARKS)
    if not mark:
        return None
    written = f"{text}\n{_marks(mark, unit, reload, read)}"
    return Marked(mark, unit, reload, read, intact=said.get("Digest") == _digest(written))


def settings(content: bytes) -> list[str]:
    """What a unit file of ours sets, one thing a line, less what is the same for all."""
    text, _, _ = content.decode(errors="replace").partition(f"\n{_SECTION}")
    found: list[str] = []
    for line in text.splitlines():
        name, _, value = line.partition("=")
        match name:
            case "Description" | "TimeoutStopSec":
                found.append(f"{_SHOWN[name]} {value.replace('%%', '%')}")
            case "ExecStart":
                found += (f"argument {word}" for word in _said(value))
            case "ExecStartPre":
                program, *words = _said(value)
                found += (f"folder {word}" for word in words[2:] if program.endswith("/mkdir"))
            case "Environment":
                found += (f"environment {_variable(word)}" for word in _said(value))
    return found


def _said(words: str) -> list[str]:
    """The inverse of `_words`."""
    # To the end where a quote stays open: else each one behind it would be tried anew.
    found = re.finditer(r'"((?:[^"\\]|\\.)*)("|\\?$)', words)
    quoted = [one[1] for one in found if one[2] == '"']
    return [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in quoted]


def _variable(setting: str) -> str:
    name, _, value = setting.partition("=")
    return f"{name}={SHOWN if is_secret(name) else value}"


def _marks(*values: str) -> str:
    return "".join(f"{name}={value}\n" for name, value in zip(_MARKS, values, strict=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _words(argv: tuple[str, ...]) -> str:
    # The colon: `$` is a character like any other (systemd.service(5)).
    return ":" + " ".join(_quoted(word) for word in argv)


def _quoted(word: str) -> str:
    return '"' + _plain(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _line(text: str) -> str:
    """Without quotes around it, a line that ends in a backslash goes on in the next one, and no
    escape is known there: it is shown twice."""
    plain = _plain(text)
    backslashes = len(plain) - len(plain.rstrip("\\"))
    return plain + "\\" * (backslashes % 2)


def _plain(text: str) -> str:
    # A line break would begin another setting; `check` lets none pass, and here nobody asks it.
    if any(ord(character) < 32 for character in text):
        raise ValueError(f"{text!r} has a control character in it")
    return text.replace("%", "%%")
