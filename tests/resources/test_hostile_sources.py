"""What a source would try that wants more than its policy gives it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config.part import Part
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.dynamic import effective, source_policy
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from tests.resources.parts import NOW, admitting, mask, part, raw
from tests.resources.routers import load

Given = dict[str, Any]
OPEN = [name for name in registry.names() if registry.kind(name).open_to_others]
ALLOW: Given = {
    "kinds": OPEN,
    "names": ["app-*"],
    "maxResources": 3,
    "prefixes": ["10.0.0.0/8", "2001:db8::/32", "::ffff:0:0/96"],
    "interfaces": ["app*", "lan", "wan2"],
}
LINKS: tuple[tuple[str, str, Given], ...] = (
    ("Interface", "wan", {"ifname": "eth0"}),
    ("Interface", "lan", {"ifname": "eth1"}),
    ("Interface", "app9", {"ifname": "eth9"}),  # app* is meant to be this one
    ("Interface", "wan2", {"ifname": "app0"}),
    ("Interface", "app1", {"ifname": "lan"}),  # a link that is called as another's resource
)


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., Router]:
    """A startup file in which Owner/ci may do what `ALLOW` says, other than so far as changed."""

    def declared(*more: tuple[str, str, Given], **changed: Any) -> Router:
        source = {"source": "Owner/ci", "allow": ALLOW | changed}
        return load(tmp_path, *LINKS, ("DynamicConfigSource", "ci", source), *more)

    return declared


@pytest.fixture
def startup(declare: Callable[..., Router]) -> Router:
    return declare()


def merged(startup: Router, *parts: Part) -> Effective:
    return effective.merge(startup, parts, NOW)


def refused(startup: Router, *resources: Given, source: str = "Owner/ci") -> str:
    found = merged(startup, part(source, *resources))
    assert found.router is startup
    assert found.active == ()
    (one,) = found.rejected
    assert not [told for told in one.reasons if "fault in Holdfast" in told]
    return "\n".join(one.reasons)


def taken(startup: Router, *resources: Given, source: str = "Owner/ci") -> Effective:
    found = merged(startup, part(source, *resources))
    assert [told for one in found.rejected for told in one.reasons] == []
    return found


def route(destination: str, name: str = "app-x", kind: str = "IPv4Route", **more: Any) -> Given:
    leads = more or {"type": "blackhole"}
    return raw(kind, name, {"destination": destination, **leads})


def lines(*routes: str, **more: Any) -> Given:
    return raw("RouteList", "app-x", {"routes": list(routes), **more})


# Who is nobody


def test_a_source_that_nobody_speaks_of(startup: Router) -> None:
    for source in ("Owner/other", "Manager/ci", "Plugin/ci", "Owner/CI", "Owner/ci2"):
        said = refused(startup, route("10.1.0.0/16"), source=source)
        assert "no DynamicConfigSource" in said
        assert source.partition("/")[2] in said
        assert "DynamicConfigSource" in refused(startup, source=source)


def test_a_source_that_may_declare_nothing(tmp_path: Path) -> None:
    target = {"apiVersion": registry.api_versions("Interface")[0], "kind": "Interface"}
    allow = [{"source": "Owner/ci", "operations": ["mask"], "targets": [target | {"name": "wan"}]}]
    startup = load(
        tmp_path,
        ("Interface", "wan", {"ifname": "eth0"}),
        ("DynamicConfigSource", "ci", {"source": "Owner/ci"}),
        ("DynamicOverridePolicy", "ci", {"allow": allow}),
    )
    assert "allow.kinds" in refused(startup, route("10.1.0.0/16"))
    found = merged(startup, part("Owner/ci", masks=(mask("Interface", "wan"),)))
    assert [str(one.target) for one in found.suppressed] == ["Interface/wan"]


# Prefixes in other spellings


@pytest.mark.parametrize(
    "resource",
    [
        route("0.0.0.0/0"),
        route("default"),
        route("0.0.0.0/1"),
        route("128.0.0.0/1"),
        route("8.0.0.0/6"),
        route("10.0.0.0/7"),
        route("11.0.0.0/8"),
        route("::/0", kind="IPv6Route"),
        route("::/1", kind="IPv6Route"),
        route("2001:db8::/31", kind="IPv6Route"),
        route("::ffff:192.0.2.0/120", kind="IPv6Route"),
        route("::ffff:0:0/96", kind="IPv6Route"),
        route("::10.1.0.0/112", kind="IPv6Route"),
        route("64:ff9b::a01:0/112", kind="IPv6Route"),
        route("2002:a01::/32", kind="IPv6Route"),
        route("10.1.0.0/16", gateway="192.0.2.1"),
        route("10.1.0.0/16", gateway="::ffff:192.0.2.1", interface="lan"),
        route("10.1.0.0/16", gateway="fe80::1", interface="lan"),
        route("10.1.0.0/16", gateway="10.0.0.1", preferredSource="192.0.2.1"),
        route("10.1.0.0/16", nexthops=[{"gateway": "10.0.0.1"}, {"gateway": "11.0.0.1"}]),
        lines("blackhole 0.0.0.0/1", "blackhole 128.0.0.0/1"),
        lines("blackhole 10.1.0.0/16", "blackhole default"),
        lines("blackhole ::/0"),
        lines("blackhole ::ffff:192.0.2.1"),
        lines("10.1.0.0/16 via 192.0.2.1"),
        lines("10.1.0.0/16 via inet6 fe80::1 dev lan"),
        lines("10.1.0.0/16", gateway="192.0.2.1"),
        lines("10.1.0.0/16 via 10.0.0.1 src 192.0.2.1"),
        lines("10.1.0.0/16 nexthop via 10.0.0.1 nexthop via 192.0.2.1"),
        raw("IPv4StaticAddress", "app-x", {"interface": "lan", "address": "10.0.0.1/7"}),
        raw("IPv4StaticAddress", "app-x", {"interface": "lan", "address": "192.0.2.1/32"}),
        raw("IPv6StaticAddress", "app-x", {"interface": "lan", "address": "2001:db8::1/16"}),
        raw("IPv6StaticAddress", "app-x", {"interface": "lan", "address": "::ffff:1.2.3.4/128"}),
        raw("RoutingRule", "app-x", {"priority": 5, "fwmark": 1, "table": 100}),
        raw("RoutingRule", "app-x", {"priority": 5, "to": "0.0.0.0/0", "table": 100}),
        raw("RoutingRule", "app-x", {"priority": 5, "to": "128.0.0.0/1", "action": "blackhole"}),
        raw("RoutingRule", "app-x", {"priority": 5, "family": "ipv6", "action": "prohibit"}),
        raw("FirewallPolicy", "app-x", {"input": {"default": "accept"}}),
    ],
    ids=lambda one: f"{one['kind']}-{'-'.join(map(str, one['spec'].values()))}",
)
def test_a_network_outside(resource: Given, startup: Router) -> None:
    said = refused(startup, resource)
    assert "Owner/ci#1 resources[0]: spec" in said
    assert "allow.prefixes" in said


@pytest.mark.parametrize(
    "resource",
    [
        route("10.0.0.0/8"),
        route("10.255.255.255/32"),
        route("2001:db8::/32", kind="IPv6Route"),
        route("::ffff:10.1.0.0/112", kind="IPv6Route"),
        lines("blackhole 10.1.0.0/16", "blackhole 2001:db8:1::/48"),
        raw("RoutingRule", "app-x", {"priority": 5, "from": "10.1.0.0/16", "table": 100}),
        raw("RoutingRule", "app-x", {"priority": 5, "iif": "lan", "table": 100}),
    ],
    ids=lambda one: f"{one['kind']}-{'-'.join(map(str, one['spec'].values()))}",
)
def test_a_network_inside(resource: Given, startup: Router) -> None:
    taken(startup, resource)


def test_an_ipv4_address_in_ipv6_is_both(declare: Callable[..., Router]) -> None:
    mapped = route("::ffff:10.1.0.0/112", kind="IPv6Route")
    said = refused(declare(prefixes=["::ffff:0:0/96"]), mapped)
    assert "10.1.0.0/16 is not what" in said
    assert "::ffff:" in refused(declare(prefixes=["10.0.0.0/8"]), mapped)


def test_neighbours_that_are_allowed_are_a_larger_network(declare: Callable[..., Router]) -> None:
    startup = declare(prefixes=["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/2"])
    taken(startup, route("default"))


def test_an_address_with_a_scope(startup: Router) -> None:
    spec = {"destination": "2001:db8::/48", "gateway": "fe80::1%eth0", "interface": "lan"}
    refused(startup, raw("IPv6Route", "app-x", spec))


NETWORKS = st.builds(
    lambda number, length: IPv4Network((number << 24, length), strict=False),
    st.integers(0, 15).map(lambda number: number << 4),
    st.integers(0, 6),
)


@settings(max_examples=60, deadline=None)
@given(allowed=st.lists(NETWORKS, max_size=4), wanted=NETWORKS, as_line=st.booleans())
def test_a_route_is_taken_where_all_its_addresses_are_allowed(
    tmp_path_factory: pytest.TempPathFactory,
    allowed: list[IPv4Network],
    wanted: IPv4Network,
    as_line: bool,
) -> None:
    """Counted address by address, a sixteenth of the top four bits at a time."""
    spec: Given = {"source": "Owner/ci", "allow": ALLOW | {"prefixes": list(map(str, allowed))}}
    if not allowed:
        del spec["allow"]["prefixes"]
    folder = tmp_path_factory.mktemp("router")
    startup = load(folder, ("DynamicConfigSource", "ci", spec))
    resource = lines(f"blackhole {wanted}") if as_line else route(str(wanted))
    found = merged(startup, part("Owner/ci", resource))
    step = 1 << 26  # no network here is longer than /6
    covered = {at for one in allowed for at in range(int(one[0]), int(one[-1]) + 1, step)}
    inside = set(range(int(wanted[0]), int(wanted[-1]) + 1, step)) <= covered
    assert bool(found.active) == inside
    assert bool(found.rejected) != inside
    assert (found.router is startup) != inside


# Names


@pytest.mark.parametrize(
    "name",
    ["APP-x", "App-x", "app", "app_x", "xapp-x", "x.app-x", "app\u2010x", "\u0430pp-x"],
)
def test_a_name_that_looks_alike(name: str, startup: Router) -> None:
    said = refused(startup, route("10.1.0.0/16", name))
    assert "metadata.name" in said
    assert "resources[0]" in said


@pytest.mark.parametrize(
    "name", ["app-x\0", "app-\0x", "app-x\n", "app-*", "app-", "app-/x", "app-x\u200b", "", None, 7]
)
def test_a_name_that_is_none(name: Any, startup: Router) -> None:
    """Whatever the policy says."""
    assert "metadata.name" in refused(startup, route("10.1.0.0/16", name))


def test_a_kind_by_the_other_groups(declare: Callable[..., Router]) -> None:
    startup = declare(kinds=["IPv6Route"])
    for version in registry.api_versions("IPv4Route"):
        given = route("10.1.0.0/16") | {"apiVersion": version}
        assert "allow.kinds" in refused(startup, given)
    assert "kind" in refused(startup, route("10.1.0.0/16") | {"kind": "ipv6route"})


def test_a_name_that_the_startup_file_has(declare: Callable[..., Router]) -> None:
    own = ("IPv4Route", "app-x", {"destination": "10.9.0.0/16", "type": "blackhole"})
    said = refused(declare(own), route("10.1.0.0/16"))
    assert "IPv4Route/app-x is declared already" in said


def test_a_link_that_is_named_as_one_of_the_startup_file(declare: Callable[..., Router]) -> None:
    """References of the startup file would lead to it."""
    startup = declare(names=["*"], prefixes=["0.0.0.0/0", "::/0"])
    spec = {"interface": "lan", "tunnelName": "app7", "remoteAddress": "2001:db8::1"}
    refused(startup, raw("DSLiteTunnel", "wan", spec))
    taken(startup, raw("DSLiteTunnel", "own", spec))


# Links by another name


@pytest.mark.parametrize(
    ("resource", "link"),
    [
        (raw("Interface", "app-x", {"ifname": "eth0"}), "eth0"),
        (raw("Interface", "app-x", {"ifname": "eth0", "mtu": 1400}), "eth0"),
        (raw("Interface", "app-x", {"ifname": "eth2", "managed": False}), "eth2"),
        (raw("Interface", "app-x", {"ifname": "APP0", "type": "bridge"}), "APP0"),
        (
            raw(
                "Interface",
                "app-x",
                {"ifname": "app5", "type": "vlan", "vlan": {"parent": "wan", "id": 5}},
            ),
            "eth0",
        ),
        (
            raw(
                "Interface",
                "app-x",
                {"ifname": "app5", "type": "macvlan", "macvlan": {"parent": "wan"}},
            ),
            "eth0",
        ),
        (
            raw("Interface", "app-x", {"ifname": "app5", "type": "veth", "veth": {"peer": "eth7"}}),
            "eth7",
        ),
        (raw("Interface", "app-x", {"ifname": "app5", "master": "wan"}), "eth0"),
        (route("10.1.0.0/16", interface="wan"), "eth0"),
        (lines("10.1.0.0/16 dev wan"), "eth0"),
        (lines("10.1.0.0/16 dev eth0"), "eth0"),
        (lines("10.1.0.0/16", interface="wan"), "eth0"),
        (lines("10.1.0.0/16 nexthop dev lan nexthop dev wan"), "eth0"),
        (raw("Zone", "app-x", {"interfaces": ["lan", "wan"]}), "eth0"),
        # The kernel's name of it is the name of another's resource, which is what is allowed.
        (raw("Interface", "app-x", {"ifname": "lan"}), ""),
    ],
)
def test_a_link_outside(resource: Given, link: str, startup: Router) -> None:
    said = refused(startup, resource)
    if link:
        assert f"link {link}" in said
        assert f"add {link} to allow.interfaces" in said


def test_a_name_of_its_own_gives_it_no_link(startup: Router) -> None:
    """Interfaces of a part count by their kernel names alone."""
    mine = raw("Interface", "app-eth", {"ifname": "eth0", "managed": False})
    address = {"interface": "app-eth", "address": "10.0.0.1/24"}
    said = refused(startup, mine, raw("IPv4StaticAddress", "app-x", address))
    assert said.count("link eth0") == 2


def test_a_link_by_the_resource_that_stands_for_it(declare: Callable[..., Router]) -> None:
    """wan2 is app0, and app1 is lan: the names of the startup file prevail over the kernel's."""
    for name, ifname, allowed in (("lan", "eth1", True), ("wan2", "app0", True)):
        assert taken(declare(), route("10.1.0.0/16", interface=name))
        assert allowed, ifname
    only = declare(interfaces=["lan"])
    taken(only, lines("10.1.0.0/16 dev lan"))
    said = refused(only, route("10.1.0.0/16", interface="app1"))
    assert "app1 (link lan)" in said


