"""Peers and groups: the lines of FRR as fields, and what has to be said for other fields.

What is cleared is negated: FRR keeps whatever it is not told to forget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.engine.artifact import Fields, Value
from holdfast.engine.kinds.bgp_peer import MULTIHOP_ANY, Session, is_address, password_digest
from holdfast.frr import commands
from holdfast.frr.commands import Line, line
from holdfast.frr.running_config import Bgp, Neighbour

FAMILIES = {"ipv4 unicast": "ipv4_unicast", "ipv6 unicast": "ipv6_unicast"}
_FLAGS = {
    "disable-connected-check": "disable_connected_check",
    "passive": "passive",
    "shutdown": "shutdown",
    "graceful-shutdown": "graceful_shutdown",
    "capability extended-nexthop": "extended_nexthop",
    "bfd": "bfd",
}
_TEXTS = {
    "description": "description",
    "local-as": "local_as",
    "update-source": "update_source",
    "remote-as": "remote_as",
    "bfd profile": "bfd_profile",
    "peer-group": "group",
}
_NUMBERS = {
    "ttl-security hops": "ttl_security",
    "timers connect": "connect_time",
    "advertisement-interval": "advertisement_interval",
}
_RESTARTS = {
    "graceful-restart": "restart",
    "graceful-restart-helper": "helper",
    "graceful-restart-disable": "disable",
}
_DIRECTED = ("route-map", "prefix-list", "filter-list", "distribute-list")
_TOGETHER = ("bfd check-control-plane-failure",)


def fields_of(told: Neighbour, instance: Bgp) -> dict[str, Value]:
    """As the declaration of the kind has them; `other` holds what no field stands for."""
    found: dict[str, Value] = Session().fields()
    found["listen_ranges" if told.is_group else "group"] = told.ranges if told.is_group else None
    other: list[str] = []
    for said in _settings(told.lines):
        if not _take(said, found) and said != "peer-group":
            other.append(said)
    default = "no bgp default ipv4-unicast" not in instance.lines
    for family, field in FAMILIES.items():
        lines = list(told.families.get(family, ()))
        implied = family == "ipv4 unicast" and default
        if "no activate" in lines:
            if found.get("group") is None:
                lines.remove("no activate")
        elif implied and found.get("group") is None and "activate" not in lines:
            lines.append("activate")
        found[field] = tuple(sorted(lines))
    for family, lines_ in told.families.items():
        if family not in FAMILIES:
            other += (f"{family} {said}" for said in lines_)
    if other:
        found["other"] = tuple(other)
    return found


def _settings(lines: Sequence[str]) -> Iterator[str]:
    """`neighbor LINK interface remote-as external` says two things at once."""
    for said in lines:
        if said == "interface":
            continue
        if said.startswith("interface "):
            words = said.split()[1:]
            if words[0] == "v6only":
                yield words.pop(0)
            if words:
                yield " ".join(words)
        else:
            yield said


def _take(said: str, found: dict[str, Value]) -> bool:
    word, _, rest = said.partition(" ")
    two, _, behind = rest.partition(" ")
    if said in _FLAGS:
        found[_FLAGS[said]] = True
    elif said in _RESTARTS:
        found["graceful_restart"] = _RESTARTS[said]
    elif word == "password":
        found["password"] = password_digest(rest)
    elif word == "ebgp-multihop":
        found["ebgp_multihop"] = int(rest) if rest else MULTIHOP_ANY
    elif f"{word} {two}" in _NUMBERS and behind.isdigit():
        found[_NUMBERS[f"{word} {two}"]] = int(behind)
    elif word in _NUMBERS and rest.isdigit():
        found[_NUMBERS[word]] = int(rest)
    elif f"{word} {two}" in _TEXTS and behind:
        found[_TEXTS[f"{word} {two}"]] = behind
        if word == "bfd":
            found["bfd"] = True
    elif word == "timers" and two.isdigit() and behind.isdigit():
        found["keepalive"], found["hold_time"] = int(two), int(behind)
    elif word in _TEXTS and rest:
        found[_TEXTS[word]] = rest
    else:
        return False
    return True


def password_in(told: Neighbour) -> bytes:
    for said in told.lines:
        if said.startswith("password "):
            return said.removeprefix("password ").encode()
    return b""


# Of each field the words that set it, and those that take it back from what is there.
_Said = Callable[[Value], str]
_SET: Mapping[str, tuple[_Said, _Said]] = {
    "local_as": (lambda new: f"local-as {new}", lambda _old: "local-as"),
    "update_source": (lambda new: f"update-source {new}", lambda _old: "update-source"),
    "ebgp_multihop": (lambda new: f"ebgp-multihop {new}", lambda _old: "ebgp-multihop"),
    "ttl_security": (
        lambda new: f"ttl-security hops {new}",
        lambda old: f"ttl-security hops {old}",
    ),
    "connect_time": (lambda new: f"timers connect {new}", lambda _old: "timers connect"),
    "advertisement_interval": (
        lambda new: f"advertisement-interval {new}",
        lambda _old: "advertisement-interval",
    ),
    "description": (lambda new: f"description {new}", lambda _old: "description"),
    # Before `bfd`: on 8.4, to take the profile away puts BFD back.
    "bfd_profile": (lambda new: f"bfd profile {new}", lambda old: f"bfd profile {old}"),
    **{
        field: (lambda _new, word=word: word, lambda _old, word=word: word)  # type: ignore[misc]
        for word, field in _FLAGS.items()
    },
    "graceful_restart": (
        lambda new: _restart_word(new),
        lambda old: _restart_word(old),
    ),
}


def _restart_word(value: Value) -> str:
    return next(word for word, said in _RESTARTS.items() if said == value)


def making(name: str, wanted: Fields, is_group: bool) -> list[Line]:
    """The line that makes a peer or a group."""
    name = commands.word(name)
    if is_group:
        return [line(f"neighbor {name} peer-group")]
    how = "" if is_address(name) else " interface"
    if wanted.get("group") and not (is_address(name) and wanted.get("remote_as")):
        return [line(f"neighbor {name}{how} peer-group {commands.word(wanted['group'])}")]
    return [line(f"neighbor {name}{how} remote-as {commands.word(wanted['remote_as'])}")]


def ending(name: str, is_group: bool) -> Line:
    name = commands.word(name)
    if is_group:
        return line(f"no neighbor {name} peer-group")
    return line(f"no neighbor {name}" if is_address(name) else f"no neighbor {name} interface")


def main_lines(name: str, old: Fields, new: Fields, password: str) -> list[Line]:
    """What makes the old fields the new ones, family by family apart."""
    said = f"neighbor {commands.word(name)}"
    cleared: list[Line] = []
    given: list[Line] = []
    for word, field in (("remote-as", "remote_as"), ("peer-group", "group")):
        before, after = old.get(field), new.get(field)
        if before == after:
            continue
        if after is not None:
            given.append(line(f"{said} {word} {commands.word(after)}"))
        elif before is not None:
            cleared.append(line(f"no {said} {word} {before}"))
    for field, (give, clear) in _SET.items():
        before, after = old.get(field), new.get(field)
        if before == after or field not in new:
            continue
        if after:
            given.append(line(f"{said} {give(after)}"))
        elif before:
            cleared.append(line(f"no {said} {clear(before)}"))
    timers = old.get("keepalive"), old.get("hold_time")
    wanted = new.get("keepalive"), new.get("hold_time")
    if timers != wanted:
        if wanted[0] is None:
            cleared.append(line(f"no {said} timers"))
        else:
            given.append(line(f"{said} timers {wanted[0]} {wanted[1]}"))
    if old.get("password") != new.get("password"):
        if new.get("password") is None:
            cleared.append(line(f"no {said} password"))
        else:
            secret = commands.password(password)
            given.append(line(f"{said} password {secret}", secret))
    for told in _words(old.get("other")):
        if not told.startswith(_OTHER_FAMILIES):
            cleared.append(_negated(said, told))
    return [*cleared, *given]


_OTHER_FAMILIES = ("ipv4 ", "ipv6 ", "l2vpn ")


def family_lines(name: str, old: Fields, new: Fields) -> dict[str, list[Line]]:
    """For each address family, what is said in it."""
    said = f"neighbor {commands.word(name)}"
    found: dict[str, list[Line]] = {}
    for family, field in FAMILIES.items():
        before, after = _words(old.get(field)), _words(new.get(field))
        slots = {_slot(told) for told in after}
        given = sorted(set(after) - set(before), key=lambda told: told != "activate")
        lines = [_plain(said, told) for told in given]
        gone = (told for told in before if told not in after and _slot(told) not in slots)
        lines += [_negated(said, told) for told in gone]
        if lines:
            found[family] = lines
    for told in _words(old.get("other")):
        if told.startswith(_OTHER_FAMILIES):
            first, second, rest = told.split(" ", 2)
            found.setdefault(f"{first} {second}", []).append(_negated(said, rest))
    return found


def _slot(told: str) -> tuple[str, ...]:
    """What a line replaces by being said: the one of the same slot."""
    words = told.removeprefix("no ").split()
    return (words[0], words[-1]) if words[0] in _DIRECTED else (words[0], *words[1:2])[:1]


def _plain(said: str, told: str) -> Line:
    if told.startswith("no "):
        return line(f"no {said} {told.removeprefix('no ')}")
    return line(f"{said} {told}")


def _negated(said: str, told: str) -> Line:
    if told.startswith("no "):
        return line(f"{said} {told.removeprefix('no ')}")
    if told.startswith("maximum-prefix "):
        told = "maximum-prefix"
    return line(f"no {said} {told}")


def _words(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
