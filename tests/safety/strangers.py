"""What other programs do, in the words of `ip`. Every line is well formed for the process it goes
to; the kernel may refuse it."""

from __future__ import annotations

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
    TABLES,
)

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
