"""BGP from router.yaml to the neighbour, and back to nothing."""

from __future__ import annotations

from tests.cli.confirm_scene import until, waiting
from tests.frr.ground import wait_until
from tests.routing.scene import FILTER, INSTANCE, NEIGHBOUR, PEER, PREFIXES, ROUTING, SECRET, Scene

BY_HAND = """\
router bgp 65001
 neighbor 192.0.2.9 remote-as 65009
 neighbor 192.0.2.9 description by hand
 address-family ipv4 unicast
  network 198.51.100.0/24
 exit-address-family
exit
ip prefix-list BY-HAND seq 5 permit 10.0.0.0/8
route-map BY-HAND permit 10
 match ip address prefix-list BY-HAND
exit
"""


def test_prefixes_are_seen_at_the_neighbour(scene: Scene) -> None:
    scene.apply(*ROUTING)
    scene.wait_for_routes(2)
    told = scene.told("203.0.113.0/24")
    assert "BGP.med: 0" in told
    assert "(65001,100)" in told
    scene.nothing_to_do()


def test_what_is_no_longer_declared_goes_and_nothing_else(scene: Scene) -> None:
    scene.apply(INSTANCE)
    scene.frr.configure(BY_HAND)
    before = scene.bgp_lines()
    scene.apply(*ROUTING)
    scene.wait_for_routes(3)  # that by hand is told, too
    scene.apply(INSTANCE, PEER, FILTER)
    wait_until("withdrawn", lambda: scene.bird.count("up") == 1)
    scene.apply(INSTANCE)
    assert scene.bgp_lines() == before
    # The instance is not ours alone.
    scene.declare()
    done = scene.holdfast.run("apply", "router.yaml", "--yes", "--allow-mass-delete")
    assert "neighbor 192.0.2.9" in done.out
    assert scene.bgp_lines() == before
    scene.frr.configure("router bgp 65001\nno neighbor 192.0.2.9\nno network 198.51.100.0/24\n")
    scene.apply()
    assert not [line for line in scene.bgp_lines() if "65001" in line or "bgp" in line]
    assert "route-map BY-HAND permit 10" in scene.bgp_lines()


def test_prefixes_go_with_the_last_declaration(scene: Scene) -> None:
    """A network has no claim: the memory alone has the driver asked."""
    scene.frr.configure("router bgp 65001\nno bgp ebgp-requires-policy\n")
    before = scene.bgp_lines()
    scene.apply(PREFIXES)
    assert "network 203.0.113.0/24" in scene.config()
    scene.apply()
    assert scene.bgp_lines() == before


def test_lines_of_others_are_named_and_live_on(scene: Scene) -> None:
    """Somebody has a neighbour of this address, and a prefix that is declared, too."""
    scene.apply(INSTANCE)
    scene.frr.configure(
        "router bgp 65001\n neighbor 192.0.2.2 remote-as 65099\n"
        " address-family ipv4 unicast\n  network 203.0.113.0/24\n"
    )
    before = scene.bgp_lines()
    scene.declare(*ROUTING)
    done = scene.holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 1, done.out
    assert "bgp_peer 192.0.2.2" in done.out
    assert "bgp_network 203.0.113.0/24" in done.out
    assert "frr.conf or vtysh" in done.out
    after = scene.bgp_lines()
    assert [line for line in before if line not in after] == []
    assert any("network 203.0.114.0/24" in line for line in after)


def test_an_instance_of_others_is_not_touched(scene: Scene) -> None:
    scene.frr.configure("router bgp 65001\n bgp router-id 192.0.2.7\n")
    before = scene.bgp_lines()
    scene.declare(*ROUTING)
    done = scene.holdfast.run("apply", "router.yaml", "--yes")
    assert "bgp_instance default" in done.out
    assert "waits for bgp_instance default" in done.out
    assert [line for line in before if line not in scene.bgp_lines()] == []
    assert "neighbor" not in scene.config()


def test_what_is_as_declared_can_be_adopted(scene: Scene) -> None:
    scene.apply(*ROUTING)
    before = scene.bgp_lines()
    scene.lose_the_ledger()
    plan = scene.holdfast.ok("plan", "router.yaml")
    assert "as declared, not ours (frr.conf or vtysh)" in plan.out
    scene.holdfast.ok("adopt", "--apply", "router.yaml")
    scene.nothing_to_do()
    assert scene.bgp_lines() == before
    scene.apply()
    assert not any("router bgp" in line for line in scene.bgp_lines())


def test_a_plan_shows_lines_of_frr_and_what_resets_a_session(scene: Scene) -> None:
    scene.declare(*ROUTING)
    plan = scene.holdfast.ok("plan", "router.yaml").out
    for line in (
        "router bgp 65001",
        "neighbor 192.0.2.2 remote-as 65002",
        "network 203.0.113.0/24 metric 0 community 65001:100",
        "route-map HF-from-upstream-v4-",
    ):
        assert line in plan
    scene.apply(*ROUTING)
    kind, name, spec = PEER
    calm = spec.replace("the provider", "another text")
    scene.declare(INSTANCE, FILTER, (kind, name, calm), PREFIXES)
    assert "resets" not in scene.holdfast.ok("plan", "router.yaml").out
    scene.declare(INSTANCE, FILTER, (kind, name, spec.replace("65002", "65003")), PREFIXES)
    assert "resets its session" in scene.holdfast.ok("plan", "router.yaml").out
    scene.declare(
        ("BGPInstance", "main", INSTANCE[2].replace("192.0.2.1", "192.0.2.8")), *ROUTING[1:]
    )
    assert "resets all its sessions" in scene.holdfast.ok("plan", "router.yaml").out


