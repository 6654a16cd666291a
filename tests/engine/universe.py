"""A small universe for random tests: few identities, so that everything meets everything."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.engine.artifact import Artifact, Key, Value
from holdfast.engine.intent import Action, BulkIntent, Desired, Intent, Waiting
from holdfast.engine.kinds import route
from holdfast.engine.kinds.route import Nexthop, RouteTemplate
from tests.engine.memory_host import TAGGED, MemoryHost, Route
from tests.engine.memory_routes import pack_prefix

LINKS = ("br0", "br1")
PREFIXES = tuple(pack_prefix(f"10.{n}.0.0/16") for n in range(4))

_link_fields: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {"type": st.sampled_from(["bridge", "dummy"])}, optional={"mtu": st.sampled_from([1500, 9000])}
)
_address_fields: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {"prefix_length": st.sampled_from([48, 64]), "scope": st.sampled_from(["global", "link"])}
)
_file_fields = st.fixed_dictionaries(
    {"sha256": st.sampled_from(["aa", "bb"]), "mode": st.just("0644")}
)
_mac_fields = st.fixed_dictionaries({"mac": st.sampled_from(["02::1", "02::2"])})


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    kind = draw(st.sampled_from(["link", "address", "neighbour", "rule", "file", "sysctl"]))
    number = draw(st.integers(0, 1))
    match kind:
        case "link":
            return Artifact(Key(kind, LINKS[number]), draw(_link_fields))
        case "address":
            return Artifact(Key(kind, f"2001:db8::1 dev {LINKS[number]}"), draw(_address_fields))
        case "neighbour":
            return Artifact(Key(kind, f"192.0.2.9 dev {LINKS[number]}"), draw(_mac_fields))
        case "rule":
            return Artifact(Key(kind, f"{number}: from all lookup 100"), {"table": 100})
        case "file":
            return Artifact(Key(kind, f"/etc/{number}"), draw(_file_fields))
        case _:
            return Artifact(Key(kind, f"net.{number}"), {"value": draw(st.sampled_from("01"))})


def _requires(key: Key) -> tuple[Key, ...]:
    if key.kind in ("address", "neighbour"):
        return (Key("link", key.name.rpartition(" ")[2]),)
    return ()


templates = st.builds(
    lambda metric, dev, mtu: route.template(
        4, metric=metric, nexthops=(Nexthop(dev=dev),), mtu=mtu
    ),
    st.sampled_from([0, 100]),
    st.sampled_from(LINKS),
    st.sampled_from([0, 1400]),
)


def _bulk(number: int, shared: RouteTemplate, keys: set[bytes]) -> BulkIntent:
    needed = tuple(Key("link", nexthop.dev) for nexthop in shared.nexthops)
    return BulkIntent(f"RouteList/{number}", route.batch(shared, sorted(keys)), "", needed)


@st.composite
def desired(draw: st.DrawFn, *, contradicting: bool = True) -> Desired:
    chosen = draw(st.lists(artifacts(), max_size=8, unique_by=lambda one: one.key))
    actions = st.sampled_from([Action.ENSURE, Action.ENSURE, Action.ENSURE, Action.DELETE])
    intents: list[Intent | BulkIntent] = [
        Intent(
            f"{one.key.kind}/{number}",
            one,
            f"router.yaml:{number}",
            draw(actions) if one.key.kind != "sysctl" else Action.ENSURE,
            _requires(one.key),
            revert=draw(st.booleans()),
        )
        for number, one in enumerate(chosen)
    ]
    # Some may contradict each other: they share a metric and a prefix, and not the rest.
    alike = None if contradicting else lambda one: one.metric
    batches = draw(st.lists(templates, max_size=3, unique_by=alike))
    keys = st.sets(st.sampled_from(PREFIXES), min_size=1)
    bulk = (_bulk(number, shared, draw(keys)) for number, shared in enumerate(batches))
    return Desired((*intents, *bulk))


@st.composite
def waiting(draw: st.DrawFn, wanted: Desired) -> Desired:
    """The same, but that some of the resources wait for a fact."""
    declared = [
        one for one in wanted.intents if isinstance(one, BulkIntent) or one.action is Action.ENSURE
    ]
    chosen = [one for one in declared if draw(st.booleans())]
    return Desired(
        tuple(one for one in wanted.intents if one not in chosen),
        tuple(
            Waiting(
                one.owner,
                one.origin,
                "waits for a fact",
                groups=frozenset({route.in_table(one.batch.template.table)})
                if isinstance(one, BulkIntent)
                else frozenset(),
            )
            for one in chosen
        ),
    )


@st.composite
def hosts(draw: st.DrawFn) -> MemoryHost:
    """A host with what others made on it."""
    host = MemoryHost()
    for one in draw(st.lists(artifacts(), max_size=5, unique_by=lambda one: one.key)):
        host.put(one.key, one.fields, 4 if one.key.kind in TAGGED else 0)
    for number in range(2):
        if Key("sysctl", f"net.{number}") not in host.objects:
            host.put(Key("sysctl", f"net.{number}"), {"value": "0"})
    keys = st.sampled_from(PREFIXES)
    host.routes = [
        Route(shared, key, 4)
        for shared, key in draw(st.lists(st.tuples(templates, keys), max_size=3, unique=True))
    ]
    return host
