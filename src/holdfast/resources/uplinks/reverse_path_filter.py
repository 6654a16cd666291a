"""IPv4ReversePathFilter: packets whose source would not be reached by the link they came in on."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.engine.artifact import Key
from holdfast.engine.intent import Intent
from holdfast.engine.kinds.sysctl import SYSCTL, sysctl
from holdfast.resources.resource import Fault, Kind, Reach, Resource, Setting, nothing_against
from holdfast.resources.site import Site
from holdfast.resources.spec.shape import Spec, choice, link_reference, optional, required
from holdfast.resources.spec.values import EVERYTHING

MODES = {"disabled": 0, "strict": 1, "loose": 2}


class IPv4ReversePathFilter(Spec):
    target: str = required(
        choice("all", "default", "interface"),
        "`interface`: one link; `default`: links that come later; `all`: every link, as the kernel"
        " takes the higher of this and a link's own: loose (2) over strict (1) over disabled (0)",
    )
    interface: str | None = optional(link_reference(), "for `target: interface`")
    mode: str = required(
        choice(*MODES),
        "`strict`: by that very link; `loose`: by any; `disabled`: do not ask. Where packets leave"
        " by marks, `strict` drops their answers",
    )


def check(resource: Resource) -> Iterator[Fault]:
    spec: IPv4ReversePathFilter = resource.spec
    if spec.target == "interface" and spec.interface is None:
        yield Fault(("interface",), "is missing; `target: interface` needs it")
    if spec.target != "interface" and spec.interface is not None:
        yield Fault(("interface",), f"has no meaning with `target: {spec.target}`")


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: IPv4ReversePathFilter = resource.spec
    name = spec.target
    requires: tuple[Key, ...] = ()
    if spec.interface is not None:
        ifname = site.ifname(spec.interface)
        requires = site.link_key(ifname)
        name = ifname.replace(".", "/")  # sysctl(8): a dot within a name, as in eth0.10
    artifact = sysctl(f"net.ipv4.conf.{name}.rp_filter", str(MODES[spec.mode]))
    yield Intent(resource.id, artifact, resource.place, requires=requires)


def reaches(resource: Resource) -> Iterator[Reach]:
    """Without an interface it is for packets of all of them."""
    if resource.spec.target != "interface":
        yield Reach(("target",), EVERYTHING[4])


def settings(resource: Resource) -> Iterator[Setting]:
    spec: IPv4ReversePathFilter = resource.spec
    if spec.interface is not None:
        yield Setting(("interface",), "net.ipv4.conf.{}.rp_filter", spec.interface)
    else:
        yield Setting(("target",), f"net.ipv4.conf.{spec.target}.rp_filter")


KINDS = (
    Kind(
        IPv4ReversePathFilter,
        "Whether packets are dropped whose source is not reached by the way they came.",
        (SYSCTL.name,),
        "target: interface\ninterface: wan\nmode: loose\n",
        intents,
        check,
        open_to_others=nothing_against,
        reaches=reaches,
        settings=settings,
        cross_checks="uplinks.policy_checks",
    ),
)
