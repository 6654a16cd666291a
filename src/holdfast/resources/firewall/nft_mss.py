"""Table `inet holdfast_mss`: TCP handshakes agree on segments that fit.

The kernel lowers the option of a handshake and never raises it, so where several policies look at
one pair of links, the smallest counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from holdfast.engine.intent import Intent
from holdfast.engine.kinds.nft import nft_table
from holdfast.resources import nft_text
from holdfast.resources.firewall.path_mtu_policy import PathMTUPolicy, effective_mtu
from holdfast.resources.nft_text import quoted
from holdfast.resources.resource import Declared, Resource
from holdfast.resources.site import Site

ORDER = 50  # among combiners

FAMILY, NAME = "inet", "holdfast_mss"
# IP and TCP headers without options; and what every host has to take.
_HEADERS = {"ipv4": 40, "ipv6": 60}
_LEAST = {"ipv4": 536, "ipv6": 1220}


def combine(site: Site) -> Iterator[Declared]:
    policies = [each for each in site.of(PathMTUPolicy) if each.spec.tcp_mss_clamp.enabled]
    if policies:
        table = nft_table(FAMILY, NAME, body(policies, site))
        for policy in policies:
            yield policy, Intent(policy.id, table, policy.place)


def mss(mtu: int, family: str) -> int:
    return max(mtu - _HEADERS[family], _LEAST[family])


def body(policies: Iterable[Resource], site: Site) -> str:
    pairs: dict[tuple[str, int], set[str]] = defaultdict(set)
    for policy in policies:
        spec = policy.spec
        mtu = effective_mtu(policy, site)
        inside = quoted(site.ifname(spec.from_interface))
        for family in spec.tcp_mss_clamp.families:
            for name in spec.to_interfaces:
                outside = quoted(site.ifname(name))
                # The SYN says what one end takes, the SYN-ACK what the other does.
                pairs[family, mss(mtu, family)] |= {
                    f"{inside} . {outside}",
                    f"{outside} . {inside}",
                }
    sets: list[str] = []
    rules: list[str] = []
    for (family, size), elements in sorted(pairs.items()):
        sets.append(nft_text.named_set(f"{family}_{size}", "ifname . ifname", elements))
        rules.append(
            f"meta nfproto {family} iifname . oifname @{family}_{size}"
            f" tcp flags syn / syn,rst tcp option maxseg size set {size}"
        )
    hook = "filter hook forward priority mangle"
    return nft_text.body((*sets, nft_text.chain("forward", hook, rules)))
