"""What `nft` is told: whole transactions around the body of one table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds.nft import MARK, nft_table
from holdfast.errors import DriverError
from holdfast.host.nft.nft_ruleset import FAMILIES

if TYPE_CHECKING:
    from holdfast.host.process import Ended

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# What decides where a body ends. Quoted text has no escapes and may go on over lines; a note runs
# to the end of its line.
_ENDS = re.compile(r'[{}]|"[^"]*"?|\#[^\n]*')
# All other bytes. Without them a body of megabytes is a few thousand bytes that end the same way.
_OTHERS = bytes(set(range(256)) - set(b'{}"#\n'))
_INCLUDE = re.compile(r"(?<![\w./-])include(?![\w./-])")
_LONGEST_QUOTE = 160


def create(artifact: Artifact) -> str:
    """Fails where a table of that name exists.

    In two commands: nft passes over the chains and sets that it reads in `create table`, and the
    kernel over a comment for a table that exists.
    """
    family, name = _identity(artifact)
    body = _body(artifact, family, name)
    comment = f'{{ comment "{MARK} {artifact.fields["content"]}"; }}'
    return f"create table {family} {name} {comment}\ntable {family} {name} {{\n{body}\n}}\n"


def replace(artifact: Artifact, handle: int) -> str:
    """Fails where that very table is gone, even where another has its name by now.

    The table is deleted once more by its name because nft, which adds elements to intervals it
    believes to be there, forgets a table's sets only then.
    """
    family, name = _identity(artifact)
    again = f"add table {family} {name}\ndelete table {family} {name}\n"
    return delete(family, handle) + again + create(artifact)


def delete(family: str, handle: int) -> str:
    return f"delete table {family} handle {handle}\n"


def complaint(ended: Ended) -> str:
    """nft's own words: what was wrong and the line it was in, of the first error."""
    lines = ended.err.splitlines()
    for at, line in enumerate(lines):
        place, error, words = line.partition(" Error: ")
        if error:
            source = lines[at + 1].strip() if at + 1 < len(lines) else ""
            if len(source) > _LONGEST_QUOTE:
                source = source[:_LONGEST_QUOTE] + "…"
            said = f"nft: {words} ({place.removeprefix('/dev/stdin:').rstrip(':')}"
            return f"{said}: {source})" if source else f"{said})"
    return f"nft: {ended.said}"


def _identity(artifact: Artifact) -> tuple[str, str]:
    family, _, name = artifact.key.name.partition(" ")
    if family not in FAMILIES or not _NAME.fullmatch(name):
        raise DriverError(f"{artifact.key.name!r} is no family and name of a table")
    return family, name


def _body(artifact: Artifact, family: str, name: str) -> str:
    try:
        body = artifact.payload.decode()
    except UnicodeDecodeError as error:
        raise DriverError(f"the body of the table is not UTF-8: {error}") from error
    # Fields travel in a plan file, the body does not: a table must not be emptied for that.
    if nft_table(family, name, body).fields["content"] != artifact.fields["content"]:
        raise DriverError("the plan does not carry the content it declares")
    _check(artifact.payload, body)
    return body


def _check(payload: bytes, body: str) -> None:
    """Nothing of it may be read outside the braces it is put between, nor from another file.

    payload: the body as bytes, of which UTF-8 makes none that is not the character itself.
    """
    at, why = _misplaced_end(payload.translate(None, _OTHERS).decode())
    if why:
        at, why = _misplaced_end(body)
        raise _unfit(body, at, why)
    if "include" in body:
        bare = _ENDS.sub(lambda found: " " * len(found[0]), body)
        included = _INCLUDE.search(bare)
        if included:
            raise _unfit(body, included.start(), "it includes a file")


def _misplaced_end(body: str) -> tuple[int, str]:
    """Where the body ends too early or not at all, and why; "" where it ends as it should."""
    depth = 0
    for found in _ENDS.finditer(body):
        word = found[0]
        if word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
        elif word[0] == '"' and (len(word) == 1 or word[-1] != '"'):
            return found.start(), "it opens a quote that it does not close"
        if depth < 0:
            return found.start(), "it closes a brace that it did not open"
    return len(body), "it opens a brace that it does not close" if depth else ""


def _unfit(body: str, at: int, why: str) -> DriverError:
    line = body.count("\n", 0, at) + 1
    return DriverError(f"the body of the table is not taken, line {line} of it: {why}")