def test_links_of_other_sources_resources(tmp_path: Path) -> None:
    """A zone of another's is its links, whoever may declare those."""
    startup = load(
        tmp_path,
        *LINKS,
        ("DynamicConfigSource", "ci", {"source": "Owner/ci", "allow": ALLOW}),
        admitting("Owner/a"),
        admitting("Owner/z"),
    )
    spec = {"protocol": "tcp", "externalPort": 80, "internalAddress": "10.0.0.1"}
    exposed = raw("ExposeService", "app-x", spec | {"fromZone": "outside"})
    zone = raw("Zone", "outside", {"interfaces": ["wan"]})
    policy = raw("FirewallPolicy", "all", {"input": {"default": "accept"}})
    for other in ("Owner/a", "Owner/z"):  # tried before and after the one that refers to it
        found = merged(startup, part(other, zone, policy), part("Owner/ci", exposed))
        assert [one.source for one in found.active] == [other]
        (one,) = found.rejected
        assert "spec.fromZone: ExposeService/app-x: wan (link eth0)" in "\n".join(one.reasons)


def test_a_link_of_another_source_that_takes_a_name(tmp_path: Path) -> None:
    """What is in force for one is not led elsewhere by what another declares afterwards."""
    startup = load(
        tmp_path,
        ("DynamicConfigSource", "ci", {"source": "Owner/ci", "allow": ALLOW}),
        admitting("Owner/z"),
    )
    first = part("Owner/ci", lines("10.1.0.0/16 dev app7"))
    wrong = part("Owner/z", raw("Interface", "app7", {"ifname": "eth0"}))
    found = merged(startup, first, wrong)
    assert found.active == (first,)
    assert "with it Owner/ci would be led to another link" in found.rejected[0].reasons[0]
    same = part("Owner/z", raw("Interface", "app7", {"ifname": "app8"}))
    assert merged(startup, first, same).active == (first, same)


