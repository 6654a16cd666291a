"""What other programs do, in the words of `ip`. Every line is well formed for the process it goes
to; the kernel may refuse it."""

from __future__ import annotations

import ipaddress

from hypothesis import strategies as st

from tests.safety.desires import (
    ADDRESSES,
    GATEWAYS,
    LINKS,
    MACS,
    METRICS,
    NEAR,
    NEIGHBOURS,
    PREFIXES,
    RULES,
    SOURCES,
    TABLES,
)
from tests.safety.snapshot import Item
from tests.safety.world import World

Commands = tuple[int, tuple[str, ...]]  # version, lines

# static, BGP, one that nobody has a name for, and none
PROTOCOLS = ("static", "bgp", "50")
_ADD = ("add", "append", "prepend", "replace", "change")


def _one(version: int, line: str) -> Commands:
    return version, (line,)


@st.composite
def routes(draw: st.DrawFn) -> Commands:
    version = draw(st.sampled_from([4, 6]))
    one, two = GATEWAYS[version]
    way = draw(
        st.sampled_from(
            [
                f"via {one} dev nic0",
                f"via {two} dev nic0",
                "dev nic1",
                "dev hf0",
                f"via {NEAR[version]} dev nic1 onlink",
                f"nexthop via {one} dev nic0 weight 2 nexthop via {two} dev nic0",
                f"via {one} dev nic0 mtu 1400",
                "blackhole",
                "prohibit",
            ]
        )
    )
    kind, _, rest = way.partition(" ") if way in ("blackhole", "prohibit") else ("", "", way)
    prefix = draw(st.sampled_from(PREFIXES[version]))
    table, metric = draw(st.sampled_from(TABLES)), draw(st.sampled_from(METRICS))
    verb = draw(st.sampled_from((*_ADD, "del", "del")))
    words = ["route", verb, kind, prefix, "table", str(table)]
    if metric:
        words += ["metric", str(metric)]
    # A delete without a protocol takes anybody's, ours too: others may do that.
    if verb != "del" or draw(st.booleans()):
        words += ["proto", draw(st.sampled_from(PROTOCOLS))]
    return _one(version, " ".join(word for word in (*words, rest) if word))


@st.composite
def addresses(draw: st.DrawFn) -> Commands:
    text, dev = draw(st.sampled_from(ADDRESSES)), draw(st.sampled_from(LINKS))
    verb = draw(st.sampled_from(["add", "replace", "del"]))
    version = 6 if ":" in text else 4
    if verb != "del" and draw(st.booleans()):
        return _one(version, f"raw {verb} {text} {dev} 50")
    words = ["addr", verb, text, "dev", dev]
    if verb != "del":
        words += ["nodad"] if version == 6 else []
        words += draw(st.sampled_from([[], ["noprefixroute"]]))
    return _one(version, " ".join(words))


@st.composite
def rules(draw: st.DrawFn) -> Commands:
    version, priority, tables = draw(st.sampled_from(RULES))
    verb = draw(st.sampled_from(["add", "add", "del"]))
    mark = draw(st.sampled_from(["", "fwmark 0x7", "from 10.0.0.0/8" if version == 4 else ""]))
    protocol = draw(st.sampled_from(PROTOCOLS))
    table = draw(st.sampled_from(tables))
    words = f"rule {verb} {mark} priority {priority} table {table} protocol {protocol}"
    return _one(version, " ".join(words.split()))


@st.composite
def neighbours(draw: st.DrawFn) -> Commands:
    text, dev = draw(st.sampled_from(NEIGHBOURS)), draw(st.sampled_from(LINKS[1:]))
    version = 6 if ":" in text else 4
    verb = draw(st.sampled_from(["add", "replace", "del"]))
    words = ["neigh", verb, text, "dev", dev]
    if verb != "del":
        words += ["lladdr", draw(st.sampled_from(MACS)), "nud"]
        words += [draw(st.sampled_from(["permanent", "permanent", "reachable"]))]
        words += draw(st.sampled_from([[], ["protocol", "static"]]))
    return _one(version, " ".join(words))


@st.composite
def links(draw: st.DrawFn) -> Commands:
    lines = draw(
        st.sampled_from(
            [
                ("link add hf0 type bridge", "link set hf0 up"),
                ("link add hf1 type bridge",),
                ("link del hf0",),
                ("link del hf1",),
                ("link del hf2",),
                ("link set nic0 down", "link set nic0 up"),
                ("link set nic1 down", "link set nic1 up"),
                ("link set hf0 down", "link set hf0 up"),
                ("link set nic1 nomaster",),
                ("link set hf0 group 7",),
                ("link set hf0 mtu 1450",),
            ]
        )
    )
    return 4, lines


actions = st.one_of(routes(), routes(), addresses(), rules(), neighbours(), links())


REMOVABLE = ("route4", "leg6", "address", "neighbour")


def remove(world: World, what: str, number: int) -> None:
    """Take away something that is there, ours or theirs; not the ground of the test."""
    there = [item for item in world.look()[what] if not _is_ground(item)]
    if not there:
        return
    item = there[number % len(there)]
    match what:
        case "route4":
            table, prefix, length, metric, _tos = item.where
            words = f"route del {prefix}/{length} table {table} proto {item.protocol}"
            world.others(f"{words} metric {metric}" if metric else words)
        case "leg6":
            table, prefix, length, metric, leg = item.where
            gateway, dev = leg if isinstance(leg, tuple) else ("", "")
            words = f"route del {prefix}/{length} table {table} metric {metric} dev {dev}"
            via = str(ipaddress.IPv6Address(bytes.fromhex(str(gateway)))) if gateway else ""
            world.others(f"{words} via {via}" if via else words, version=6)
        case "address":
            dev, text, length = item.where
            version = 6 if ":" in str(text) else 4
            world.others(f"addr del {text}/{length} dev {dev}", version=version)
        case "neighbour":
            dev, text = item.where
            world.others(f"neigh del {text} dev {dev}", version=6 if ":" in str(text) else 4)


def _is_ground(item: Item) -> bool:
    return item.what == "address" and item.where[1] in SOURCES.values()
