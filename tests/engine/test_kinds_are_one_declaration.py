"""An artifact kind is one declaration: no other module knows kinds by their names.

Two things are looked for outside `engine/kinds`.

A string that is the name of a kind, where it is used as one. Many of those names are plain words
(`file`, `address`, `link`), so that not every such string is a kind: a field of an artifact, a key
of a document, a word of a command line, the path of a fault are none. A string counts

- where it is compared, by `==`, `in` or `case`, with what is called a kind (`key.kind`, `kinds`),
- as what `Key`, `Hint` or `Touched` is made of, or `KINDS` is asked for,
- among several, all names of kinds, in a tuple, list, set or as the keys of a dictionary,
- as the only one of a set or frozenset, of what a driver or a resource kind declares (`kinds`,
  `emits`, `after`).

A comparison with the name of a declared kind (`key.kind == ROUTE.name`) is the same question in
other clothes. Modules that are about one kind may ask it; they are named here, with what they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.engine.kinds import KINDS

ROOT = Path(holdfast.__file__).parent
_MADE_OF_KINDS = {"Key", "Hint", "Touched", "frozenset", "set"}
_DECLARED_AS = {"kinds", "emits", "after", "makes_way_for"}

# A kind of link and a family of generic netlink are called so, too.
_NOT_A_KIND = {"host/wireguard.py"}

# Modules that are about the kinds they ask for.
ABOUT = {
    # drivers, and what is part of one
    "host/hostname.py",
    "host/sysctl.py",
    "host/wireguard.py",
    "host/nft/driver.py",
    "host/services/driver.py",
    "host/services/foreign.py",
    "host/netlink/addresses/driver.py",
    "host/netlink/links/driver.py",
    "host/netlink/links/link_losses.py",
    "host/netlink/routes/driver.py",
    "frr/bgp_steps.py",
    "frr/bgp_view.py",
    "frr/driver.py",
    "frr/interior.py",
    "frr/network_steps.py",
    # the watch of each kind
    "agent/watch/frr.py",
    "agent/watch/links.py",
    "agent/watch/netlink.py",
    "agent/watch/nft.py",
    "agent/watch/services.py",
    "agent/watch/settings.py",
    "agent/watch/watch.py",
    "agent/watch/watch_scope.py",
    "agent/watch/wireguard.py",
    # single routes among very many
    "agent/pending_hints.py",
    "agent/reconciler.py",
    "agent/route_changes.py",
    "engine/make_before_break.py",
    # the kernel's way of looking up a route
    "engine/path/changes.py",
    # what a trial takes from others in the kernel, by the kernel's objects
    "host/foreign_state/touched.py",
    "runtime/confirm/restore_others.py",
    # links that are declared and not there; that came or went
    "engine/absent_links.py",
    "agent/drift.py",
    # addresses that facts are made of
    "agent/pass_schedule.py",
    "resources/routes/gateway_links.py",
    # programs, and what services and tables need of them
    "host/programs.py",
    "host/markers.py",
    "runtime/conditions.py",
    # how the sessions of peers are
    "runtime/sessions.py",
    # the firewall's tables, by which an operator is cut off
    "runtime/operators.py",
    # the ledger of another system, kind by kind
    "state/reference.py",
    # rules and links that several resources declare; what a DHCP client is made of
    "resources/checks/clashes.py",
    "resources/wan/dhcpcd.py",
}


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("engine/kinds/"):
            yield name, ast.parse(path.read_text())


def _is_name(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS


def _is_called_a_kind(node: ast.AST) -> bool:
    """`kind`, `key.kind`, `touched.kinds`, `self.kinds`, `KINDS`."""
    said = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return said.lower() in ("kind", "kinds", "all_kinds", "emits")


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _strings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(map(_is_called_a_kind, sides)):
                    yield from (each for side in sides for each in ast.walk(side) if _is_name(each))
            case ast.Match(subject=subject, cases=cases) if _is_called_a_kind(subject):
                patterns = (each for case in cases for each in ast.walk(case.pattern))
                yield from (each for each in patterns if _is_name(each))
            case ast.Subscript(value=value, slice=key) if _is_called_a_kind(value):
                yield from (key,) if _is_name(key) else ()
            case ast.Call(args=args, keywords=keywords):
                if _called(node) in _MADE_OF_KINDS or _is_called_a_kind(
                    getattr(node.func, "value", node)
                ):
                    yield from filter(_is_name, args[:1])
                for keyword in keywords:
                    if keyword.arg in _DECLARED_AS:
                        yield from filter(_is_name, ast.walk(keyword.value))
                if _called(node) == "Kind":
                    yield from (each for one in args[1:] for each in _members(one, least=1))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _DECLARED_AS:
                yield from filter(_is_name, ast.walk(value))
            case ast.Set():
                yield from _members(node, least=1)
            case ast.Tuple() | ast.List() | ast.Dict():
                yield from _members(node, least=2)


def _members(node: ast.AST, least: int) -> list[ast.AST]:
    found: list[ast.AST] = []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        found = list(node.elts)
    elif isinstance(node, ast.Dict):
        found = [key for key in node.keys if key is not None]
    return found if len(found) >= least and all(map(_is_name, found)) else []


def _asks(tree: ast.AST) -> Iterator[ast.AST]:
    """Comparisons of a kind with the name of a declared one: `kind == ROUTE.name`."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = (each for side in (left, *others) for each in ast.walk(side))
                yield from filter(_is_declared_name, sides)
            case ast.MatchValue(value=value) if _is_declared_name(value):
                yield value


