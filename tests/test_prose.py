"""Sentences are for people: no code goes by what one says.

What is compared or searched is a text of several words that stands in the code: as a literal, or as
a constant of a module. Fields and enums say such things instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
_SEARCHES = (
    "count",
    "endswith",
    "find",
    "index",
    "partition",
    "removeprefix",
    "removesuffix",
    "rpartition",
    "rsplit",
    "split",
    "startswith",
)
_PROSE = re.compile(r"[A-Za-z][^A-Za-z]* |  *[^A-Za-z]*[A-Za-z]")

# By module, each text with why going by it is right.
_EXCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "engine/kinds/address.py": {" dev ": "the name of an artifact, as `ip` writes it"},
    "api/callers.py": {"Bearer ": "how a token is sent, by RFC 6750"},
    "cli/daemon.py": {" @holdfast/unserved ": "a line of the kernel's list of sockets"},
    "cli/demo/script.py": {"nothing to do": "the demonstration checks what people see"},
    "cli/main.py": {"standard output": "the name that the file of it has in errors"},
    "cli/reference.py": {"Usage: ": "written by click"},
    "cli/sandbox/client.py": {"code 5": "what a DNS server answered, in the words of the probe"},
    "config/yaml12.py": {
        "but found another document": "written by PyYAML",
        "end of stream": "written by PyYAML",
    },
    "engine/intent.py": {"waits for ": "so that a sentence does not say twice that it waits"},
    "engine/kinds/bgp_filter.py": {"route-map ": "the name of an artifact, as FRR writes it"},
    "engine/kinds/bgp_instance.py": {" vrf ": "the name of an artifact, as FRR writes it"},
    "engine/kinds/bgp_network.py": {"set ": "lines of a route-map, which FRR reads"},
    "engine/kinds/bgp_peer.py": {"capability ": "words of FRR's"},
    "engine/kinds/dropin.py": {" read by ": "the name of an artifact"},
    "frr/bgp_steps.py": {"no bgp default ipv4-unicast": "a line of FRR"},
    "frr/bgp_view.py": {
        "frr defaults datacenter": "a line of FRR",
        "interface ": "a line of FRR",
        "peer-group {}": "a line of FRR",
    },
    "frr/daemon.py": {"frr version": "a line of FRR"},
    "frr/interior.py": {
        "no ": "a line of FRR",
        "profile ": "a line of FRR",
        "{} router-id ": "a line of FRR",
    },
    "frr/lines.py": {
        "bgp ": "a line of FRR",
        "bgp router-id": "a line of FRR",
        "ip prefix-list ": "a line of FRR",
        "ipv6 prefix-list ": "a line of FRR",
        "no ": "a line of FRR",
        "no {}": "a line of FRR",
        "route-map ": "a line of FRR",
    },
    "frr/networks.py": {"permit 10": "a line of FRR"},
    "frr/peers.py": {
        "interface ": "a line of FRR",
        "ipv4 ": "a line of FRR",
        "ipv4 unicast": "a line of FRR",
        "ipv6 ": "a line of FRR",
        "l2vpn ": "a line of FRR",
        "maximum-prefix ": "a line of FRR",
        "no ": "a line of FRR",
        "no activate": "a line of FRR",
        "no bgp default ipv4-unicast": "a line of FRR",
        "password ": "a line of FRR",
    },
    "frr/running_config.py": {
        "  network ": "a line of FRR",
        "aggregate-address ": "a line of FRR",
    },
    "frr/watch.py": {" Down ": "a line of FRR"},
    "host/netlink/rules.py": {"inet6 ": "the name of an artifact"},
    "host/nft/nft_differences.py": {
        "comment ": "written by nft",
        "elements =": "written by nft",
        "elements = {": "written by nft",
    },
    "host/nft/nft_script.py": {" Error: ": "written by nft"},
    "host/services/dbus.py": {"OK ": "a line of the D-Bus protocol"},
    "render/explain/on_behalf.py": {
        " dev ": "the name of an artifact, as `ip` writes it",
        "protocol boot": "the holder of an object, as `ip` writes it",
        "protocol dhcp": "the holder of an object, as `ip` writes it",
        "protocol kernel": "the holder of an object, as `ip` writes it",
        "protocol kernel_ra": "the holder of an object, as `ip` writes it",
        "protocol ra": "the holder of an object, as `ip` writes it",
    },
    "engine/kinds/rule.py": {"inet6 ": "the name of an artifact"},
    "resources/firewall/journey.py": {"ct state": "an expression of nft"},
}


@pytest.mark.parametrize(
    "text",
    [
        'if reason == "set back to what it was": pass',
        'if "could not" in line: pass',
        'said.startswith("cannot be observed")',
        'A = "it is so"\nif said != A: pass',
        'A = ("it is so", "not so")\nif said in A: pass',
        'line.partition(f"{name} was not found")',
        'match said:\n    case "it is so": pass',
    ],
)
def test_prose_is_found(text: str) -> None:
    assert list(_prose(ast.parse(text), {}))


@pytest.mark.parametrize(
    "text",
    ['if kind == "route": pass', 'line.split(" ")', 'said = "it is so"', "A = 1\nif x == A: pass"],
)
def test_other_texts_are_not(text: str) -> None:
    assert not list(_prose(ast.parse(text), {}))


def test_no_code_goes_by_prose() -> None:
    trees = {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text())
        for path in SOURCE.rglob("*.py")
        if not path.name.endswith("_pb2.py")
    }
    constants = {_module(name): _constants(tree) for name, tree in trees.items()}
    found = {
        name: texts
        for name, tree in trees.items()
        if (texts := set(_prose(tree, _names(tree, constants))))
    }
    assert found == {name: set(texts) for name, texts in _EXCEPTIONS.items()}


def _module(path: str) -> str:
    return f"holdfast/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _constants(tree: ast.Module) -> dict[str, list[str]]:
    """The texts in what modules call by a name of its own."""
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            found |= {
                name.id: list(_texts(text)) for name, text in pairs if isinstance(name, ast.Name)
            }
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = list(_texts(node.value))
    return found


def _names(
    tree: ast.Module, constants: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, list[str]]:
    """What the constants are called here that others have: `NAME`, and `module.NAME`."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            found[name] = constants.get(node.module, {}).get(alias.name, [])
            inner = constants.get(f"{node.module}.{alias.name}", {})
            found |= {f"{name}.{constant}": texts for constant, texts in inner.items()}
    return found


def _prose(tree: ast.Module, imported: Mapping[str, list[str]]) -> Iterator[str]:
    names = {**imported, **_constants(tree)}
    for node in ast.walk(tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            compared = node.args if node.func.attr in _SEARCHES else []
        for one in compared:
            known = names.get(ast.unparse(one), []) if _is_name(one) else []
            yield from (text for text in (*_texts(one), *known) if _PROSE.search(text))


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for one in node.elts:
            yield from _texts(one)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("frozenset", "tuple"):
        for one in node.args:
            yield from _texts(one)