# More than is written


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (
            "DSLiteTunnel",
            {
                "interface": "lan",
                "tunnelName": "app7",
                "remoteAddress": "2001:db8::1",
                "defaultRoute": True,
            },
            "defaultRoute",
        ),
        (
            "DSLiteTunnel",
            {"interface": "lan", "tunnelName": "app7", "aftrFQDN": "gw.example.net"},
            "aftrFQDN",
        ),
        (
            "ExposeService",
            {
                "family": "ipv6",
                "fromZone": "in",
                "protocol": "tcp",
                "externalPort": 22,
                "internalAddress": "::20",
            },
            "internalAddress",
        ),
        (
            "ExposeService",
            {
                "fromZone": "in",
                "protocol": "tcp",
                "externalPort": 22,
                "internalAddress": "10.0.0.1",
                "hairpin": True,
            },
            "hairpin",
        ),
        (
            "IPv4DefaultRoutePolicy",
            {
                "candidates": [
                    {
                        "interface": "lan",
                        "gatewaySource": "static",
                        "gateway": "10.0.0.1",
                        "priority": 10,
                        "table": 111,
                        "mark": 273,
                    }
                ]
            },
            "sourceCIDRs",
        ),
        ("IPv4ReversePathFilter", {"target": "all", "mode": "disabled"}, "target"),
    ],
)
def test_what_follows_from_a_resource(
    kind: str, spec: Given, field: str, declare: Callable[..., Router]
) -> None:
    zone = ("Zone", "in", {"interfaces": ["lan"]})
    policy = ("FirewallPolicy", "all", {"input": {"default": "accept"}})
    prefixes = [*ALLOW["prefixes"], "::/64"]
    said = refused(declare(zone, policy, prefixes=prefixes), raw(kind, "app-x", spec))
    assert f"resources[0]: spec.{field}: {kind}/app-x: " in said
    assert "allow.prefixes" in said


