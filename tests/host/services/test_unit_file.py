"""Unit files as text. The systemd lane shows what systemd makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.engine.kinds.service import service
from holdfast.host.services import unit_file
from holdfast.host.services.declared import definition_of
from holdfast.host.services.folder import Definition
from tests.host.services.service_passes import unit


def _definition(**more: object) -> Definition:
    return definition_of(service(unit("one", reload="r", **more)), "77")  # type: ignore[arg-type]


def test_a_file_says_what_it_was_made_of() -> None:
    definition = _definition()
    found = unit_file.read(unit_file.render(definition))
    assert found == unit_file.Marked("77", definition.unit, "r", "", intact=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1000", b"1001"),
        (b"Restart=always", b"Restart=no"),
        (b"Reload=r", b"Reload=s"),
        (b"[Install]", b"# [Install]"),
    ],
)
def test_a_change_by_hand_shows(old: bytes, new: bytes) -> None:
    content = unit_file.render(_definition())
    assert old in content
    found = unit_file.read(content.replace(old, new))
    assert found is not None
    assert not found.intact


@pytest.mark.parametrize(
    "text", ["", "[Service]\nExecStart=/bin/true\n", "\n[X-Holdfast]\nUnit=a\n"]
)
def test_a_file_of_others_is_not_ours(text: str) -> None:
    assert unit_file.read(text.encode()) is None


def test_a_line_break_never_reaches_a_file() -> None:
    with pytest.raises(ValueError, match="control character"):
        _definition(argv=("/bin/echo", "a\nExecStartPre=/bin/false"))
    with pytest.raises(ValueError, match="control character"):
        unit_file.render(replace(_definition(), description="a\nb"))


def test_percent_and_quotes_are_escaped() -> None:
    content = unit_file.render(_definition(argv=("/bin/echo", '100% "\\$HOME')))
    assert b'ExecStart=:"/bin/echo" "100%% \\"\\\\$HOME"\n' in content


# What systemd gives a meaning to, and what it does not: at the end, in the middle, alone.
_TEXT = st.text(
    st.sampled_from("\\\"'%$;#= [](){}~*?!@:-+aZé€\u2028\x85\xa0") | st.characters(codec="utf-8"),
    max_size=12,
).filter(lambda text: all(ord(one) >= 32 and ord(one) != 127 for one in text))


@given(_TEXT, st.lists(_TEXT, max_size=4), st.dictionaries(st.sampled_from("ABC"), _TEXT))
@example("client on wan\\", ["a\\", "", ";", "\\;", "%n", "$HOME", "${HOME}"], {"A": "b\\"})
def test_systemd_reads_what_was_declared(
    description: str, words: list[str], variables: dict[str, str]
) -> None:
    """By the rules of systemd.syntax(7), systemd.service(5) and systemd.unit(5)."""
    whole = replace(
        _definition(), description=description, argv=("/bin/echo", *words), environment=variables
    )
    plain = replace(whole, description="x", argv=("/bin/echo",), environment={})
    said, beside = _settings(unit_file.render(whole)), _settings(unit_file.render(plain))
    assert _words(said.pop("ExecStart")[0].removeprefix(":")) == ["/bin/echo", *words]
    given = said.pop("Environment", [])
    assert dict(_words(one)[0].split("=", 1) for one in given) == variables
    shown = said.pop("Description")[0].replace("%%", "%")
    assert shown.rstrip("\\") == (description or "one").strip(" \t").rstrip("\\")
    for name in ("ExecStart", "Description"):
        beside.pop(name)
    assert said == beside, "and no setting beside them was touched"


def _settings(content: bytes) -> dict[str, list[str]]:
    """Lines that end in a backslash go on in the next one, whatever it says."""
    found: dict[str, list[str]] = {}
    lines = iter(content.decode().partition("\n[X-Holdfast]")[0].split("\n"))
    for line in lines:
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + " " + next(lines)
        if line and line[0] not in "#;[":
            name, _, value = line.partition("=")
            found.setdefault(name.strip(" \t"), []).append(value.strip(" \t"))
    return found


def _words(text: str) -> list[str]:
    """In double quotes, each with its escapes and specifiers."""
    found, rest = [], text
    while rest := rest.lstrip(" "):
        assert rest[0] == '"'
        word, at = "", 1
        while rest[at] != '"':
            escaped = rest[at] == "\\"
            word += rest[at + escaped]
            at += 1 + escaped
        assert "%" not in word.replace("%%", "")
        found.append(word.replace("%%", "%"))
        rest = rest[at + 1 :]
    return found


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("dnsmasq", "NET_BIND_SERVICE", ("SYS_ADMIN", "SYS_MODULE", "SYS_TIME", "SYS_PTRACE")),
        ("dhcpcd4-wan0", "NET_RAW", ("SYS_ADMIN", "SYS_MODULE", "SYS_TIME", "SYS_PTRACE")),
        ("dhcpcd6-wan0", "NET_RAW", ("SYS_ADMIN", "SYS_MODULE", "SYS_TIME", "SYS_PTRACE")),
        ("chrony", "SYS_TIME", ("SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE")),
        ("pppoe-dsl", "NET_ADMIN", ("SYS_ADMIN", "SYS_MODULE", "SYS_TIME", "SYS_PTRACE")),
    ],
)
def test_what_a_program_may_do(name: str, has: str, lacks: tuple[str, ...]) -> None:
    said = _settings(unit_file.render(replace(_definition(), name=name)))
    [bound] = said["CapabilityBoundingSet"]
    assert f"CAP_{has}" in bound.split()
    assert not [one for one in lacks if f"CAP_{one}" in bound.split()]
    for setting in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "ProtectKernelModules"):
        assert said[setting] == ["yes"]
    assert said["ProtectSystem"] in (["full"], ["yes"])


def test_our_own_lines_are_not_bound_by_it() -> None:
    """They make folders below /etc, and end processes of other users."""
    said = _settings(unit_file.render(_definition(folders=("/etc/holdfast/x",))))
    for setting in ("ExecStartPre", "ExecReload", "ExecStop"):
        assert all(line.startswith("+") for line in said[setting])
    assert said["NoNewPrivileges"] == ["yes"]
