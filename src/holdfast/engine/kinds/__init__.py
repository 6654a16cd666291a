"""Every artifact kind, declared once. Drivers observe and apply them; resources emit them."""

from holdfast.engine.artifact import ArtifactKind
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.bfd import BFD_PEER, BFD_PROFILE
from holdfast.engine.kinds.bgp_filter import BGP_FILTER
from holdfast.engine.kinds.bgp_instance import BGP_INSTANCE
from holdfast.engine.kinds.bgp_network import BGP_AGGREGATE, BGP_NETWORK
from holdfast.engine.kinds.bgp_peer import BGP_PEER, BGP_PEER_GROUP
from holdfast.engine.kinds.block import BLOCK
from holdfast.engine.kinds.dropin import DROPIN
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.hostname import HOSTNAME
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.neighbour import NEIGHBOUR
from holdfast.engine.kinds.nft import NFT
from holdfast.engine.kinds.ospf import OSPF_INSTANCE, OSPF_INTERFACE, OSPF_PREFIX
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.engine.kinds.service import SERVICE
from holdfast.engine.kinds.sysctl import SYSCTL
from holdfast.engine.kinds.unit import UNIT
from holdfast.engine.kinds.wireguard import WIREGUARD

KINDS: dict[str, ArtifactKind] = {
    kind.name: kind
    for kind in (
        LINK, WIREGUARD, SYSCTL, HOSTNAME, FILE, DROPIN, BLOCK, ADDRESS, NEIGHBOUR, ROUTE, RULE,
        NFT, UNIT, SERVICE, BGP_FILTER, BFD_PROFILE, BGP_INSTANCE, BGP_PEER_GROUP, BGP_PEER,
        BGP_NETWORK, BGP_AGGREGATE, BFD_PEER, OSPF_INSTANCE, OSPF_INTERFACE, OSPF_PREFIX,
    )
}  # fmt: skip