def test_routes_in_a_file(startup: Router, tmp_path: Path) -> None:
    (tmp_path / "routes").write_text("blackhole 10.1.0.0/16\n")
    for name in ("routes", str(tmp_path / "routes")):
        said = refused(startup, raw("RouteList", "app-x", {"file": name}))
        assert "a part cannot name files" in said


def test_many_routes_in_one_list(startup: Router) -> None:
    many = [f"blackhole 10.{number}.0.0/16" for number in range(4)]
    taken(startup, lines(*many[:3]))
    assert "are 4, more than Owner/ci may declare" in refused(startup, lines(*many))
    assert "are 4" in refused(startup, lines(*many[:3]), route("10.9.0.0/16", "app-y"))


# Kernel settings


def filtering(**spec: Any) -> Given:
    return raw("IPv4ReversePathFilter", "app-x", {"mode": "disabled"} | spec)


EVERYTHING = {"prefixes": ["0.0.0.0/0"], "interfaces": ["*"]}


@pytest.mark.parametrize(
    ("resource", "field", "key"),
    [
        (filtering(target="all"), "target", "all"),
        (filtering(target="default"), "target", "default"),
        (filtering(target="interface", interface="wan"), "interface", "eth0"),
        (filtering(target="interface", interface="tagged"), "interface", "eth0.10"),
    ],
)
@pytest.mark.parametrize("source", ["Owner/ci", "Plugin/open"])
def test_a_filter_is_a_setting(
    resource: Given, field: str, key: str, source: str, declare: Callable[..., Router]
) -> None:
    """It needs what a Sysctl needs, of a plugin without `allow` too."""
    links: tuple[tuple[str, str, Given], ...] = (
        ("Interface", "tagged", {"ifname": "eth0.10"}),
        ("Plugin", "open", {"executable": "/bin/true"}),
        ("DynamicConfigSource", "open", {"pluginRef": "open", "ttl": "5m"}),
    )
    key = f"net.ipv4.conf.{key}.rp_filter"
    said = refused(declare(*links, **EVERYTHING), resource, source=source)
    assert f"resources[0]: spec.{field}: no DynamicOverridePolicy allows {source} to set" in said
    assert key in said
    for keys in (["net.ipv4.conf.*.forwarding"], ["net.ipv4.conf.eth7.rp_filter"]):
        spec = {"sysctls": [{"source": source, "keys": keys}]}
        policy = ("DynamicOverridePolicy", "some", spec)
        assert key in refused(declare(*links, policy, **EVERYTHING), resource, source=source)
    for keys in ([key], ["net.ipv4.conf.*.rp_filter"]):
        spec = {"sysctls": [{"source": source, "keys": keys}]}
        policy = ("DynamicOverridePolicy", "some", spec)
        taken(declare(*links, policy, **EVERYTHING), resource, source=source)


