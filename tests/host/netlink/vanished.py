"""What really vanished when an address went, to hold predictions against."""

from __future__ import annotations

import re

from holdfast.engine.artifact import Artifact
from holdfast.host.netlink.addresses.driver import AddressDriver
from tests.host.netlink.drive import delete, error, losses, see
from tests.namespace import Namespace


def world(netns: Namespace, *, dead_legs: bool = True) -> set[str]:
    """Everything others made, one line each, in the words of a prediction.

    dead_legs: a leg that is dead until its link is back counts as lost.
    """
    lines = set()
    for line in netns.run("bridge", "fdb", "show").splitlines():
        if line.endswith(" static") or " extern_learn" in line:
            lines.add("forwarding entry " + line)
    for line in _multicast_entries(netns):
        if " permanent" in line:
            lines.add("multicast entry " + line.partition(" grp ")[2] + " " + line)
    for line in netns.ip("nexthop show").splitlines():
        lines.add("nexthop " + line.split()[1])
    for family in ("4", "6"):
        text = netns.ip(f"-{family} -N -o route show table all").replace("\\", "")
        for line in text.splitlines():
            if not dead_legs:
                line = re.sub(r" (dead|linkdown)\b", "", line)
            if not re.search(r"\bproto (2|72)\b", line):
                lines.add("route " + " ".join(line.split()))
        for line in netns.ip(f"-{family} -o addr show").splitlines():
            words = line.split()
            if "kernel" not in line and not words[3].startswith("fe80") and words[1] != "lo":
                lines.add(f"address {words[3]} dev {words[1]}")
        for line in netns.ip(f"-{family} neigh show nud all").splitlines():
            lasting = re.search("PERMANENT|NOARP|managed|extern_learn", line)
            if lasting and "proto 72" not in line and not re.search("33:33:|01:00:5e:", line):
                lines.add("neighbour " + re.split(" lladdr| managed", line)[0])
    return lines


def _multicast_entries(netns: Namespace) -> list[str]:
    """Before there is a bridge, a kernel that has those as a module knows nothing of them."""
    try:
        return netns.run("bridge", "mdb", "show").splitlines()
    except AssertionError as error:
        assert "Operation not supported" in str(error)
        return []


def gone_with(
    netns: Namespace, driver: AddressDriver, artifact: Artifact
) -> tuple[list[str], set[str]]:
    """Predict, check that the driver refuses where it predicts a loss, then delete by hand."""
    seen = see(driver)[artifact.key]
    foreseen = losses(driver).get(artifact.key, [])
    if foreseen:
        assert "would take what others made" in error(driver, delete(seen.artifact))
        assert artifact.key in see(driver)
    before = world(netns)
    address = f"{artifact.fields['address']}/{artifact.fields['prefix_length']}"
    netns.ip(f"addr del {address} dev {artifact.fields['dev']}")
    lost = before - world(netns) - {f"address {address} dev {artifact.fields['dev']}"}
    return sorted(foreseen), lost


def names(things: list[str] | set[str]) -> list[str]:
    """Kind, identity and table of each thing, so that a prediction and `ip` can be compared."""
    found = []
    for thing in things:
        thing = re.sub(r"^the (leg over \S+|preferred source|MTU \d+) of ", "", thing)
        words = re.sub("^(forwarding|multicast) entry", r"\1", thing).split()
        name = f"{words[0]} {words[1].removesuffix('/32')}"
        if words[0] == "address" and ":" in name:
            name = name.partition("/")[0]
        for word in ("table", "dev", "port", "vlan", "vid"):
            if word in words and (word == "table" or words[0] != "route"):
                name += f" {word.replace('vid', 'vlan')} {words[words.index(word) + 1]}"
        found.append(name)
    return sorted(found)


def foreign(netns: Namespace, *commands: str) -> None:
    netns.ip_batch(*sorted(commands, key=lambda one: one.startswith("-6")))
