"""What the random interleavings found, as short as it can be told."""

from __future__ import annotations

import pytest

from tests.safety.desires import Declared, declare, desired
from tests.safety.router_in_process import RouterInProcess
from tests.safety.verdict import check

# + declares, - withdraws a kind, 4 and 6 are lines for `ip`; a pass and a look around follow
# every change of what is declared, and `pass`.
STORIES = {
    "a-link-of-ours-that-others-use-is-not-deleted": (
        "+link hf0 bridge", "4addr add 192.0.2.1/24 dev hf0", "+absent hf0",
    ),
    "a-link-of-ours-that-others-use-is-not-replaced": (
        "+link hf1 vxlan 10", "4addr add 192.0.2.1/24 dev hf1", "+link hf1 vxlan 11",
    ),
    "an-address-put-in-place-of-ours-is-theirs": (
        "+address 192.0.2.1/24 nic1 ", "4addr del 192.0.2.1/24 dev nic1",
        "4addr add 192.0.2.1/24 dev nic1", "pass", "-address",
    ),
    "a-neighbour-put-in-place-of-ours-is-theirs": (
        "+neighbour 192.0.2.9 nic1 02:00:00:00:00:01", "4neigh del 192.0.2.9 dev nic1",
        "4neigh add 192.0.2.9 dev nic1 lladdr 02:00:00:00:00:01", "pass", "-neighbour",
    ),
    "a-rule-beside-ours-is-theirs": (
        "+rule 4 100 7 1000", "4rule add priority 100 fwmark 7 table 1000 protocol 4",
        "4rule del priority 100 fwmark 7 table 1000 protocol 72", "pass", "-rule",
    ),
    "a-link-put-in-place-of-ours-is-theirs": (
        "+link hf0 bridge", "4link del hf0", "4link add hf0 type bridge", "4link set hf0 up",
        "pass", "+absent hf0",
    ),
    "their-leg-stays-when-ours-was-taken-from-beside-it": (
        "+routes 6 1000 0 one-source ::/0",
        "6route append ::/0 table 1000 proto 4 via 2001:db8:99::fd dev nic0", "pass",
        "6route del ::/0 table 1000 via 2001:db8:99::fe dev nic0", "pass",
    ),
    "a-leg-that-others-have-is-not-taken-from-them": (
        "+routes 6 254 0 nic1 2001:db8:a::/48",
        "6route append 2001:db8:a::/48 proto 4 via 2001:db8:99::fe dev nic0",
        "+routes 6 254 0 ecmp 2001:db8:a::/48 ::/0",
    ),
    "a-gateway-given-to-ours-in-front-of-its-like": (
        "+routes 4 1000 0 nic1 10.1.0.0/16",
        "4route append 10.1.0.0/16 table 1000 proto 4 dev nic1",
        "+routes 4 1000 0 near 10.1.0.0/16",
    ),
    "a-delete-refused-for-now-is-no-delete-for-ever": (
        "+link hf0 bridge", "4addr add 192.0.2.1/24 dev hf0", "+absent hf0", "-link",
        "4addr del 192.0.2.1/24 dev hf0", "+absent hf0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    world, declared = RouterInProcess(), Declared()
    try:
        for step in STORIES[story]:
            match step[0], step[1:]:
                case ("4" | "6") as version, line:
                    world.others(line, version=int(version))
                    continue
                case "+", line:
                    declare(declared, line)
                case "-", start:
                    for slot in [one for one in declared if str(one[0]) == start]:
                        del declared[slot]
            config = desired(declared)
            check(world, config, world.reconcile(config))
    finally:
        world.close()