@pytest.mark.parametrize("name", OPEN)
def test_every_open_kind_with_settings_says_which(name: str, tmp_path: Path) -> None:
    """So that a policy is asked for each of them."""
    kind = registry.kind(name)
    if "sysctl" not in kind.emits:
        return
    examples: dict[str, Given] = {
        "Sysctl": {"key": "net.ipv4.conf.eth0.rp_filter", "value": 0},
        "IPv4ReversePathFilter": {"target": "interface", "interface": "wan", "mode": "disabled"},
    }
    spec = examples[name]
    router = load(tmp_path, ("Interface", "wan", {"ifname": "eth0"}), (name, "x", spec))
    (one,) = [resource for resource in router.resources if resource.kind == name]
    called = source_policy.Links.of(router.resources).called
    said = [
        setting.key.replace("{}", link)
        for setting in kind.settings(one)
        for link in (called(setting.link) if setting.link else ("",))
    ]
    set_by_it = [
        intent.artifact.key.name
        for intent in compile_router(router, root=str(tmp_path)).intents
        if intent.owner == one.id and hasattr(intent, "artifact")
    ]
    assert said == set_by_it == ["net.ipv4.conf.eth0.rp_filter"]


def test_a_setting_of_a_link_outside(declare: Callable[..., Router]) -> None:
    spec = {"sysctls": [{"source": "Owner/ci", "keys": ["net.*"]}]}
    startup = declare(("DynamicOverridePolicy", "all", spec))
    for link in ("eth0", "eth0.10", "wan", "eth1.5"):
        setting = {"key": f"net.ipv4.conf.{link}.rp_filter", "value": 0}
        said = refused(startup, raw("Sysctl", "app-x", setting))
        assert f"spec.key: Sysctl/app-x: link {link}" in said
    for link in ("eth1", "app0", "all"):
        setting = {"key": f"net.ipv4.conf.{link}.rp_filter", "value": 0}
        taken(startup, raw("Sysctl", "app-x", setting))