def test_passwords_are_nowhere(scene: Scene) -> None:
    scene.declare(*ROUTING)
    said = [
        scene.holdfast.ok("plan", "router.yaml").out,
        scene.holdfast.ok("plan", "router.yaml", "-o", "json").out,
        scene.holdfast.ok("apply", "router.yaml", "--yes", "-o", "json").out,
    ]
    assert SECRET in scene.config()
    scene.key.write_text(f"other-{SECRET}\n")
    said += [scene.holdfast.ok("plan", "router.yaml", "-o", form).out for form in ("table", "json")]
    assert "password" in said[-1]
    said.append(scene.holdfast.ok("apply", "router.yaml", "--yes").out)
    for words in (
        ("status", "router.yaml"), ("status", "router.yaml", "-o", "json"),
        ("events", "-o", "json"), ("explain", "BGPPeer/upstream", "router.yaml"),
    ):  # fmt: skip
        done = scene.holdfast.run(*words)
        said += [done.out, done.err]
    assert not [text for text in said if SECRET in text]
    left = [path for path in scene.holdfast.root.rglob("*") if path.is_file()]
    assert left
    assert not [path for path in left if SECRET.encode() in path.read_bytes()]


def test_a_trial_that_is_not_confirmed_is_taken_back(scene: Scene) -> None:
    scene.apply(INSTANCE, FILTER, PEER)
    scene.frr.configure(BY_HAND)
    before = scene.bgp_lines()
    kind, name, spec = PEER
    changed = spec.replace("the provider", "on trial").replace("maxPrefixes: 100", "maxPrefixes: 7")
    scene.declare(INSTANCE, (kind, name, changed), FILTER, PREFIXES)
    done = scene.holdfast.run("apply", "router.yaml", "--yes", "--confirm-within", "8s")
    assert done.code == 0, done.out + done.err
    assert any("on trial" in line for line in scene.bgp_lines())
    until(lambda: not waiting(scene.holdfast.root), "reverted at the deadline")
    assert scene.bgp_lines() == before
    # And one that takes the peer and its password away.
    scene.declare(INSTANCE)
    words = ("apply", "router.yaml", "--yes", "--allow-mass-delete", "--confirm-within", "8s")
    assert scene.holdfast.run(*words).code == 0
    assert "192.0.2.2" not in scene.config()
    until(lambda: not waiting(scene.holdfast.root), "reverted at the deadline")
    assert sorted(scene.bgp_lines()) == sorted(before)


def test_a_generation_is_rolled_back(scene: Scene) -> None:
    scene.apply(*ROUTING)
    before = scene.bgp_lines()
    scene.apply(INSTANCE, FILTER, PEER)
    assert scene.bgp_lines() != before
    scene.holdfast.ok("rollback", "--yes")
    assert scene.bgp_lines() == before


def test_cleanup_takes_all_of_ours(scene: Scene) -> None:
    before = scene.bgp_lines()
    scene.apply(*ROUTING)
    scene.declare()
    scene.holdfast.ok("cleanup", "router.yaml", "--yes")
    assert scene.bgp_lines() == before


def test_explain_and_status(scene: Scene) -> None:
    scene.apply(*ROUTING)
    explained = scene.holdfast.ok("explain", "peer", NEIGHBOUR, "router.yaml").out
    assert "BGPPeer/upstream" in explained
    explained = scene.holdfast.ok("explain", "network", "203.0.113.0/24", "router.yaml").out
    assert "BGPPrefix/own" in explained
    scene.wait_for_routes(2)
    status = scene.holdfast.ok("status", "router.yaml", "-o", "json").out
    assert "established since" in status
    assert '"BGPPeer/upstream"' in status


def test_without_frr_all_else_goes_on(scene: Scene) -> None:
    scene.apply(*ROUTING)
    scene.frr.kill("bgpd")
    wan = ("Interface", "wan", "{ifname: wan0, adminUp: true, mtu: 1400}")
    scene.declare(wan, INSTANCE, FILTER, PEER)
    done = scene.holdfast.run("apply", "router.yaml", "--yes")
    assert done.code == 1, done.out + done.err
    assert "bgpd of FRR" in done.out
    assert "is FRR running?" in done.out
    assert "mtu 1400" in scene.ip("link", "show", "wan0")
    (scene.frr.folder / "bgpd.vty").unlink()  # as where it never ran
    done = scene.holdfast.run("plan", "router.yaml")
    assert "systemctl restart frr" in done.out
    assert "Delete" not in done.out
