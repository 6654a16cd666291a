"""What others have in the way of what is opened."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import DriverError
from holdfast.resources import registry
from holdfast.resources.facts import Facts
from holdfast.resources.resource import Resource


def barred(resources: Sequence[Resource], facts: Facts) -> dict[str, str]:
    """By ExposeService and FirewallPolicy; nothing where it cannot be found out, which the look at
    tables says."""
    if not registry.having(resources, lambda kind: kind.opens_ports):
        return {}
    from holdfast.host.nft.foreign_chains import read_foreign_chains  # few configurations need them
    from holdfast.resources.firewall import barred as judged
    from holdfast.resources.site import site_of

    try:
        chains = read_foreign_chains()
        return judged.barred(site_of(resources, facts), chains) if chains else {}
    except (DriverError, ValueError, LookupError, TypeError):
        return {}  # rules of others may be written as nobody has seen yet
