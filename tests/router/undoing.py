"""What people and other programs do by hand to an artifact of each kind."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from holdfast.engine.artifact import Artifact, Fields
from holdfast.engine.kinds import dropin
from holdfast.engine.kinds.bgp_instance import name_and_vrf
from holdfast.engine.kinds.bgp_peer import is_address
from holdfast.frr.vty import Vty
from holdfast.host.services.client import Client
from holdfast.paths import Paths

Undo = Callable[[Artifact, Paths], None]


def _run(*words: object) -> None:
    command = [word for part in words for word in str(part).split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def _version(text: object) -> str:
    return "-6" if ":" in str(text) else "-4"


def link_down(artifact: Artifact, _paths: Paths) -> None:
    _run("ip link set", artifact.key.name, "down")


def link_deleted(artifact: Artifact, _paths: Paths) -> None:
    _run("ip link del", artifact.key.name)


def peers_removed(artifact: Artifact, _paths: Paths) -> None:
    peers = artifact.fields["peers"]
    assert isinstance(peers, tuple)
    for peer in peers:
        _run("wg set", artifact.key.name, "peer", peer.partition(" ")[0], "remove")


def marked(artifact: Artifact, _paths: Paths) -> None:
    _run("wg set", artifact.key.name, "fwmark 0x77")


def set_otherwise(artifact: Artifact, _paths: Paths) -> None:
    """To a value that every setting of examples takes: they are switches and modes."""
    path = Path("/proc/sys", artifact.key.name.replace(".", "/"))
    path.write_text("0" if path.read_text().strip() != "0" else "1")


def renamed(_artifact: Artifact, _paths: Paths) -> None:
    socket.sethostname("by-hand")


def file_changed(artifact: Artifact, paths: Paths) -> None:
    with paths.under(artifact.key.name).open("a") as file:
        file.write("# by hand\n")


def file_opened_to_all(artifact: Artifact, paths: Paths) -> None:
    paths.under(artifact.key.name).chmod(0o666)


def file_deleted(artifact: Artifact, paths: Paths) -> None:
    paths.under(artifact.key.name).unlink()


def dropin_changed(artifact: Artifact, paths: Paths) -> None:
    with paths.under(dropin.parts(artifact.key)[0]).open("a") as file:
        file.write("# by hand\n")


def dropin_deleted(artifact: Artifact, paths: Paths) -> None:
    paths.under(dropin.parts(artifact.key)[0]).unlink()


def block_changed(artifact: Artifact, paths: Paths) -> None:
    place = paths.under(artifact.key.name.partition(" ")[0])
    content = place.read_bytes()
    assert artifact.payload in content
    place.write_bytes(content.replace(artifact.payload, artifact.payload + b"# by hand\n"))


def block_taken_out(artifact: Artifact, paths: Paths) -> None:
    place = paths.under(artifact.key.name.partition(" ")[0])
    lines = place.read_bytes().splitlines(keepends=True)
    own = artifact.payload.splitlines(keepends=True)
    at = lines.index(own[0])  # between the marks
    place.write_bytes(b"".join(lines[: at - 1] + lines[at + len(own) + 1 :]))


def address_deleted(artifact: Artifact, _paths: Paths) -> None:
    fields = artifact.fields
    where = f"{fields['address']}/{fields['prefix_length']} dev {fields['dev']}"
    _run("ip addr del", where)


def neighbour_deleted(artifact: Artifact, _paths: Paths) -> None:
    _run("ip neigh del", artifact.fields["address"], "dev", artifact.fields["dev"])


def neighbour_changed(artifact: Artifact, _paths: Paths) -> None:
    """Whoever changes one keeps its writer; one that is added again has another."""
    where = f"{artifact.fields['address']} dev {artifact.fields['dev']}"
    _run("ip neigh change", where, "lladdr 02:00:00:00:00:99 nud permanent protocol 72")


def route_deleted(artifact: Artifact, _paths: Paths) -> None:
    fields = artifact.fields
    kind = "" if fields["type"] == "unicast" else fields["type"]
    words = f"{fields['destination']} table {fields['table']}"
    if fields["metric"]:
        words += f" metric {fields['metric']}"
    _run("ip", _version(fields["destination"]), "route del", kind, words, "proto 72")


def rule_deleted(artifact: Artifact, _paths: Paths) -> None:
    _run("ip", f"-{artifact.fields['family']}", "rule del", _selectors(artifact.fields))


def _selectors(fields: Fields) -> str:
    words = f"priority {fields['priority']} table {fields['table']}"
    if fields["fwmark"] is not None:
        words += f" fwmark {fields['fwmark']}"
    for name, word in (("source", "from"), ("destination", "to"), ("iif", "iif"), ("oif", "oif")):
        if fields[name]:
            words += f" {word} {fields[name]}"
    suppress = fields.get("suppress")
    return words if suppress is None else f"{words} suppress_prefixlength {suppress}"


def table_flushed(artifact: Artifact, _paths: Paths) -> None:
    _run("nft flush table", artifact.key.name)


def rule_added(artifact: Artifact, _paths: Paths) -> None:
    listed = subprocess.run(
        ["nft", "-j", "list", "table", *artifact.key.name.split()], capture_output=True, check=True
    )
    chains = [
        one["chain"]["name"] for one in json.loads(listed.stdout)["nftables"] if "chain" in one
    ]
    _run("nft add rule", artifact.key.name, chains[0], "meta mark 0x77 counter")


def table_deleted(artifact: Artifact, _paths: Paths) -> None:
    _run("nft delete table", artifact.key.name)


def service_removed(artifact: Artifact, paths: Paths) -> None:
    Client(paths.root).remove(artifact.key.name, 10)


def _typed(paths: Paths, *lines: str, daemon: str = "bgpd") -> None:
    """As somebody types it into vtysh."""
    vty = Vty(paths.frr / f"{daemon}.vty")
    answers = vty.ask_all(["configure terminal", *lines, "end"])
    vty.close()
    assert not [answer for answer in answers if answer.failed], answers


def _router(artifact: Artifact, paths: Paths) -> str:
    """The line of the instance that something is in."""
    vty = Vty(paths.frr / "bgpd.vty")
    text = vty.show("write terminal")
    vty.close()
    vrf = artifact.key.name if artifact.key.kind == "bgp_instance" else ""
    vrf = vrf or name_and_vrf(artifact.key.name)[1]
    heads = [line for line in text.splitlines() if line.startswith("router bgp ")]
    return next(head for head in heads if head.endswith(f" vrf {vrf}") or vrf == "default")


def instance_removed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, f"no {_router(artifact, paths)}")


def instance_changed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, _router(artifact, paths), "bgp router-id 198.51.100.77")


def bgp_neighbour_removed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, _router(artifact, paths), f"no neighbor {_neighbour_name(artifact)}")


def bgp_neighbour_changed(artifact: Artifact, paths: Paths) -> None:
    name = name_and_vrf(artifact.key.name)[0]
    _typed(paths, _router(artifact, paths), f"neighbor {name} description by hand")


def _neighbour_name(artifact: Artifact) -> str:
    name = name_and_vrf(artifact.key.name)[0]
    if artifact.key.kind == "bgp_peer_group":
        return f"{name} peer-group"
    return name if is_address(name) else f"{name} interface"


def _family(artifact: Artifact) -> str:
    return f"address-family {'ipv6' if ':' in artifact.key.name else 'ipv4'} unicast"


def network_removed(artifact: Artifact, paths: Paths) -> None:
    prefix = name_and_vrf(artifact.key.name)[0]
    _typed(paths, _router(artifact, paths), _family(artifact), f"no network {prefix}")


def aggregate_removed(artifact: Artifact, paths: Paths) -> None:
    prefix = name_and_vrf(artifact.key.name)[0]
    _typed(paths, _router(artifact, paths), _family(artifact), f"no aggregate-address {prefix}")


def filter_removed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, f"no route-map {artifact.key.name}")


def filter_changed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, f"route-map {artifact.key.name} permit 65000")


def profile_removed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, "bfd", f"no profile {artifact.key.name}", daemon="bfdd")


def bfd_peer_removed(artifact: Artifact, paths: Paths) -> None:
    _typed(paths, "bfd", f"no peer {artifact.key.name}", daemon="bfdd")


def _ospf(artifact: Artifact) -> tuple[str, str, str]:
    """The daemon, and what its lines begin with in an instance and on an interface."""
    is_2 = artifact.key.name.startswith("v2")
    return ("ospfd", "ospf", "ip ospf") if is_2 else ("ospf6d", "ospf6", "ipv6 ospf6")


def ospf_instance_removed(artifact: Artifact, paths: Paths) -> None:
    daemon, word, _ = _ospf(artifact)
    _typed(paths, f"no router {word}", daemon=daemon)


def ospf_interface_changed(artifact: Artifact, paths: Paths) -> None:
    daemon, _, start = _ospf(artifact)
    link = artifact.key.name.partition(" ")[2]
    _typed(paths, f"interface {link}", f"{start} cost 77", daemon=daemon)


WAYS: dict[str, tuple[Undo, ...]] = {
    "link": (link_down, link_deleted),
    "wireguard": (peers_removed, marked),
    "sysctl": (set_otherwise,),
    "hostname": (renamed,),
    "file": (file_changed, file_opened_to_all, file_deleted),
    "dropin": (dropin_changed, dropin_deleted),
    "block": (block_changed, block_taken_out),
    "address": (address_deleted,),
    "neighbour": (neighbour_changed, neighbour_deleted),
    "route": (route_deleted,),
    "rule": (rule_deleted,),
    "nft": (table_flushed, rule_added, table_deleted),
    "service": (service_removed,),
    "bgp_instance": (instance_changed, instance_removed),
    "bgp_peer_group": (bgp_neighbour_changed, bgp_neighbour_removed),
    "bgp_peer": (bgp_neighbour_changed, bgp_neighbour_removed),
    "bgp_network": (network_removed,),
    "bgp_aggregate": (aggregate_removed,),
    "bgp_filter": (filter_changed, filter_removed),
    "bfd_profile": (profile_removed,),
    "bfd_peer": (bfd_peer_removed,),
    "ospf_instance": (ospf_instance_removed,),
    "ospf_interface": (ospf_interface_changed,),
}


def ways(artifact: Artifact) -> tuple[Undo, ...]:
    """A link that is not declared to be up may be down."""
    found = WAYS[artifact.key.kind]
    return tuple(way for way in found if way is not link_down or artifact.fields.get("up"))
