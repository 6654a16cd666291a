"""PPPoE sessions by the real pppd to a real concentrator."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.facts.read import read_facts
from holdfast.paths import Paths
from holdfast.resources.facts import Lease
from tests.cli.conftest import Done, Holdfast
from tests.namespace import Namespace
from tests.wan.concentrator import Concentrator, concentrator, needs_pppoe
from tests.wan.isp import wait_for

pytestmark = pytest.mark.uml

USER = 'jo "the" o\'b\\x@example.jp #1 é'
PASSWORD = "pa ss\"w\\o#rd'é$(x)"  # noqa: S105 (nobody's)
WAN = ("Interface", "wan", "{ifname: wan0, adminUp: true}")


def session(name: str = "home", **more: str) -> tuple[str, str, str]:
    fields = {"interface": "wan", "username": json.dumps(USER), "passwordFile": "secret", **more}
    spec = ", ".join(f"{key}: {value}" for key, value in fields.items())
    return "PPPoEInterface", name, f"{{{spec}}}"


DEFAULT = ("IPv4Route", "default", "{destination: 0.0.0.0/0, interface: home}")


class Router(Holdfast):
    """`holdfast` below a root, and what its sessions look like from outside."""

    def apply(self, *resources: tuple[str, str, str], **options: Any) -> Done:
        self.declare(*resources)
        return self.run("apply", "--yes", "--allow-mass-delete", "router.yaml", **options)

    def settled(self) -> bool:
        """Nothing left to do."""
        done = self.run("plan", "--detailed-exitcode", "router.yaml")
        return done.code == 0

    def lease(self, ifname: str = "ppp-home") -> Lease | None:
        found = read_facts(Paths(self.root), ()).sessions.get(ifname)
        return found if isinstance(found, Lease) else None

    def up(self, ifname: str = "ppp-home") -> Lease:
        found: Lease = wait_for(
            lambda: (lease := self.lease(ifname)) and lease.dns and lease, f"session {ifname}"
        )
        return found

    def pid(self, name: str = "home") -> int:
        """Of the process that runs, 0 where none does."""
        path = self.root / f"run/holdfast/services/pppoe-{name}.process"
        try:
            pid = int(json.loads(path.read_text())["process"][0])
            return pid if Path(f"/proc/{pid}").exists() else 0
        except FileNotFoundError:
            return 0

    def log(self, name: str = "home") -> str:
        path = self.root / f"var/log/holdfast/pppoe-{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def options(self) -> Path:
        return self.root / "etc/holdfast/pppoe-home.options"


@pytest.fixture
def isp(netns: Namespace, tmp_path: Path) -> Iterator[Concentrator]:
    del netns  # the namespace it is in
    needs_pppoe()
    with concentrator(tmp_path / "isp") as made:
        made.know(PASSWORD)
        yield made


@pytest.fixture
def router(isp: Concentrator, tmp_path: Path) -> Iterator[Router]:
    del isp  # which makes the link wan0
    folder = tmp_path / "work"
    folder.mkdir()
    # A blank and quotes, for whatever would take a path apart.
    made = Router(folder, tmp_path / "root 'of' \"it\"")
    secret = folder / "secret"
    secret.touch(0o600)
    secret.write_text(PASSWORD + "\n")
    yield made
    made.apply()


def _told(done: Done) -> str:
    return done.out + done.err


def test_a_session_from_its_start_to_its_end(
    isp: Concentrator, router: Router, netns: Namespace
) -> None:
    isp.serve()
    declared = (WAN, session(usePeerDNS="true", mtu="1400"), DEFAULT)
    first = router.apply(*declared)
    # Where dialling is slow the link may be there already, though down.
    assert re.search("link ppp-home is (not there yet|there, but not yet)", _told(first))
    lease = router.up()
    assert lease == Lease(
        (IPv4Interface("10.9.1.10/32"),),
        IPv4Address("10.9.1.1"),
        (IPv4Address("10.9.1.53"), IPv4Address("10.9.1.54")),
    )
    second = router.apply(*declared)
    assert second.code == 0, _told(second)
    (default,) = netns.ip_json("-4 route show default")
    assert (default["dev"], default["protocol"]) == ("ppp-home", "72")
    assert netns.ip_json("link show ppp-home")[0]["mtu"] == 1400
    _reached("10.9.1.1", "ppp-home")
    assert router.settled()

    pid = router.pid()
    gone = router.apply(WAN)
    assert gone.code == 0, _told(gone)
    assert not Path(f"/proc/{pid}").exists()
    assert not router.options.exists()
    assert netns.ip_json("-4 route show default") == []
    wait_for(lambda: "ppp-home" not in netns.ip("link show"), "the end of the link")
    assert router.settled()
    _nothing_tells(router, first, second, gone)
    assert not router.options.exists()


def _reached(address: str, ifname: str) -> None:
    """Nobody listens there, which it takes the far end to say."""
    with socket.socket() as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, ifname.encode())
        asking.settimeout(10)
        assert asking.connect_ex((address, 9)) == errno.ECONNREFUSED


def _nothing_tells(router: Router, *said: Done) -> None:
    """The password stands in the options file and nowhere else."""
    secrets = (PASSWORD, PASSWORD.replace("\\", "\\\\").replace('"', '\\"'), "o#rd")
    texts = {f"output {number}": _told(done) for number, done in enumerate(said)}
    for words in (
        ("plan", "-o", "json", "router.yaml"),
        ("status", "-o", "json", "router.yaml"),
        ("ledger", "export"),
    ):
        texts[" ".join(words)] = _told(router.run(*words))
    for path in (*router.root.rglob("*"), *Path("/proc").glob("[0-9]*/cmdline")):
        # Files are replaced and processes end while they are looked through.
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.is_file() and path != router.options:
                texts[str(path)] = path.read_bytes().decode(errors="replace")
    assert len(texts) > 10
    for place, text in texts.items():
        for secret in secrets:
            assert secret not in text, place


def test_a_wrong_password(isp: Concentrator, router: Router, netns: Namespace) -> None:
    isp.serve()
    secret = router.folder / "secret"
    secret.write_text("o#rd of yesterday\n")
    first = router.apply(WAN, session(usePeerDNS="true"))
    wait_for(lambda: router.log().count("authentication failed") > 2, "a second try")
    assert router.pid(), "it goes on trying"
    assert router.lease() is None
    _nothing_tells(router, first)
    secret.write_text(PASSWORD)
    router.apply(WAN, session(usePeerDNS="true"))
    router.up()
    assert netns.ip_json("link show ppp-home")[0]["mtu"] == 1492
    assert router.options.stat().st_mode & 0o777 == 0o600


def test_pap_and_a_name_of_the_links_own(isp: Concentrator, router: Router) -> None:
    isp.serve(auth="pap")
    # The server compares a password as it would print it: one with quotes is another to it.
    isp.know("plain")
    (router.folder / "secret").write_text("plain")
    home = session(ifname="ppp0", acName="ac1", usePeerDNS="true")
    router.apply(WAN, home)
    assert router.up("ppp0").gateway == IPv4Address("10.9.1.1")


def test_links_of_odd_names(isp: Concentrator, router: Router, netns: Namespace) -> None:
    isp.serve()
    wan, home = "w#\"\\'0", "p\"#\\'0"
    netns.ip(f"link set wan0 name {wan}")
    below = ("Interface", "wan", f"{{ifname: {json.dumps(wan)}, adminUp: true}}")
    router.apply(below, session(ifname=json.dumps(home), usePeerDNS="true"))
    assert router.up(home).gateway == IPv4Address("10.9.1.1")


def test_one_of_two_sessions_is_changed(isp: Concentrator, router: Router) -> None:
    isp.serve("ac1", "10.9.1", service="fibre")
    isp.serve("ac2", "10.9.2", service="copper")
    home = session(serviceName="fibre", usePeerDNS="true")
    office = session("office", acName="ac2", usePeerDNS="true")
    router.apply(WAN, home, office)
    assert router.up("ppp-home").dns == (IPv4Address("10.9.1.53"), IPv4Address("10.9.1.54"))
    assert router.up("ppp-office").dns == (IPv4Address("10.9.2.53"), IPv4Address("10.9.2.54"))
    assert router.settled()
    before = router.pid("home"), router.pid("office")
    changed = router.apply(WAN, session(serviceName="fibre", usePeerDNS="true", mru="1400"), office)
    assert changed.code == 0, _told(changed)
    assert router.pid("office") == before[1]
    assert router.pid("home") not in (0, before[0])
    router.up("ppp-home")
    assert router.lease("ppp-office") is not None
    router.apply(WAN, office)
    assert (router.pid("home"), router.pid("office")) == (0, before[1])


def test_drift_is_repaired(isp: Concentrator, router: Router) -> None:
    isp.serve()
    declared = (WAN, session(usePeerDNS="true"))
    router.apply(*declared)
    router.up()
    content = router.options.read_text()
    router.options.write_text(content.replace("mtu 1492", "mtu 1300"))
    router.options.chmod(0o644)
    assert not router.settled()
    router.apply(*declared)
    assert router.options.read_text() == content
    assert router.options.stat().st_mode & 0o777 == 0o600
    assert router.settled()

    # The session that runs was begun with the options as declared: it was not cut.
    assert router.lease() is not None

    before = router.pid()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: router.pid() not in (0, before), "another process")
    router.up()
    assert router.settled()


def test_who_hangs_up_is_dialled_again(isp: Concentrator, router: Router) -> None:
    isp.serve()
    router.apply(WAN, session(usePeerDNS="true", persist="false"))
    router.up()
    before = router.pid()
    isp.hang_up()
    wait_for(lambda: router.pid() not in (0, before), "another process")
    wait_for(lambda: router.lease() is not None, "another session")


EVERYTHING = {
    "serviceName": json.dumps('a "b" \\c'),
    "acName": "'#ac'",
    "defaultRoute": "true",
    "usePeerDNS": "true",
    "persist": "false",
    "mtu": "1300",
    "mru": "1301",
    "lcpInterval": "7",
    "lcpFailure": "8",
    "ipv6": "true",
}


@pytest.mark.parametrize("more", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_pppd_takes_every_option(isp: Concentrator, router: Router, more: dict[str, str]) -> None:
    del isp  # nobody answers
    router.apply(WAN, session(**more))
    command = ["pppd", "dryrun", "file", str(router.options)]
    # pppd 2.5.2 says where an option is from out of memory that it has given back.
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = set(re.findall(r"^(.+?)\t\t# \(from ", done.stdout, re.MULTILINE))
    wanted = {"ifname ppp-home", "noauth", "noipdefault", "hide-password", "wan0"}
    wanted |= {"user " + USER.replace("\\", "\\\\").replace('"', '\\"'), "password ??????"}
    if more:
        wanted |= {"rp_pppoe_ac #ac", 'rp_pppoe_service a \\"b\\" \\\\c', "defaultroute"}
        wanted |= {"replacedefaultroute", "usepeerdns", "mtu 1300", "mru 1301", "+ipv6"}
        wanted |= {"lcp-echo-interval 7", "lcp-echo-failure 8"}
    else:
        wanted |= {"nodefaultroute", "persist", "maxfail 0", "holdoff 5", "mtu 1492", "mru 1492"}
        wanted |= {"lcp-echo-interval 20", "lcp-echo-failure 3", "noipv6"}
    assert wanted <= found, wanted - found
