"""Protocol numbers: how the writers of routes, rules and neighbours sign what they write."""

from __future__ import annotations

# From the kernel's rtnetlink.h, iproute2's rt_protos and FRR's zebra.
NAMES = {
    1: "redirect", 2: "kernel", 3: "boot", 4: "static", 8: "gated", 9: "ra", 10: "mrt",
    11: "zebra", 12: "bird", 13: "dnrouted", 14: "xorp", 15: "ntk", 16: "dhcp", 17: "mrouted",
    18: "keepalived", 42: "babel", 84: "ovn", 99: "openr", 186: "bgp", 187: "isis", 188: "ospf",
    189: "rip", 191: "nhrp", 192: "eigrp", 193: "ldp", 194: "sharp", 195: "pbr",
    196: "zebra static", 197: "openfabric", 198: "srte",
}  # fmt: skip
