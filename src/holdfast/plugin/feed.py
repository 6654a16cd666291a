"""`holdfast-feed`: a plugin that contributes routes from a JSON or CSV file, or from a web server.

Its settings stand under `env` of the Plugin resource:

    FEED    a path, or an http:// or https:// address
    FORMAT  json or csv; without, told by the end of FEED's name
    NAME    of the RouteList it contributes; without, that of the plugin
    TTL     how long what it read holds (10m)
    VIA     gateway for entries without one
    TABLE, METRIC  for all of them

JSON is a list of prefixes or of objects with `prefix`, `via`, `dev`, `metric`; CSV has a head line
with these names, `prefix` at least. An entry that cannot be read fails the run with its place, and
what was contributed before stays in force until it expires: half of a feed is worse than the last
whole one.
"""

from __future__ import annotations

import csv
import ipaddress
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, build_opener

from holdfast.plugin import Failed, Request, Result, run

_MOST_BYTES = 3 << 20
_MOST_ROUTES = 50_000
_TIMEOUT_S = 8.0
_FIELDS = {"prefix", "via", "dev", "metric"}


def main() -> None:
    run(look)


def look(request: Request) -> Result:
    settings = os.environ
    feed = settings.get("FEED", "")
    if not feed:
        raise Failed("FEED is not set: name a file or an address under `env` of the Plugin")
    text = _fetch(feed)
    entries = _csv(text, feed) if _format(feed, settings) == "csv" else _json(text, feed)
    lines = [_line(place, entry, settings) for place, entry in entries]
    if len(lines) > _MOST_ROUTES:
        raise Failed(f"{feed}: {len(lines)} routes, more than {_MOST_ROUTES}")
    result = Result(ttl=settings.get("TTL", "10m"))
    if lines:
        name = settings.get("NAME", request.name)
        result.add("net.holdfast.dev/v1alpha1", "RouteList", name, {"routes": lines})
    return result


def _format(feed: str, settings: Mapping[str, str]) -> str:
    named = settings.get("FORMAT") or feed.rpartition(".")[2].lower()
    if named not in ("json", "csv"):
        raise Failed(f"{feed}: set FORMAT to json or csv")
    return named


class _SameScheme(HTTPRedirectHandler):
    """A web server must not be able to lead to a file of this machine, nor from an address that
    proves who answers to one that does not."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        downgraded = req.full_url.startswith("https://") and newurl.startswith("http://")
        if downgraded or not newurl.startswith(("http://", "https://")):
            raise Failed(f"{req.full_url} leads to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(feed: str) -> str:
    try:
        if feed.startswith(("http://", "https://")):
            with build_opener(_SameScheme).open(feed, timeout=_TIMEOUT_S) as answer:
                data: bytes = answer.read(_MOST_BYTES + 1)
                # A read of so many bytes is content with fewer, also where more were announced.
                if answer.length and len(data) <= _MOST_BYTES:
                    raise Failed(f"{feed}: was cut short, {answer.length} bytes are missing")
        else:
            if not stat.S_ISREG(Path(feed).stat().st_mode):  # a pipe would be waited for
                raise Failed(f"{feed}: is not a regular file")
            with Path(feed).open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
    except URLError as error:
        raise Failed(f"{feed}: {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise Failed(f"{feed}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST_BYTES:
        raise Failed(f"{feed}: more than {_MOST_BYTES >> 20} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Failed(f"{feed}: is not UTF-8") from None


def _json(text: str, feed: str) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise Failed(f"{feed}: is not JSON: {error}") from None
    if not isinstance(data, list):
        raise Failed(f"{feed}: must be a list of routes")
    for number, entry in enumerate(data):
        place = f"{feed}[{number}]"
        if isinstance(entry, str):
            yield place, {"prefix": entry}
        elif isinstance(entry, dict) and all(isinstance(v, str | int) for v in entry.values()):
            yield place, {name: str(value) for name, value in entry.items()}
        else:
            raise Failed(f"{place}: is neither a prefix nor an object of prefix, via, dev, metric")


def _csv(text: str, feed: str) -> Iterator[tuple[str, dict[str, str]]]:
    reader = csv.DictReader(text.splitlines(), strict=True)
    if "prefix" not in (reader.fieldnames or ()):
        raise Failed(f"{feed}:1: the head line must name the columns, `prefix` among them")
    try:
        for row in reader:
            place = f"{feed}:{reader.line_num}"
            if None in row:
                raise Failed(f"{place}: more values than the head line has names")
            yield place, {name: (value or "").strip() for name, value in row.items()}
    except csv.Error as error:
        raise Failed(f"{feed}:{reader.line_num}: {error}") from None


def _line(place: str, entry: Mapping[str, str], settings: Mapping[str, str]) -> str:
    unknown = sorted(entry.keys() - _FIELDS)
    if unknown:
        raise Failed(f"{place}: unknown field {unknown[0]!r}; known are prefix, via, dev, metric")
    via, dev = entry.get("via") or settings.get("VIA", ""), entry.get("dev", "")
    words = [_checked(place, "prefix", entry.get("prefix", ""))]
    if via:
        words += ["via", _checked(place, "via", via)]
    if dev:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,63}", dev):
            raise Failed(f"{place}: dev {dev!r} is not the name of an interface")
        words += ["dev", dev]
    if not via and not dev:
        raise Failed(f"{place}: needs via or dev, or set VIA for all")
    for word, value in (
        ("metric", entry.get("metric") or settings.get("METRIC", "")),
        ("table", settings.get("TABLE", "")),
    ):
        if value:
            if not (value.isascii() and value.isdecimal()):
                raise Failed(f"{place}: {word} {value!r} is not a number")
            words += [word, value]
    return " ".join(words)


def _checked(place: str, field: str, value: str) -> str:
    try:
        if field == "via":
            return str(ipaddress.ip_address(value))
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        raise Failed(f"{place}: {field}: {error}") from None


if __name__ == "__main__":
    main()