# Links that are cut off

DOWN = (
    {"adminUp": False},
    {"state": "absent"},
    {"type": "bridge", "state": "absent"},
    {"master": ""},  # out of its bridge
    {"mac": "02:00:00:00:00:05"},
    {"mtu": 1279},
)


@pytest.mark.parametrize("spec", DOWN)
@pytest.mark.parametrize(
    ("interfaces", "allowed"),
    [
        (["*"], False),
        (["app*"], False),
        (["app", "app5*"], False),
        (["APP5"], False),
        (["app5"], True),
        (["*", "app5"], True),
    ],
)
def test_a_link_is_cut_off_where_it_is_named_in_full(
    spec: Given, interfaces: list[str], allowed: bool, declare: Callable[..., Router]
) -> None:
    startup = declare(interfaces=interfaces)
    given = raw("Interface", "app-x", {"ifname": "app5", **spec})
    if allowed:
        taken(startup, given)
        return
    said = refused(startup, given)
    field = "state" if "state" in spec else next(iter(spec))
    assert f"resources[0]: spec.{field}: Interface/app-x: Owner/ci may not " in said
    assert "link app5" in said
    assert "add app5 in full to allow.interfaces" in said


@pytest.mark.parametrize("spec", DOWN)
def test_a_plugin_without_a_policy_cuts_no_link_off(spec: Given, tmp_path: Path) -> None:
    startup = load(
        tmp_path,
        ("Plugin", "open", {"executable": "/bin/true"}),
        ("DynamicConfigSource", "open", {"pluginRef": "open", "ttl": "5m"}),
    )
    given = raw("Interface", "x", {"ifname": "eth5", **spec})
    assert "Plugin/open may not " in refused(startup, given, source="Plugin/open")
    taken(startup, raw("Interface", "x", {"ifname": "eth5"}), source="Plugin/open")


