"""What a hook left behind, whoever wrote the values in it."""

from __future__ import annotations

import subprocess
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.intent import Intent
from holdfast.host.facts import clock
from holdfast.host.facts.leases import FOLDER, Leases, read_leases
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import GONE, Lease
from holdfast.resources.router import load_router
from tests.safety.router_scene import document

pytestmark = pytest.mark.programs

LINKS = {"wan0", "eth0.10"}
GOOD4 = {
    "reason": "BOUND",
    "protocol": "dhcp",
    "new_ip_address": "203.0.113.7",
    "new_subnet_cidr": "24",
    "new_dhcp_lease_time": "600",
    "new_routers": "203.0.113.1 203.0.113.2",
    "new_domain_name_servers": "203.0.113.53",
}
GOOD6 = {
    "reason": "BOUND6",
    "protocol": "dhcp6",
    "new_dhcp6_ia_na1_ia_addr1": "2001:db8::7",
    "new_dhcp6_ia_na1_ia_addr1_vltime": "600",
    "new_dhcp6_ia_pd1_prefix1": "2001:db8:1000::",
    "new_dhcp6_ia_pd1_prefix1_length": "56",
    "new_dhcp6_ia_pd1_prefix1_vltime": "600",
}


class Client:
    """Stands for dhcpcd: runs the real hook with an environment."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(root)
        source = root / "router.yaml"
        source.write_text(
            document(
                {
                    "Interface/wan": "{ifname: wan0, managed: false}",
                    "IPv4DHCPAddress/wan": "{interface: wan}",
                }
            )
        )
        intents = compile_router(load_router(source), root=str(root)).intents
        (hook,) = (
            intent.artifact.payload
            for intent in intents
            if isinstance(intent, Intent) and intent.artifact.key.name.endswith("dhcpcd-hook")
        )
        self.hook = root / "hook"
        self.hook.write_bytes(hook)
        self.hook.chmod(0o755)

    def says(self, variables: dict[str, str], ifname: str = "wan0") -> None:
        environment = {"PATH": "/usr/bin:/bin", "interface": ifname, **variables}
        subprocess.run([self.hook], env=environment, check=True)

    def read(self) -> Leases:
        found = read_leases(self.paths, LINKS)
        assert found.troubles == []
        return found

    @property
    def folder(self) -> Path:
        return self.paths.under(FOLDER)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    root = tmp_path / "a root; $(touch never) 'with' \"all\""
    root.mkdir()
    return Client(root)


def test_a_lease_of_each_family(client: Client) -> None:
    client.says(GOOD4, "eth0.10")
    client.says(GOOD6)
    found = client.read()
    assert found.leases4 == {
        "eth0.10": Lease(
            (IPv4Interface("203.0.113.7/24"),),
            IPv4Address("203.0.113.1"),
            (IPv4Address("203.0.113.53"),),
        )
    }
    assert found.leases6 == {"wan0": Lease((IPv6Interface("2001:db8::7/128"),))}
    assert found.delegations == {"wan0": (IPv6Network("2001:db8:1000::/56"),)}


@pytest.mark.parametrize("reason", ["EXPIRE", "NAK", "RELEASE"])
def test_the_end_of_an_ipv4_lease(client: Client, reason: str) -> None:
    client.says(GOOD4)
    client.says({**GOOD4, "reason": reason})
    assert client.read().leases4 == {"wan0": GONE}
    client.says({**GOOD4, "reason": "REBIND"})
    assert isinstance(client.read().leases4["wan0"], Lease)


@pytest.mark.parametrize(
    ("reason", "address", "prefix"),
    [
        # A pulled cable, which ends no delegation; a stopped client has said nothing at all.
        ("EXPIRE6", GONE, (IPv6Network("2001:db8:1000::/56"),)),
        ("STOP6", None, (IPv6Network("2001:db8:1000::/56"),)),
        ("RELEASE6", GONE, GONE),
    ],
)
def test_the_end_of_an_ipv6_lease(
    client: Client, reason: str, address: object, prefix: object
) -> None:
    client.says(GOOD6)
    client.says({"reason": reason, "protocol": "dhcp6"})
    found = client.read()
    assert found.leases6.get("wan0") == address
    assert found.delegations["wan0"] == prefix


def test_a_stopped_client_leaves_nothing_known(client: Client) -> None:
    client.says(GOOD4)
    client.says({**GOOD4, "reason": "STOP"})
    assert client.read().leases4 == {}


@pytest.mark.parametrize("reason", ["PREINIT", "CARRIER", "NOCARRIER", "ROUTERADVERT", "TEST"])
def test_other_news_change_nothing(client: Client, reason: str) -> None:
    client.says(GOOD4)
    before = client.read()
    client.says({"reason": reason, "protocol": "dhcp"})
    client.says({"reason": reason, "protocol": "link"})
    client.says({"reason": "BOUND", "protocol": "ra"})
    assert client.read() == before


def test_a_lifetime_ends_even_if_nobody_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.says(GOOD4)
    client.says({**GOOD6, "new_dhcp6_ia_na1_ia_addr1_vltime": "4294967295"})
    later = clock.uptime() + 601
    monkeypatch.setattr(clock, "uptime", lambda: later)
    found = client.read()
    assert found.leases4 == {"wan0": GONE}
    assert found.delegations == {"wan0": GONE}
    assert found.leases6 == {"wan0": Lease((IPv6Interface("2001:db8::7/128"),))}


def test_leases_of_the_past_are_not_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.says(GOOD4)
    client.says(GOOD4, "gone0")
    assert set(client.read().leases4) == {"wan0"}
    monkeypatch.setattr(clock, "boot_id", lambda: "another boot")
    assert client.read() == Leases()


def test_a_lease_of_another_name_is_not_taken(client: Client) -> None:
    client.says(GOOD4)
    (client.folder / "wan0.4.lease").rename(client.folder / "eth0.10.4.lease")
    assert client.read().leases4 == {}


def test_names_that_are_no_files(client: Client) -> None:
    for ifname in ("", "../../etc", ".hidden", "a/b"):
        done = subprocess.run(
            [client.hook], env={"PATH": "/bin", "interface": ifname, **GOOD4}, check=False
        )
        assert done.returncode == 1
    assert not client.folder.exists()


def test_values_of_servers_that_mean_no_good(client: Client) -> None:
    client.says(
        {
            **GOOD4,
            "new_domain_name": "$(touch /tmp/owned)\nserver=6.6.6.6",
            "new_domain_name_servers": "127.0.0.1 0.0.0.0 224.0.0.1 ::1 6.6.6.6;x 192.0.2.5 é",
            "new_ntp_servers": "255.255.255.255 `id` 192.0.2.6",
            "new_subnet_cidr": "99",
            "new_host_name": "x\nnew_ip_address=6.6.6.6",
        }
    )
    assert client.read().leases4 == {
        "wan0": Lease(
            (IPv4Interface("203.0.113.7/32"),),
            IPv4Address("203.0.113.1"),
            (IPv4Address("192.0.2.5"),),
            (IPv4Address("192.0.2.6"),),
        )
    }


@pytest.mark.parametrize(
    ("prefix", "length"),
    [("::", "0"), ("2000::", "3"), ("fe80::", "64"), ("ff00::", "16"), ("::1", "128"), ("x", "56"),
     ("2001:db8::", "129"), ("2001:db8::", "-1"), ("2001:db8::", "")],
)  # fmt: skip
def test_prefixes_that_cannot_be_delegated(client: Client, prefix: str, length: str) -> None:
    client.says(
        {
            **GOOD6,
            "new_dhcp6_ia_pd1_prefix1": prefix,
            "new_dhcp6_ia_pd1_prefix1_length": length,
        }
    )
    assert client.read().delegations == {"wan0": GONE}


def test_a_prefix_that_is_being_replaced_comes_last(client: Client) -> None:
    second = {
        "new_dhcp6_ia_pd1_prefix2": "2001:db8:2000::",
        "new_dhcp6_ia_pd1_prefix2_length": "56",
        "new_dhcp6_ia_pd1_prefix2_pltime": "300",
        "new_dhcp6_ia_pd1_prefix2_vltime": "600",
    }
    old, new = IPv6Network("2001:db8:1000::/56"), IPv6Network("2001:db8:2000::/56")
    for preferred, order in (("300", (old, new)), ("0", (new, old))):
        client.says({**GOOD6, **second, "new_dhcp6_ia_pd1_prefix1_pltime": preferred})
        assert client.read().delegations == {"wan0": order}
    client.says({**GOOD6, "new_dhcp6_ia_pd1_prefix1_pltime": "0"})
    assert client.read().delegations == {"wan0": (old,)}


def test_servers_on_the_link_itself(client: Client) -> None:
    client.says(
        {**GOOD6, "new_dhcp6_name_servers": "fe80::1 fe80::2%wan0 fe80::3%lan0 2001:db8::5"}
    )
    lease = client.read().leases6["wan0"]
    assert isinstance(lease, Lease)
    assert lease.dns == (
        IPv6Address("fe80::1%wan0"),
        IPv6Address("fe80::2%wan0"),
        IPv6Address("2001:db8::5"),
    )


def test_a_classless_default_route_comes_first(client: Client) -> None:
    client.says(
        {**GOOD4, "new_classless_static_routes": "10.0.0.0/8 192.0.2.3 0.0.0.0/0 192.0.2.4"}
    )
    lease = client.read().leases4["wan0"]
    assert isinstance(lease, Lease)
    assert lease.gateway == IPv4Address("192.0.2.4")


@given(st.binary(max_size=300))
def test_any_bytes_in_a_file(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.mktemp("root")
    folder = Paths(root).under(FOLDER)
    folder.mkdir(parents=True)
    head = f"holdfast_boot={clock.boot_id()}\0interface=wan0\0reason=BOUND6\0".encode()
    for name in ("wan0.4.lease", "wan0.6.lease", "wan0.6.over"):
        (folder / name).write_bytes(head + data)
    found = read_leases(Paths(root), LINKS)
    assert found.leases4 == {"wan0": GONE}
    assert found.troubles == []
