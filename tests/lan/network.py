"""A router in the test's namespaces, its clients in namespaces of their own, and passes over it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.engine.drivers import Drivers
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass, Report
from holdfast.paths import Paths
from holdfast.resources import registry
from holdfast.resources.compile import compile_router
from holdfast.resources.facts import NOTHING_KNOWN, Facts
from holdfast.resources.router import Router, load_router
from holdfast.runtime import drivers
from holdfast.state.ledger import Ledger
from tests.lanes import needs_programs
from tests.namespace import Namespace

TAG = 72
Resources = Mapping[str, Mapping[str, Any]]  # "Kind/name" -> spec

# What dhcpcd writes outside of the files it is told of is gone with the namespace.
_OWN_PLACES = """
mount --make-rprivate / && mount -t tmpfs none /run && mkdir -p /run/dhcpcd /var/lib/dhcpcd &&
mount -t tmpfs none /var/lib/dhcpcd && ip link set lo up && echo ready && exec sleep 600
"""
_TOLD = """#!/bin/sh
env > "{folder}/$reason.new" && mv "{folder}/$reason.new" "{folder}/$reason"
"""


def until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """What the condition says once it says something."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
    return found


@dataclass(slots=True)
class Host:
    """A machine on a wire of its own to the test's namespace."""

    holder: int  # a process in its namespaces
    link: str
    folder: Path
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def command(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self.holder), "-n", "-m", "--", *command]

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            self.command(*command), capture_output=True, text=True, check=False, timeout=120
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout} {done.stderr}")
        return done.stdout.strip()

    def ip(self, command: str) -> str:
        return self.run("ip", *command.split())

    def dhcp(self, family: int, *lines: str) -> dict[str, str]:
        """What dhcpcd was told, by the names it has for it."""
        told = self.folder / f"told{next(self.count)}"
        told.mkdir()
        script, config = told / "script", told / "dhcpcd.conf"
        script.write_text(_TOLD.format(folder=told))
        script.chmod(0o755)
        config.write_text("\n".join(("noarp", "nodelay", "duid ll", *lines)) + "\n")
        asked = (f"-{family}", "-1", "-B", "-f", str(config), "-c", str(script), self.link)
        self.run("timeout", "60", "dhcpcd", *asked)
        # It calls it a reboot when it remembers its last lease.
        reasons = ("BOUND", "REBOOT") if family == 4 else ("BOUND6", "REBOOT6")
        said = next(told / reason for reason in reasons if (told / reason).exists()).read_text()
        return {name: value for name, _, value in (x.partition("=") for x in said.splitlines())}

    def advertisement(self) -> Any:
        """What the router says in answer to a solicitation."""
        script = str(Path(__file__).with_name("advertisement.py"))
        return json.loads(self.run(sys.executable, "-I", script, self.link))

    def dig(self, server: str, name: str, *more: str) -> str:
        """The answer; empty where there is none."""
        words = ("dig", "+short", "+time=2", "+tries=3", f"@{server}", name, *more)
        said = self.run(*words, check=False)
        # It also tells of tries that failed.
        return "\n".join(line for line in said.splitlines() if not line.startswith(";;"))


@contextmanager
def host(netns: Namespace, folder: Path, link: str, far: str, mac: str = "") -> Iterator[Host]:
    """far: the name of our end of the wire."""
    needs_programs("dnsmasq", "dhcpcd")
    place = folder / f"host-{far}"
    place.mkdir()
    holder = subprocess.Popen(
        ["unshare", "-n", "-m", "sh", "-c", _OWN_PLACES], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        netns.ip(f"link add {far} type veth peer name {link} netns {holder.pid}")
        # Nobody else is on the wire, and waiting for that takes two seconds, in which dnsmasq could
        # not ask for the hardware address behind a DHCPv6 request.
        netns.run("sysctl", "-qw", f"net.ipv6.conf.{far}.accept_dad=0")
        netns.ip(f"link set {far} up")
        made = Host(holder.pid, link, place)
        if mac:
            made.ip(f"link set {link} address {mac}")
        made.run("sysctl", "-qw", f"net.ipv6.conf.{link}.accept_dad=0")
        made.ip(f"link set {link} up")
        yield made
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()


@contextmanager
def name_server(where: Host, name: str, address: str) -> Iterator[None]:
    """Answers one question, and refuses others."""
    argv = where.command(
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
        "--user=root", "--pid-file=", "--log-facility=-", f"--address=/{name}/{address}",
    )  # fmt: skip
    running = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        until(lambda: where.dig("127.0.0.1", name) == address, f"the name server of {name}")
        yield
    finally:
        running.terminate()
        running.wait(60)


@dataclass(slots=True)
class Scene:
    """The router: passes over a root, as the command makes them."""

    paths: Paths
    stack: ExitStack
    netns: Namespace
    folder: Path
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def host(self, link: str, far: str, mac: str = "") -> Host:
        return self.stack.enter_context(host(self.netns, self.folder, link, far, mac))

    def load(self, resources: Resources) -> Router:
        path = self.folder / "router.yaml"
        path.write_text(document(resources))
        return load_router(path)

    def work(self, ledger: Ledger, host: Drivers, resources: Resources, facts: Facts) -> Pass:
        desired = compile_router(self.load(resources), facts, str(self.paths.root))
        policy = Policy(host.epoch, allow_mass_delete=True)
        return Pass(desired, host, ledger, policy, 1, nonce=lambda: str(next(self.count)))

    def apply(self, resources: Resources, facts: Facts = NOTHING_KNOWN) -> Report:
        self.paths.root.mkdir(exist_ok=True)
        with (
            Ledger.open(self.paths, command="test") as ledger,
            drivers.of_machine(self.paths, TAG) as host,
        ):
            work = self.work(ledger, host, resources, facts)

            def approve(_plan: object) -> None:
                work.generation = ledger.begin_generation(self.load(resources).files)

            return work.run(approve)

    def converge(self, resources: Resources, facts: Facts = NOTHING_KNOWN) -> Report:
        """A pass that leaves nothing to do, and one more that says so."""
        report = self.apply(resources, facts)
        failures = [str(failure) for _, failure in report.failures]
        assert not failures
        again = self.apply(resources, facts)
        assert not again.before.changes, [str(change) for change in again.before.changes]
        return report

    def read(self, path: str) -> str:
        return self.paths.under(path).read_text()

    @property
    def pid(self) -> int:
        (found,) = self.pids()
        return found

    def pids(self) -> list[int]:
        """Of dnsmasq in the router's namespace."""
        words = ("pgrep", "-x", "dnsmasq", "--ns", str(os.getpid()), "--nslist", "net")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return [int(one) for one in done.stdout.split()]


@contextmanager
def scene(netns: Namespace, folder: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        made = Scene(Paths(folder / "root"), stack, netns, folder)
        try:
            yield made
        finally:
            made.apply({})  # what was started ends


def document(resources: Resources) -> str:
    """JSON is YAML."""
    return (
        json.dumps(
            {
                "apiVersion": "holdfast.dev/v1alpha1",
                "kind": "Router",
                "metadata": {"name": "test"},
                "spec": {
                    "resources": [
                        {
                            "apiVersion": registry.api_versions(kind)[0],
                            "kind": kind,
                            "metadata": {"name": name},
                            "spec": dict(spec),
                        }
                        for (kind, _, name), spec in (
                            (key.partition("/"), spec) for key, spec in resources.items()
                        )
                    ]
                },
            },
            indent=1,
        )
        + "\n"
    )