@pytest.mark.parametrize("spec", DOWN)
@pytest.mark.parametrize("interfaces", [["*"], ["lo"], ["loop"]])
def test_the_loopback_link_stays_as_it_is(
    spec: Given, interfaces: list[str], declare: Callable[..., Router]
) -> None:
    startup = declare(interfaces=interfaces)
    said = refused(startup, raw("Interface", "app-x", {"ifname": "lo", **spec}))
    assert "resources[0]: spec." in said
    assert "lo stays up" in said


def test_a_link_is_put_under_another_where_it_is_named_in_full(
    declare: Callable[..., Router],
) -> None:
    """A port of a bridge is a link no more: what comes in by it is the bridge's."""
    bridge = raw("Interface", "app-br", {"ifname": "app-br", "type": "bridge"})
    port = raw("Interface", "app-x", {"ifname": "app5", "master": "app-br"})
    said = refused(declare(interfaces=["*"]), bridge, port)
    assert "resources[1]: spec.master: Interface/app-x: Owner/ci may not put link app5" in said
    taken(declare(interfaces=["*", "app5"]), bridge, port)
    made = {"ifname": "app5", "type": "veth", "veth": {"peer": "app6"}, "mtu": 1000}
    own = raw("Interface", "app-x", made | {"master": "app-br", "mac": "02:00:00:00:00:05"})
    taken(declare(interfaces=["*"]), bridge, own)


