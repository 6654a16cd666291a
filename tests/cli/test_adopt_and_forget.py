"""Taking over and letting go: only the ledger changes."""

from __future__ import annotations

from holdfast.engine.claim import Claim
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.cli.conftest import WAN, WAN_ADDRESS, Holdfast, route
from tests.namespace import Namespace

BRIDGE = ("Interface", "lan", "{ifname: lan0, type: bridge, adminUp: true}")


def _claims(holdfast: Holdfast) -> dict[str, Claim]:
    with Ledger.read(Paths(holdfast.root)) as ledger:
        return {str(key): claim for key, claim in ledger.claims().items()}


def _made_by_hand(wan: Namespace) -> None:
    wan.ip("link set wan0 up")
    wan.ip("addr add 192.0.2.1/24 dev wan0")
    wan.ip("link add lan0 type bridge")
    wan.ip("link set lan0 up")
    wan.ip("route add 10.1.0.0/16 via 192.0.2.254 proto static")


def test_what_exists_as_declared_is_adopted_and_then_ours(
    holdfast: Holdfast, wan: Namespace
) -> None:
    _made_by_hand(wan)
    holdfast.declare(WAN, WAN_ADDRESS, BRIDGE, route("a", "10.1.0.0/16"))
    found = holdfast.ok("adopt", "--candidates", "router.yaml", "-o", "json").json
    names = [entry["artifact"]["name"] for entry in found["adoption_candidates"]]
    assert sorted(names) == ["10.1.0.0/16", "192.0.2.1/24 dev wan0", "lan0", "wan0"]
    assert all(entry["adoptable"] for entry in found["adoption_candidates"])
    assert not _claims(holdfast)
    before = wan.ip("-4 -o addr show"), wan.ip("route show")
    done = holdfast.ok("adopt", "--apply", "router.yaml")
    assert "Adopted: 4 artifacts; the host was not touched." in done.out
    assert (wan.ip("-4 -o addr show"), wan.ip("route show")) == before
    claims = _claims(holdfast)
    assert {claim.provenance for claim in claims.values()} == {"adopted"}
    assert claims["route 10.1.0.0/16"].fields["protocol"] == 4
    assert claims["link lan0"].fields["ifindex"]
    plan = holdfast.ok("plan", "router.yaml", "--detailed-exitcode")
    assert plan.out == "Plan: nothing to do; 4 artifacts as declared.\n"
    holdfast.ok("apply", "router.yaml", "--yes")
    assert _claims(holdfast) == claims
    assert (wan.ip("-4 -o addr show"), wan.ip("route show")) == before
    assert "Nothing to adopt" in holdfast.ok("adopt", "--apply", "router.yaml").out


def test_an_adopted_route_is_cleaned_up_like_any_of_ours(
    holdfast: Holdfast, wan: Namespace
) -> None:
    _made_by_hand(wan)
    holdfast.declare(WAN, WAN_ADDRESS, BRIDGE, route("a", "10.1.0.0/16"))
    holdfast.ok("adopt", "--apply", "router.yaml")
    holdfast.declare(WAN, WAN_ADDRESS, BRIDGE)
    done = holdfast.ok("apply", "router.yaml", "--yes")
    assert done.out == "Applied: 1 deleted.\nConverged: 3 artifacts as declared.\n"
    assert not wan.ip_json("route show 10.1.0.0/16")
    assert "route 10.1.0.0/16" not in _claims(holdfast)


def test_one_drifted_candidate_stops_them_all(holdfast: Holdfast, wan: Namespace) -> None:
    _made_by_hand(wan)
    holdfast.declare(WAN, WAN_ADDRESS, BRIDGE, route("a", "10.1.0.0/16", "192.0.2.253"))
    looked = holdfast.ok("adopt", "--candidates", "router.yaml")
    assert "4 candidates, 1 not as declared." in looked.out
    done = holdfast.run("adopt", "--apply", "router.yaml")
    assert done.code == 4
    assert "nexthops  via 192.0.2.254 dev wan0 → via 192.0.2.253 dev wan0" in done.out
    assert "lan0" not in done.out, "only what differs is shown"
    assert "1 of 4 candidates differ" in done.err
    assert not _claims(holdfast)


def test_adopt_needs_one_of_its_options(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN)
    assert holdfast.run("adopt", "router.yaml").code == 64
    assert holdfast.run("adopt", "--candidates", "--apply", "router.yaml").code == 64
    assert wan.ip_json("link show dev wan0")


def test_forget_drops_the_claim_and_touches_nothing(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS, BRIDGE)
    holdfast.ok("apply", "router.yaml", "--yes")
    before = wan.ip("-4 -o addr show")
    asked = holdfast.run("forget", "lan0")
    assert asked.code == 4
    assert "add --yes" in asked.err
    assert "link lan0" in _claims(holdfast)
    done = holdfast.ok("forget", "lan0", "--yes")
    assert "· link lan0 (Interface/lan)" in done.out
    assert "kernel tag" not in done.out
    assert "link lan0" not in _claims(holdfast)
    assert wan.ip("-4 -o addr show") == before


def test_forget_by_resource_says_what_a_tag_means(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.declare(WAN, WAN_ADDRESS)
    holdfast.ok("apply", "router.yaml", "--yes")
    done = holdfast.ok("forget", "IPv4StaticAddress/wan", "--yes")
    assert "address 192.0.2.1/24 dev wan0 still carries the kernel tag" in done.out
    assert wan.ip_json("addr show dev wan0")[0]["addr_info"]


def test_forgetting_what_is_not_claimed_is_an_error_and_forgets_nothing(
    holdfast: Holdfast, wan: Namespace
) -> None:
    holdfast.declare(WAN, BRIDGE)
    holdfast.ok("apply", "router.yaml", "--yes")
    done = holdfast.run("forget", "lan0", "nothing0", "--yes")
    assert done.code == 1
    assert "no claim is on nothing0" in done.err
    assert "link lan0" in _claims(holdfast)
    assert wan.ip_json("link show dev lan0")
