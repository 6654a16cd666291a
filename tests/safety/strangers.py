"""What other programs do, in the words of `ip`. Every line is well formed for the process it goes
to; the kernel may refuse it."""

from __future__ import annotations

import ipaddress

from hypothesis import strategies as st

from holdfast.engine.intent import BulkIntent, Intent
from holdfast.engine.kinds import route
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
from tests.safety.shared_namespace import SharedNamespace
from tests.safety.snapshot import Item

Commands = tuple[int, tuple[str, ...]]  # version, lines

# static, BGP, and one that nobody has a name for. In numbers: `ip` takes a name it has seen for the
# last number it has seen (iproute2 6.1, in one batch).
PROTOCOLS = ("4", "186", "50")
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
        words += draw(st.sampled_from([[], ["protocol", "4"]]))
    return _one(version, " ".join(words))


@st.composite
def links(draw: st.DrawFn) -> Commands:
    lines = draw(
        st.sampled_from(
            [
                ("link add hf0 type bridge", "link set hf0 up"),
                ("link del hf0", "link add hf0 type bridge", "link set hf0 up"),
                ("link del hf1", "link add hf1 type bridge"),
                ("addr add 192.0.2.1/24 dev hf0",),
                ("route add 10.1.0.0/16 dev hf0 table 1000 proto 4",),
                ("neigh add 192.0.2.9 dev hf0 lladdr 02:00:00:00:00:01",),
                ("link add top0 link hf0 type macvlan",),
                ("link set far1 master hf0",),
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
                ("link set nic0 down",),
                ("link set nic0 up",),
                ("link set nic1 down",),
                ("link set nic1 up",),
                ("link set hf0 down",),
                ("link set far0 down",),
                ("link set far0 up",),
                ("link set far1 down",),
                ("link set far1 up",),
                ("link set nic0 mtu 1400",),
                ("link set nic1 mtu 1200",),
                ("link set nic1 mtu 1500",),
                ("link set nic1 address 02:00:00:00:00:77",),
                ("link set hf0 address 02:00:00:00:00:78",),
            ]
        )
    )
    return 4, lines


actions = st.one_of(routes(), routes(), addresses(), rules(), neighbours(), links())


def strike(intent: Intent | BulkIntent, way: int) -> list[Commands]:
    """Something at an identity that is declared: delete it, put another there, or build on it."""
    if isinstance(intent, BulkIntent):
        return _strike_route(intent, way)
    fields = intent.artifact.fields
    name, dev = intent.artifact.key.name, fields.get("dev")
    match intent.artifact.key.kind:
        case "address":
            text = f"{fields['address']}/{fields['prefix_length']}"
            version = 6 if ":" in text else 4
            lines = [f"addr del {text} dev {dev}"] if way & 1 else []
            verb = "replace" if way & 2 else "add"
            flags = " nodad" if version == 6 else ""
            made = f"raw {verb} {text} {dev} 50" if way & 4 else f"addr {verb} {text} dev {dev}"
            return [(version, (*lines, made if way & 4 else made + flags))]
        case "neighbour":
            version = 6 if ":" in name else 4
            lines = [f"neigh del {fields['address']} dev {dev}"] if way & 1 else []
            mac = MACS[way & 1] if way & 4 else fields["mac"]
            verb = "replace" if way & 2 else "add"
            made = f"neigh {verb} {fields['address']} dev {dev} lladdr {mac} nud permanent"
            return [(version, (*lines, made))]
        case "rule":
            mark = f"fwmark {fields['fwmark']}" if fields["fwmark"] is not None else ""
            words = f"priority {fields['priority']} table {fields['table']} {mark}"
            version = int(str(fields["family"]))
            verb, protocol = ("del", "72") if way == 0 else ("add", PROTOCOLS[way % 3])
            return [(version, (f"rule {verb} {words} protocol {protocol}".strip(),))]
        case "link" if intent.creates:
            return _strike_link(name, way)
    return []


def _strike_link(name: str, way: int) -> list[Commands]:
    made = f"link add {name} type bridge"
    up = f"link set {name} up"
    choices: list[Commands] = [
        (4, (f"link del {name}",)),
        (4, (f"link del {name}", made, up)),
        (4, (made, up)),
        (4, (f"addr add 192.0.2.77/24 dev {name}",)),
        (6, (f"addr add 2001:db8:7::7/64 dev {name} nodad",)),
        (4, (up, f"route add 10.77.0.0/16 dev {name} proto 4")),
        (4, (f"link add top0 link {name} type macvlan",)),
        (4, (f"link set far1 master {name}",)),
    ]
    return [choices[way]]


def _strike_route(intent: BulkIntent, way: int) -> list[Commands]:
    shared, keys = intent.batch.template, intent.batch.keys
    words = f"{route.destination(keys[way % len(keys)])} table {shared.table}"
    if shared.metric:
        words += f" metric {shared.metric}"
    made = f"{words} proto 4 via {GATEWAYS[shared.family][way & 1]} dev nic0"
    verb = ("add", "append", "prepend", "replace")[way >> 1]
    lines = [f"route del {words}"] if way in (0, 3) else []
    return [(shared.family, (*lines, f"route {verb} {made}"))]


REMOVABLE = ("route4", "leg6", "address", "neighbour")
SHADOWED = ("route4", "leg6")
_UNICAST = 1


def shadow(world: SharedNamespace, what: str, number: int) -> None:
    """Put the like of something that is there beside it, or another leg to it."""
    there = world.look()[what]
    if not there:
        return
    item = there[number % len(there)]
    verb = ("append", "prepend")[number % 2]
    if what == "leg6":
        table, prefix, length, metric, _leg = item.where
        words = f"route append {prefix}/{length} table {table} metric {metric} proto 4"
        world.others(f"{words} via {GATEWAYS[6][number % 2]} dev nic0", version=6)
    else:
        table, prefix, length, metric, _tos = item.where
        words = f"route {verb} {prefix}/{length} table {table} metric {metric} proto 4"
        kind, _scope, legs, *_ = item.fields
        if kind == _UNICAST and isinstance(legs, tuple):
            world.others(words + "".join(map(_leg_words, legs)))


def _leg_words(leg: tuple[str, str, int, int]) -> str:
    gateway, dev, weight, onlink = leg
    words = f" nexthop dev {dev} weight {weight + 1}"
    if gateway:
        words += f" via {ipaddress.IPv4Address(bytes.fromhex(gateway))}"
    return words + " onlink" if onlink else words


def remove(world: SharedNamespace, what: str, number: int) -> None:
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