def test_the_loopback_link_may_be_named(declare: Callable[..., Router]) -> None:
    startup = declare(interfaces=["lo"])
    loop = raw("Interface", "app-lo", {"ifname": "lo", "managed": False})
    address = {"interface": "app-lo", "address": "10.0.0.1/32"}
    taken(startup, loop, raw("IPv4StaticAddress", "app-x", address))
    taken(startup, raw("Interface", "app-lo", {"ifname": "lo", "adminUp": True}))


# Time


def test_more_time_for_the_same(declare: Callable[..., Router]) -> None:
    """Saying the same again is no way to stay for longer than may be said."""
    startup = declare(lifetime="5m")
    resource = route("10.1.0.0/16")
    first = part("Owner/ci", resource, lasts=300)
    before = merged(startup, first)
    for lasts in (None, 301, 30 * 86400.0):
        again = part("Owner/ci", resource, generation=2, lasts=lasts)
        found = effective.merge(startup, [first, again], NOW, before, {"Owner/ci": 1})
        assert found.active == (first,)
        assert "expiresAt" in found.rejected[0].reasons[0]
        # The ledger takes what says the same for what is in force already, and forgets the first.
        found = effective.merge(startup, [again], NOW, before, {"Owner/ci": 2})
        assert "expiresAt" in found.rejected[0].reasons[0]
        assert [one.expires for one in found.active] == [NOW + 300]
        over = effective.merge(startup, [again], NOW + 300, found, {"Owner/ci": 2})
        assert over.active == ()
        assert over.router is startup
    shorter = part("Owner/ci", resource, generation=3, lasts=200)
    found = effective.merge(startup, [first, shorter], NOW, found, {"Owner/ci": 1})
    assert found.active == (shorter,)
    assert found.rejected == ()


def test_a_time_limit_that_cuts(tmp_path: Path) -> None:
    """`ttl` refuses nothing, and is counted from when the part was observed."""
    spec = {"source": "Owner/ci", "ttl": "1m", "allow": ALLOW | {"lifetime": "1m"}}
    startup = load(tmp_path, ("DynamicConfigSource", "ci", spec))
    for lasts in (None, 3600.0):
        found = merged(startup, part("Owner/ci", route("10.1.0.0/16"), lasts=lasts))
        assert [one.expires for one in found.active] == [NOW + 60]
        late = effective.merge(startup, [part("Owner/ci", route("10.1.0.0/16"))], NOW + 60)
        assert late.active == ()


def test_a_policy_that_becomes_narrower(declare: Callable[..., Router]) -> None:
    """What was in force is judged again: it is not good any more."""
    first = part("Owner/ci", route("10.1.0.0/16"))
    before = merged(declare(), first)
    narrow = declare(prefixes=["10.2.0.0/16"])
    second = part("Owner/ci", route("10.3.0.0/16"), generation=2)
    found = effective.merge(narrow, [first, second], NOW, before, {"Owner/ci": 1})
    assert found.active == ()
    assert found.rejected[0].against
    assert found.router is narrow


def test_one_bad_resource_among_good_ones(startup: Router) -> None:
    """Nothing of the part is in force."""
    good, bad = route("10.1.0.0/16"), route("11.0.0.0/8", "app-y")
    said = refused(startup, good, bad)
    assert "resources[1]: spec.destination: IPv4Route/app-y: 11.0.0.0/8 is not what" in said
    assert "resources[0]" not in said


def test_no_field_of_an_open_kind_goes_unjudged() -> None:
    """Every field says what it reaches; those that cannot are not for parts."""

    def unjudged(spec: Any, *path: str) -> list[str]:
        found = []
        for entry in spec.entries:
            if entry.shape.nested is not None:
                found += unjudged(entry.shape.nested, *path, entry.name)
            elif entry.shape.reach is None:
                found.append(".".join((*path, entry.name)))
        return found

    found = {name: unjudged(registry.kind(name).spec) for name in OPEN}
    assert {name: fields for name, fields in found.items() if fields} == {
        "RouteList": ["file"],
        "BGPPeer": ["passwordFile"],
        "BGPPeerGroup": ["passwordFile"],
    }