def _is_declared_name(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    said = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return said.lower() in KINDS and said.isupper()


def test_no_string_names_a_kind() -> None:
    found = sorted(
        {
            f"src/holdfast/{module}:{node.lineno}: {node.value!r}"  # type: ignore[attr-defined]
            for module, tree in _modules()
            if module not in _NOT_A_KIND
            for node in _strings(tree)
        }
    )
    assert found == []


def test_only_modules_about_a_kind_ask_for_it() -> None:
    asking = {module for module, tree in _modules() for _ in _asks(tree)}
    assert asking == ABOUT


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('key.kind == "route"', 1),
        ('operation.kind in ("link", "wireguard")', 2),
        ('"route" in touched.kinds', 1),
        ('match key.kind:\n    case "file" | "block": pass\n    case "unit": pass', 3),
        ('Key("link", name)', 1),
        ('KINDS["nft"]', 1),
        ('KINDS.get("nft")', 1),
        ('_READ = ("file", "block")', 2),
        ('_SHOWN = {"route": 1, "link": 2}', 2),
        ('frozenset({"route"})', 1),
        ('class Driver:\n    kinds = ("link",)', 1),
        ('Kind("Zone", Spec, ("nft",))', 1),
        ('fields["address"]', 0),
        ('Fault(("address",), "is wrong")', 0),
        ('run("ip", "link", "set")', 0),
        ('{"address": reply.address}', 0),
        ('spec.type == "wireguard"', 0),
        ('seen.type != "file"', 0),
    ],
)
def test_what_counts(code: str, count: int) -> None:
    assert len({(node.lineno, node.col_offset) for node in _strings(ast.parse(code))}) == count  # type: ignore[attr-defined]


def test_a_comparison_with_a_declared_name_counts() -> None:
    asked = "key.kind == ROUTE.name or op.kind == route.ROUTE.name or key.kind in kinds"
    assert len(list(_asks(ast.parse(asked)))) == 2
    matched = "match key.kind:\n    case LINK.name | RULE.name: pass"
    assert len(list(_asks(ast.parse(matched)))) == 2
    assert len(list(_asks(ast.parse("key.kind in (LINK.name, RULE.name)")))) == 2
