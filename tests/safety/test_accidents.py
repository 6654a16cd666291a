"""What goes wrong around Holdfast, through the real command: nothing is removed by accident.

A refusal leaves the kernel exactly as it was, by what `ip` shows of it.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.paths import Paths
from tests.cli.conftest import Done, Holdfast
from tests.namespace import Namespace, private_namespaces
from tests.safety import spoiling
from tests.safety.router_scene import document
from tests.safety.spoiling import ROUTES

RESOURCES = {
    "Interface/wan": "{ifname: wan0, adminUp: true, mtu: 1400}",
    "Interface/lan": "{ifname: br0, type: bridge, adminUp: true, alias: home}",
    "IPv4StaticAddress/wan": "{interface: wan, address: 192.0.2.1/24}",
    "IPv6StaticAddress/lan": "{interface: lan, address: 2001:db8:1::1/64}",
    "IPv4Route/one": "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wan}",
    "IPv6Route/one": "{destination: 2001:db8:a::/48, gateway: 2001:db8:1::fe, interface: lan}",
    "RouteList/list": "{gateway: 192.0.2.254, interface: wan, file: routes.txt}",
    "RoutingRule/one": "{priority: 1000, from: 192.0.2.0/24, table: 100}",
    "Neighbour/one": "{interface: wan, address: 192.0.2.9, mac: 02:00:00:00:00:09}",
}
FOREIGN = """\
link add wan0 type veth peer name isp0
link set isp0 up
link set wan0 up
addr add 10.99.0.1/24 dev wan0
route add 10.98.0.0/16 via 10.99.0.254 proto static
rule add priority 50 fwmark 7 lookup 50
neigh add 10.99.0.77 dev wan0 lladdr 02:00:00:00:00:77 nud permanent
"""
_SHOWN = (
    "-d link show", "addr show", "-4 route show table all", "-6 route show table all",
    "-4 rule show", "-6 rule show", "neigh show nud permanent",
)  # fmt: skip


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.fixture
def applied(netns: Namespace, holdfast: Holdfast) -> Namespace:
    """A namespace where RESOURCES are applied, beside things of others."""
    for line in FOREIGN.splitlines():
        netns.ip(line)
    (holdfast.folder / "routes.txt").write_text(ROUTES)
    _write(holdfast, document(RESOURCES))
    holdfast.set_up("apply", "router.yaml", "--yes")
    return netns


def _write(holdfast: Holdfast, text: str) -> None:
    (holdfast.folder / "router.yaml").write_text(text)


def _apply(holdfast: Holdfast, *options: str) -> Done:
    return holdfast.run("apply", "router.yaml", "--yes", *options)


def _kernel(namespace: Namespace) -> dict[str, Any]:
    """What `ip` shows, but for what comes and goes by itself."""
    return {
        command: [_lasting(entry) for entry in namespace.ip_json(command) if not _is_own(entry)]
        for command in _SHOWN
    }


def _is_own(entry: dict[str, Any]) -> bool:
    """The kernel makes these when an address has passed its check, or a link hears its peer."""
    link_local = entry.get("scope") == "link" and entry.get("family") == "inet6"
    return link_local or entry.get("protocol") == "kernel"


def _lasting(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_lasting(one) for one in entry if not (isinstance(one, dict) and _is_own(one))]
    if not isinstance(entry, dict):
        return entry
    passing = ("operstate", "linkinfo", "tentative", "flags")
    kept = {name: _lasting(value) for name, value in entry.items() if name not in passing}
    return kept | {"up": "UP" in entry.get("flags", [])}


def _refused(holdfast: Holdfast, namespace: Namespace, code: int, *words: str) -> None:
    before = _kernel(namespace)
    done = _apply(holdfast)
    assert done.code == code, done
    assert "touched" in done.err
    assert all(word in done.err for word in words), done.err
    assert "Traceback" not in done.err
    assert _kernel(namespace) == before


def _recovers(holdfast: Holdfast, namespace: Namespace) -> None:
    """With the right file again, there is nothing to do, and everything is still owned."""
    (holdfast.folder / "routes.txt").write_text(ROUTES)
    _write(holdfast, document(RESOURCES))
    before = _kernel(namespace)
    done = _apply(holdfast)
    assert (done.code, "Applied" in done.out) == (0, False), done
    assert _kernel(namespace) == before


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# nothing yet\n", "null\n", "[]\n", "{}\n"])
def test_an_empty_file(holdfast: Holdfast, applied: Namespace, text: str) -> None:
    _write(holdfast, text)
    _refused(holdfast, applied, 3)
    _recovers(holdfast, applied)


@pytest.mark.parametrize("spec", ["spec:\n", "spec: {}\n", "spec:\n  resources:\n", ""])
def test_a_router_that_says_nothing(holdfast: Holdfast, applied: Namespace, spec: str) -> None:
    """Nothing is declared only where `resources: []` says so."""
    _write(holdfast, document({}).partition("spec:")[0] + spec)
    _refused(holdfast, applied, 3, "spec")
    _recovers(holdfast, applied)


def test_no_resources(holdfast: Holdfast, applied: Namespace) -> None:
    _write(holdfast, document({}))
    _refused(holdfast, applied, 4, "declares nothing", "--allow-mass-delete")
    _recovers(holdfast, applied)
    _write(holdfast, document({}))
    done = _apply(holdfast, "--allow-mass-delete")
    assert done.code == 0, done.err
    assert not applied.ip_json("route show proto 72")
    assert [r["dst"] for r in applied.ip_json("route show proto static")] == ["10.98.0.0/16"]
    assert applied.ip_json("rule show")[1]["priority"] == 50
    assert applied.ip_json("neigh show nud permanent")[0]["dst"] == "10.99.0.77"


def test_a_file_that_is_gone_or_unreadable(holdfast: Holdfast, applied: Namespace) -> None:
    path = holdfast.folder / "router.yaml"
    path.unlink()
    _refused(holdfast, applied, 3, "No such file")
    path.mkdir()
    _refused(holdfast, applied, 3, "directory")
    path.rmdir()
    _recovers(holdfast, applied)


def _cuts() -> list[int]:
    """Places to cut at, evenly and at random, and wherever a line or a resource ends."""
    text = document(RESOURCES)
    even = range(0, len(text), len(text) // 12)
    chosen = random.Random(3).sample(range(len(text)), 12)  # noqa: S311 (places, no secrets)
    ends = [at + 1 for at, character in enumerate(text) if character == "\n"]
    return sorted({*even, *chosen, *ends[4:-1:3], *(at - 1 for at in ends[7::8]), ends[-1] - 1})


@pytest.mark.parametrize("cut", _cuts())
def test_half_a_file(holdfast: Holdfast, applied: Namespace, cut: int) -> None:
    """Either it is refused and nothing changes; or it ends where a resource ends, so that nobody
    can tell it from a smaller configuration, and then what it still declares stays, and the guard
    has let it pass: half of what is owned, or less, was declared by the rest."""
    text = document(RESOURCES)
    before = _kernel(applied)
    _write(holdfast, text[:cut])
    done = _apply(holdfast)
    if done.code in (3, 4):
        assert "touched" in done.err
        assert _kernel(applied) == before
    else:
        assert done.code == 0, done
        assert text[:cut].endswith("}\n") or _kernel(applied) == before
        declared = yaml.safe_load(text[:cut])["spec"]["resources"]
        assert declared == yaml.safe_load(text)["spec"]["resources"][: len(declared)]
        kept = holdfast.ok("plan", "router.yaml", "-o", "json").json["summary"]
        whole = len(RESOURCES) + len(ROUTES.splitlines()) - 1
        assert kept["keep"] * 2 >= whole
        assert kept["create"] == kept["update"] == kept["delete"] == 0
    _write(holdfast, text)
    done = _apply(holdfast)
    assert done.code == 0, done


def test_half_a_value(holdfast: Holdfast, applied: Namespace) -> None:
    """192.0.2.1/2 is an address too; but a file without a last newline removes nothing,"""
    resources = dict(RESOURCES)
    last = "IPv4StaticAddress/wan"
    del resources[last]
    resources[last] = "\n        interface: wan\n        address: 192.0.2.1/24"
    _write(holdfast, document(resources)[:-2])
    _refused(holdfast, applied, 4, "router.yaml does not end with a newline", "cut short")
    _recovers(holdfast, applied)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IPv4Route/one", "destination: 10.1.0.0/16\n        gateway: 192.0.2.254"),
        ("Interface/wan", "ifname: wan0\n        adminUp: true\n        mtu: 1400"),
    ],
)
def test_half_a_value_of_what_is_there(
    holdfast: Holdfast, applied: Namespace, name: str, value: str
) -> None:
    """nor does it change anything: 192.0.2.2 is a gateway too, and 140 an MTU."""
    resources = {other: spec for other, spec in RESOURCES.items() if other != name}
    indent = "\n        "
    wan = f"{indent}interface: wan" if "Route" in name else ""
    text = document(resources | {name: f"{wan}{indent}{value}"})
    cut = 3 if "Route" in name else 2
    _write(holdfast, text[:-cut])
    _refused(holdfast, applied, 4, "does not end with a newline", "1 artifact would be changed")
    _write(holdfast, text[:-cut] + "\n")
    assert holdfast.ok("plan", "router.yaml", "-o", "json").json["summary"]["update"] == 1
    _recovers(holdfast, applied)


def test_a_last_line_that_is_new(holdfast: Holdfast, applied: Namespace) -> None:
    """It takes nothing from anybody: it is made, with a warning."""
    new = "{destination: 10.9.0.0/16, gateway: 192.0.2.254, interface: wan}"
    _write(holdfast, document(RESOURCES | {"IPv4Route/new": new}).rstrip("\n"))
    done = _apply(holdfast)
    assert done.code == 0, done
    assert "does not end with a newline" in done.err
    assert applied.ip_json("route show 10.9.0.0/16")[0]["gateway"] == "192.0.2.254"


@pytest.mark.parametrize(
    "bad",
    [
        ("IPv4Route/one", "{destination: 10.1.0.0/33, gateway: 192.0.2.254, interface: wan}"),
        ("IPv4Route/one", "{destination: 10.1.0.0/16, gateway: 192.0.2.254, interface: wam}"),
        ("Neighbour/one", "{interface: wan, address: 192.0.2.9, mac: 02:00:00:00:00:zz}"),
        ("RoutingRule/one", "{priority: 1000, from: 192.0.2.0/24, tabel: 100}"),
        ("Router/oops", "{}"),
        ("Sysctl/one", "{key: net.ipv4.ip_forward}"),
    ],
    ids=lambda bad: bad[0],
)
def test_one_bad_resource_among_good_ones(
    holdfast: Holdfast, applied: Namespace, bad: tuple[str, str]
) -> None:
    """Neither what is new is made, nor what is no longer declared removed."""
    good = {name: spec for name, spec in RESOURCES.items() if name != "IPv6Route/one"}
    new = {"IPv4Route/new": "{destination: 10.9.0.0/16, gateway: 192.0.2.254, interface: wan}"}
    _write(holdfast, document(good | new | dict([bad])))
    _refused(holdfast, applied, 3, "router.yaml:")
    _recovers(holdfast, applied)


@pytest.mark.parametrize("spoil", spoiling.ROUTE_FILES, ids=lambda f: f.__name__)
def test_a_route_list_that_cannot_be_read(
    holdfast: Holdfast, applied: Namespace, spoil: Callable[[Path], None]
) -> None:
    path = holdfast.folder / "routes.txt"
    spoil(path)
    _refused(holdfast, applied, 3, "routes.txt")
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    _recovers(holdfast, applied)


def test_a_route_list_cut_to_another_route(holdfast: Holdfast, applied: Namespace) -> None:
    """Half of a line may be a valid one: where something would go for it, it is asked about."""
    routes = holdfast.folder / "routes.txt"
    routes.write_text(ROUTES.replace("10.64.39.0/24\n", "10.64.39.0/28"))
    _refused(holdfast, applied, 4, "does not end with a newline", "--allow-mass-delete")
    routes.write_text(ROUTES)
    _recovers(holdfast, applied)


@pytest.mark.parametrize("lines", [0, 1, 15])
def test_most_of_a_route_list_is_gone(holdfast: Holdfast, applied: Namespace, lines: int) -> None:
    """Cut where a line ends: the guard counts what would go."""
    (holdfast.folder / "routes.txt").write_text("".join(ROUTES.splitlines(True)[:lines]))
    _refused(holdfast, applied, 4, f"{40 - lines} of 48 owned artifacts", "--allow-mass-delete")
    _recovers(holdfast, applied)


@pytest.mark.parametrize("spoil", spoiling.LEDGERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("resources", [RESOURCES, {}], ids=["all", "none"])
def test_a_ledger_that_cannot_be_used(
    holdfast: Holdfast,
    applied: Namespace,
    spoil: Callable[[Path], None],
    resources: dict[str, str],
) -> None:
    ledger = Paths(holdfast.root).ledger
    whole = ledger.read_bytes()
    spoil(ledger)
    spoilt = ledger.read_bytes()
    _write(holdfast, document(resources))
    before = _kernel(applied)
    done = _apply(holdfast, "--allow-mass-delete")
    assert (done.code, "Traceback" in done.err) == (5, False), done
    assert str(ledger) in done.err
    assert _kernel(applied) == before
    assert ledger.read_bytes() == spoilt
    ledger.write_bytes(whole)
    _recovers(holdfast, applied)


def test_the_wrong_network_namespace(holdfast: Holdfast, applied: Namespace) -> None:
    """With the same root, and everything there under the same names, but made by others."""
    right = _kernel(applied)
    with private_namespaces() as wrong:
        for line in FOREIGN.splitlines():
            wrong.ip(line)
        for line in (
            "link add br0 type bridge",
            "link set br0 up",
            "addr add 192.0.2.1/24 dev wan0",
            "addr add 2001:db8:1::1/64 dev br0 nodad",
            "route add 10.1.0.0/16 via 192.0.2.254",
            "rule add priority 1000 from 192.0.2.0/24 lookup 100",
            "neigh add 192.0.2.9 dev wan0 lladdr 02:00:00:00:00:09 nud permanent",
        ):
            wrong.ip(line)
        before = _kernel(wrong)
        _write(holdfast, document({"Interface/lan": "{ifname: br0, state: absent}"}))
        done = _apply(holdfast, "--allow-mass-delete")
        assert done.code == 1
        assert "link br0 exists and is not ours, so it is not deleted" in done.out
        assert _kernel(wrong) == before
        _write(holdfast, document({}))
        done = _apply(holdfast, "--allow-mass-delete")
        assert done.code == 0
        assert "kept: claimed in another network namespace of this boot" in done.out
        assert _kernel(wrong) == before
        _write(holdfast, document(RESOURCES))
        done = holdfast.run("adopt", "router.yaml", "--apply")
        assert (done.code, "another network namespace" in done.err) == (4, True), done
        _refused(holdfast, wrong, 4, "another network namespace", "use another --root")
    assert _kernel(applied) == right
    _recovers(holdfast, applied)


def test_an_empty_network_namespace(holdfast: Holdfast, applied: Namespace) -> None:
    """Nothing is there yet, and the ledger is of another: it is refused, by whatever option."""
    claims = holdfast.ok("ledger", "export").json["claims"]
    with private_namespaces() as wrong:
        for line in FOREIGN.splitlines():
            wrong.ip(line)
        before = _kernel(wrong)
        _refused(holdfast, wrong, 4, "another network namespace", "--root")
        assert _apply(holdfast, "--allow-mass-delete").code == 4
        assert _kernel(wrong) == before
        assert holdfast.ok("ledger", "export").json["claims"] == claims
    _recovers(holdfast, applied)
    assert holdfast.run("forget", "--other-namespaces", "--yes").code == 1, "all are of this one"
    assert holdfast.ok("ledger", "export").json["claims"] == claims


@pytest.mark.usefixtures("applied")
def test_a_network_namespace_made_anew(holdfast: Holdfast) -> None:
    """The one before is gone for good, as somebody says: everything is made again."""
    with private_namespaces() as anew:
        for line in FOREIGN.splitlines():
            anew.ip(line)
        assert _apply(holdfast).code == 4
        done = holdfast.ok("forget", "--other-namespaces", "--yes")
        assert "The host was not touched" in done.out
        assert _apply(holdfast).code == 0
        assert len(anew.ip_json("-4 route show proto 72")) == 41
        _recovers(holdfast, anew)


def test_a_mass_delete(holdfast: Holdfast, applied: Namespace) -> None:
    few = {name: spec for name, spec in RESOURCES.items() if not name.startswith("RouteList")}
    _write(holdfast, document(few))
    _refused(holdfast, applied, 4, "40 of 48 owned artifacts (83 %)", "--allow-mass-delete")
    assert holdfast.run("plan", "router.yaml").code == 0, "it may be looked at"
    _recovers(holdfast, applied)
    _write(holdfast, document(few))
    assert _apply(holdfast, "--allow-mass-delete").code == 0
    assert len(applied.ip_json("-4 route show proto 72")) == 1


def test_two_passes_that_want_different_things(holdfast: Holdfast, applied: Namespace) -> None:
    """One after the other: in the end all is as one of the two has declared, and nothing of the
    other is left."""
    wanted: dict[str, str] = {}
    for name, gateway in (("a", "192.0.2.253"), ("b", "192.0.2.252")):
        changed = {key: spec.replace("192.0.2.254", gateway) for key, spec in RESOURCES.items()}
        extra = f"{{destination: 10.20{len(wanted)}.0.0/16, gateway: {gateway}, interface: wan}}"
        (holdfast.folder / f"{name}.yaml").write_text(
            document(changed | {f"IPv4Route/{name}": extra})
        )
        wanted[f"{name}.yaml"] = gateway
    both = [
        subprocess.Popen(
            holdfast.arguments("apply", file, "--yes"),
            cwd=holdfast.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for file in wanted
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    routes = applied.ip_json("-4 route show proto 72")
    assert len(routes) == 42
    (gateway,) = {route["gateway"] for route in routes}
    (last,) = [file for file, wants in wanted.items() if wants == gateway]
    assert "nothing to do" in holdfast.ok("plan", last).out
