"""What is said of an operator's connection against what becomes of it, over random changes.

Said to be cut: nothing passes any more. Nothing said: all passes as before, so that no harmless
change is refused. Said to take another way: nobody can know before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.engine.path.judgement import Loss
from holdfast.engine.plan import Plan
from holdfast.engine.policy import Policy
from holdfast.engine.reconcile import Pass
from holdfast.errors import ConfigError
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.runtime import drivers, operators
from holdfast.state import journal
from holdfast.state.ledger import Ledger
from tests.firewall.home_network import CLIENT, ISP, ROUTER, WAN
from tests.firewall.operator_scene import BEHIND, Scene, Session, scene
from tests.namespace import Namespace
from tests.safety.router_scene import TAG, document, links_of_gateways, load

OWN = "198.51.100.9"
LINKS = {"Interface/wan": "{ifname: wan0}", "Interface/lan": "{ifname: lan0}"}
Resources = dict[str, str]

SELECTORS = (
    "family: ipv4", f"from: {WAN}/32", f"from: {OWN}/32", "from: 198.51.100.0/24",
    f"from: {ROUTER}/32", f"to: {BEHIND}/32", f"to: {ISP}/32", "to: 203.0.113.0/24",
    "to: 10.0.0.0/8", "fwmark: 7", "iif: lan", "iif: wan", "oif: lan",
)  # fmt: skip
ENDS = ("table: 100", "table: 101", "table: 100", "action: prohibit", "action: blackhole",
        "action: unreachable")  # fmt: skip
DESTINATIONS = ("default", "default", f"{BEHIND}/32", f"{BEHIND}/32", "203.0.113.0/24", f"{ISP}/32",
                "198.51.100.0/25", "10.0.0.0/8")  # fmt: skip
WAYS = (
    f"gateway: {ISP}", f"gateway: {ISP}, interface: wan", f"gateway: {CLIENT}",
    f"gateway: {CLIENT}, interface: lan", "interface: lan", "interface: wan", "type: blackhole",
    "type: prohibit", "type: unreachable", "gateway: 198.51.100.77",
)  # fmt: skip
ADDRESSES = (
    f"{{interface: lan, address: {BEHIND}/32}}",
    "{interface: lan, address: 203.0.113.1/24}",
    "{interface: wan, address: 198.51.100.3/24}",
    f"{{interface: lan, address: {OWN}/32, allowOverlap: true, allowOverlapReason: test}}",
    f"{{interface: lan, address: {ISP}/32, allowOverlap: true, allowOverlapReason: test}}",
)


# What stands for what in IPv6.
SIX = (
    ("198.51.100.", "2001:db8:ff::"), ("203.0.113.", "2001:db8:aa::"),
    ("192.168.160.", "2001:db8:1::"), ("10.0.0.0/8", "fd00::/8"), ("/32", "/128"), ("/24", "/64"),
    ("/25", "/65"), ("ipv4", "ipv6"), ("metric: 0", "metric: 1024"),
)  # fmt: skip


def in_family(version: int, text: str) -> str:
    for four, six in SIX if version == 6 else ():
        text = text.replace(four, six)
    return text


class Dice:
    """Random resources of the kinds that have to do with ways."""

    def __init__(self, number: int, mac: str) -> None:
        self._random = random.Random(number)  # noqa: S311 (a test)
        self._mac = mac

    def one_of(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _some(self, least: int, most: int) -> Resources:
        found: Resources = {}
        for _ in range(self._random.randint(least, most)):
            makers = (self._rule, self._rule, self._route, self._route, self._address)
            found |= self._random.choice((*makers, self._neighbour, self._link))()
        return found

    def both(self, ground: Resources) -> tuple[Resources, Resources]:
        """Before a change, and after it."""
        before = ground | self._some(0, 2)
        kept = {name: spec for name, spec in before.items() if self._random.random() < 0.8}
        return before, LINKS | kept | self._some(1, 3)

    def _number(self) -> int:
        return self._random.randint(0, 3)

    def _rule(self) -> Resources:
        number = self._number()
        selector, end = self.one_of(*SELECTORS), self.one_of(*ENDS)
        priority = (10, 100, 500, 32765)[number]
        rule = {f"RoutingRule/r{number}": f"{{priority: {priority}, {selector}, {end}}}"}
        return rule | self._route(end) if end.startswith("table") else rule

    def _route(self, table: str = "") -> Resources:
        destination, way = self.one_of(*DESTINATIONS), self.one_of(*WAYS)
        table = table or self.one_of("table: 254", "table: 100", "table: 101")
        metric = self.one_of("0", "0", "50")
        name = f"IPv4Route/r{self._number()}"
        return {name: f"{{destination: {destination}, {way}, {table}, metric: {metric}}}"}

    def _address(self) -> Resources:
        return {f"IPv4StaticAddress/a{self._number()}": self.one_of(*ADDRESSES)}

    def _neighbour(self) -> Resources:
        mac = self.one_of(self._mac, "02:00:00:00:00:77")
        return {"Neighbour/n": f'{{interface: wan, address: {ISP}, mac: "{mac}"}}'}

    def _link(self) -> Resources:
        name = self.one_of("lan", "lan", "wan")
        end = self.one_of("adminUp: false", "adminUp: true", "mtu: 1400")
        return {f"Interface/{name}": f"{{ifname: {name}0, {end}}}"}


class Router:
    def __init__(self, root: Path) -> None:
        self._paths = Paths(root)

    def apply(
        self, resources: Resources, session: Session | None = None
    ) -> tuple[Plan, Loss | None]:
        """What was done, and what was said of a session before."""
        router, _ = load(document(resources))
        desired = compile_router(router, links_of_gateways(router))
        said: list[tuple[Plan, Loss | None]] = []
        with (
            Ledger.open(self._paths, command="test") as ledger,
            drivers.of_machine(self._paths, TAG) as host,
        ):
            policy = Policy(host.epoch, allow_mass_delete=True, allow_side_effects=True)
            work = Pass(desired, host, ledger, policy)

            def approve(plan: Plan) -> None:
                found = None
                if session is not None:
                    came_in = operators.operator(session.ssh)
                    assert came_in is not None
                    found = operators.loss(plan, came_in, {})
                said.append((plan, found))
                work.generation = ledger.begin_generation(router.files)

            journal.record(ledger, work.run(approve), work.generation)
        return said[0]


def compare(street: Scene, router: Router, number: int, mac: str) -> str:
    """One case, every third over IPv6. What was said of it; "" where it came to nothing."""
    dice = Dice(number, mac)
    version = 4 if number % 3 else 6
    local, remote = (
        in_family(version, one) for one in (dice.one_of(WAN, OWN), dice.one_of(BEHIND, ISP))
    )
    own = {"IPv4StaticAddress/own": f"{{interface: wan, address: {OWN}/24}}"}
    before, after = (
        {
            name.replace("IPv4", f"IPv{version}"): in_family(version, spec)
            for name, spec in said.items()
        }
        for said in dice.both(LINKS | own)
    )
    try:
        router.apply(before)
        load(document(after))
    except ConfigError:
        return ""  # they do not go together
    with suppress(OSError), street.session(remote, local, wait=0.3) as session:
        plan, loss = router.apply(after, session)
        doing = [f"{one.verb} {one.subject}" for one in plan.changes]
        about = f"case {number}: {session.ssh}\n{before}\n{after}\n{doing}\n{loss}"
        if loss is None:
            assert session.passes(), f"nothing was said, and nothing passes: {about}"
            return "unharmed" if doing else ""
        if loss.certain:
            assert session.is_cut(), f"said to be cut, and it passes: {about}"
            return "cut"
        return "another way, which works" if session.passes(0.3) else "another way"
    return ""


@pytest.fixture
def memory() -> Iterator[Path]:
    """A root where fsync costs nothing."""
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 (as said)
    with TemporaryDirectory(dir=folder) as made:
        yield Path(made)


def run(netns: Namespace, root: Path, numbers: range) -> Counter[str]:
    found: Counter[str] = Counter()
    with scene(netns) as street:
        router = Router(root)
        with street.far.inside() as far:
            mac = far.ip_json("link show dev isp0")[0]["address"]
        for number in numbers:
            found[compare(street, router, number, mac)] += 1
            router.apply(LINKS)
            street.restore()
    return found


def test_what_is_said_is_what_happens(netns: Namespace, memory: Path) -> None:
    found = run(netns, memory, range(60))
    assert min(found["unharmed"], found["cut"]) >= 10, found
    assert found["another way"], found


@pytest.mark.soak
def test_what_is_said_is_what_happens_for_long(netns: Namespace, memory: Path) -> None:
    run(netns, memory, range(1_000, 3_000))
