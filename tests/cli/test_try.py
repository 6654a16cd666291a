"""`holdfast try`: a home router from nothing to a client that resolves names, and nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.sandbox import pppoe, script
from holdfast.cli.sandbox.ground import SandboxNetwork, Uplink
from holdfast.cli.sandbox.pppoe import Concentrator
from holdfast.cli.sandbox.roles import Nic
from tests.wan.concentrator import needs_pppoe

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def attempt(file: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    """scratch: where it makes its throwaway folder, so that its processes can be told apart."""
    return subprocess.run(
        [HOLDFAST, "try", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "TMPDIR": str(scratch)},
    )


def processes(scratch: Path) -> set[str]:
    """The command lines of everything that runs and names the folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(scratch) in words:
            found.add(words)
    return found


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("try")


@pytest.fixture(scope="module")
def tried(scratch: Path) -> subprocess.CompletedProcess[str]:
    return attempt(EXAMPLES / "home.yaml", scratch)


@pytest.fixture(scope="module")
def tried6(scratch: Path) -> subprocess.CompletedProcess[str]:
    return attempt(EXAMPLES / "ipv6.yaml", scratch)


def test_everything_converges(tried: subprocess.CompletedProcess[str]) -> None:
    assert tried.returncode == 0, tried.stderr
    assert "Pending" not in tried.stdout.partition("Every resource")[2]


def test_a_client_gets_what_it_needs(tried: subprocess.CompletedProcess[str]) -> None:
    said = tried.stdout.partition("What a client on lan")[2]
    assert "router 192.168.1.1, DNS 192.168.1.1" in said
    assert "192.168.1.1 answers" in said
    assert "the provider behind eth0 answers" in said


def test_a_prefix_is_delegated(tried6: subprocess.CompletedProcess[str]) -> None:
    assert tried6.returncode == 0, tried6.stderr
    resources = tried6.stdout.partition("Every resource")[2]
    assert "Pending" not in resources
    assert re.search(r"Healthy +IPv6PrefixDelegation/wan", resources)
    assert re.search(r"Healthy +IPv6DHCPAddress/wan", resources)


def test_a_client_has_an_address_of_the_delegated_prefix(
    tried6: subprocess.CompletedProcess[str],
) -> None:
    said = tried6.stdout.partition("What a client on lan")[2]
    prefix = re.search(r"prefix (2001:db8:8\d*:)\d*:?:/64", said)
    assert prefix is not None, said
    assert f"address  {prefix[1]}" in said
    assert "fd5e:6f1d:2c0a::1 answers" in said
    assert "the provider behind eth0 answers over IPv6" in said


@pytest.mark.usefixtures("tried6")
def test_nothing_is_left(tried: subprocess.CompletedProcess[str], scratch: Path) -> None:
    assert "Nothing of this is left behind." in tried.stdout
    assert processes(scratch) == set()
    assert list(scratch.iterdir()) == []


SESSION = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: dialled}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: modem}
      spec: {ifname: eth0, adminUp: true}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lan}
      spec: {ifname: far0, adminUp: true}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lo}
      spec: {ifname: lo, managed: false}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: PPPoEInterface
      metadata: {name: wan}
      spec:
        interface: modem
        username: me
        passwordFile: /etc/holdfast/secret
        serviceName: fast lane
        acName: bras7
        usePeerDNS: true
        defaultRoute: true
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: lan}
      spec: {interface: lan, address: 192.168.1.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4DHCPServer
      metadata: {name: lan}
      spec:
        listenInterfaces: [lan]
        dns: {upstreamSource: dhcp4, upstreamInterface: wan}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4DHCPScope
      metadata: {name: lan}
      spec: {server: lan, interface: lan, rangeStart: 192.168.1.100, rangeEnd: 192.168.1.199}
"""


@pytest.mark.uml
def test_a_provider_is_dialled(tmp_path: Path) -> None:
    needs_pppoe()
    file = tmp_path / "router.yaml"
    file.write_text(SESSION)
    done = attempt(file, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "eth0 leads to a provider with PPPoE, DHCP" in done.stdout
    assert re.search(r"Healthy +PPPoEInterface/wan", done.stdout)
    # Whose name servers were learned with the session.
    assert "192.168.1.1 answers" in done.stdout.partition("What a client on lan (far0)")[2]
    assert processes(tmp_path) == set()
    assert list(tmp_path.iterdir()) == [file]


def test_a_provider_that_cannot_be_dialled_says_why(tmp_path: Path) -> None:
    why = pppoe.lacking(path=str(tmp_path))
    assert re.match(
        "this kernel has no PPPoE|there is no /dev/ppp|/dev/ppp is for|pppoe-server", why
    )
    nic = Nic("eth0", "wan", True, (), (Concentrator("bras7"),))
    uplink = Uplink(nic, "far0", "198.18.0.1", "2001:db8:ffff::1")
    laid = SandboxNetwork((uplink,), (), True, why)
    assert script.described(laid) == [
        "eth0 leads to a provider with DHCP, router advertisements and DNS at 198.18.0.1",
        f"nobody answers PPPoE, since {why}: what needs a session waits",
    ]


def test_a_faulty_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    file.write_text("kind: Router\n")
    done = attempt(file, tmp_path)
    assert done.returncode == 3
    assert f"{file}:1:1" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("step", ["The plan", "Applied", "Every resource"])
def test_an_interrupted_trial_ends_there_and_leaves_nothing(tmp_path: Path, step: str) -> None:
    trial = subprocess.Popen(
        [HOLDFAST, "try", str(EXAMPLES / "home.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with trial:
        assert trial.stdout is not None
        next(line for line in trial.stdout if line.strip() == step)
        os.killpg(trial.pid, signal.SIGINT)  # as a terminal does
        rest = trial.stdout.read()
        assert trial.wait(60) == 130, rest
    assert "What a client" not in rest
    assert rest.endswith("interrupted; if something was half done, the next pass resolves it\n")
    assert list(tmp_path.iterdir()) == []
    assert processes(tmp_path) == set()
