"""Every artifact kind, declared once. Drivers observe and apply them; resources emit them."""

from holdfast.engine.artifact import ArtifactKind
from holdfast.engine.kinds.address import ADDRESS
from holdfast.engine.kinds.file import FILE
from holdfast.engine.kinds.hostname import HOSTNAME
from holdfast.engine.kinds.link import LINK
from holdfast.engine.kinds.neighbour import NEIGHBOUR
from holdfast.engine.kinds.route import ROUTE
from holdfast.engine.kinds.rule import RULE
from holdfast.engine.kinds.sysctl import SYSCTL

KINDS: dict[str, ArtifactKind] = {
    kind.name: kind for kind in (LINK, SYSCTL, HOSTNAME, FILE, ADDRESS, NEIGHBOUR, ROUTE, RULE)
}
