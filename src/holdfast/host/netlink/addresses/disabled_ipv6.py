"""What others lose when IPv6 is switched off by `net.ipv6.conf.LINK.disable_ipv6`: the addresses,
routes and neighbours of that link, or of all links. Nexthop objects and the routes over them stay,
as do routes that have legs over other links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.engine.artifact import Key
from holdfast.engine.claim import Claim
from holdfast.host.netlink import tags
from holdfast.host.netlink.links import link_losses
from holdfast.host.netlink.links.link_losses import LinkLosses
from holdfast.host.netlink.socket import NetlinkSocket

# As a path below /proc/sys.
_SETTING = re.compile("net/ipv6/conf/([^/]+)/disable_ipv6")


@dataclass(frozen=True, slots=True)
class DisabledIPv6:
    sock: NetlinkSocket
    tag: int

    def lost(self, setting: Path, value: str, claims: Mapping[Key, Claim]) -> list[str]:
        """What others would lose if a kernel setting got this value."""
        found = _SETTING.fullmatch(str(setting))
        if found is None or value.strip() == "0":
            return []
        links = link_losses.read_links(self.sock)
        untagged = tags.untagged(claims, self.tag)
        losses = LinkLosses(self.sock, links, self.tag, lambda key: key in untagged)
        names = links if found[1] == "all" else {found[1]} & links.keys()
        return losses.of_disabled_ipv6(names)
