"""Addresses in a plan are counted however they are written, or the plan is held."""

from __future__ import annotations

import base64
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.actions.named_addresses import named
from holdfast.runtime.actions.plan import read
from holdfast.runtime.actions.policy import judge
from tests.runtime.actions.plans import NOW, plan, policy

# 192.0.2.7 and 2001:db8::7 in every way that something may read.
OUTSIDE: list[Any] = [
    "192.0.2.7",
    " 192.0.2.7 ",
    "192.0.2.7/32",
    "192.0.2.0/24",
    "192.0.2.0/255.255.255.0",
    "192.0.2/24",
    "192/8",
    "0/0",
    "0.0.0.0/0",
    "::/0",
    "192.0.2.7.",
    "192.000.002.007",
    "0300.0.02.07",
    "0xc0.0.0x2.7",
    "0xc0000207",
    "C0000207",
    "3221225991",
    3221225991,
    3221225991.0,
    "030000001007",
    "192.0.519",
    "192.519",
    "192 . 0 . 2 . 7",
    "192\\.0\\.2\\.7",
    "192\u200b.0.2.7",
    "192\u30020\u30022\u30027",
    "\uff11\uff19\uff12.\uff10.\uff12.\uff17",
    "192%2e0%2e2%2e7",
    "192%252E0.2.7",
    "192.0.2.7:443",
    "192.0.2.7,10.0.1.5",
    "10.0.1.5;192.0.2.7",
    "10.0.1.5|192.0.2.7",
    "https://192.0.2.7/path",
    "https://10.0.1.5@192.0.2.7/",
    "https://user:pw@192.0.2.7:8443/?a=b",
    "https://10.0.1.5/?to=192.0.2.7",
    "http://3221225991.x/?ip=192.0.2.7#10.0.1.5",
    "x192.0.2.7",
    "a.192.0.2.7.nip.io",
    "ip-192-0-2-7.ec2.internal",
    "192-0-2-7.example",
    "7.2.0.192.in-addr.arpa",
    "2.0.192.in-addr.arpa.",
    "192.0.2.7-192.0.2.9",
    "192.0.2.7 to 192.0.2.9",
    "192.0.2.7-9",
    "192.0.2.*",
    "192.0.2.x",
    "192.0.[1-9].7",
    "192.0.{1,2}.7",
    "192.0.1-9.7",
    "(192.0.2.7)",
    '{"ip": "192.0.2.7"}',
    base64.b64encode(b"192.0.2.7").decode(),
    base64.b64encode(b'{"to": "192.0.2.7"}').decode(),
    "2001:db8::7",
    "2001:DB8:0:0:0:0:0:7",
    "2001:0db8::0007/128",
    "2001:db8::/32",
    "[2001:db8::7]:443",
    "http://[2001:db8::7]/",
    "2001:db8::7%eth0",
    "fe80::1",
    "::ffff:192.0.2.7",
    "::ffff:c000:0207",
    "::192.0.2.7",
    "64:ff9b::192.0.2.7",
    "2002:c000:207::1",
    "20010db8000000000000000000000007",
    "0x20010db8000000000000000000000007",
    str(int(IPv6Address("2001:db8::7"))),
    int(IPv6Address("2001:db8::7")),
    "2001-db8--7.ipv6-literal.net",
    "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
    "2001:db8::[1-9]",
    [192, 0, 2, 7],
    ["192", "0", "2", "7"],
    ["10.0.1.5", "192.0.2.7"],
    {"deep": [{"er": ("192.0.2.7",)}]},
    {"192.0.2.7": "x"},
    {"address": "10.0.1.0", "prefixLength": 8},
    {"address": "10.0.1.0", "mask": "255.0.0.0"},
    {"cidr_ip": "10.0.1.7", "bits": "/16"},
    {"start": "10.0.1.5", "end": "10.0.9.5"},
    {"firstIp": "10.0.9.5", "lastIp": "10.0.1.5"},
    "10.0.1.5-10.0.9.5",
    "10.0.1.5 - 10.0.9.5",
    "10.0.1.5\u201310.0.9.5",
    "default", "any", "all", "*", " ANY ", "internet", "world", {"all": True},
    {"start": "10.0.1.1", "count": 100000},
    {"start": "10.0.1.1", "count": "100_000"},
    {"start": "10.0.1.1", "count": "many"},
    {"start": 167772421, "size": 100000},
    "+3221225991", "3_221_225_991", "3,221,225,991", "3.221225991e9", "3221225991.0",
    "\u0663\u0662\u0662\u0661\u0662\u0662\u0665\u0669\u0669\u0661",
    "0b11000000000000000000001000000111", "0o30000001007", "http://3221225991/x",
    "http://u@0xc0000207:80", "3221225991, 3221225992",
    {"a": 192, "b": 0, "c": 2, "d": 7},
    {"octet1": "192", "octet2": "0", "octet3": "2", "octet4": "7"},
    "192_0_2_7", "192,0,2,7", "192, 0, 2, 7", "192/0/2/7", "192:0:2:7", "192 0 2 7",
    "192.0.2[.]7", "192[.]0[.]2[.]7", "192(dot)0(dot)2(dot)7", "192 dot 0 dot 2 dot 7",
    "C0:00:02:07", "c0 00 02 07", "c0-00-02-07", "c0000207.nip.io", "a.c0000207.nip.io",
    "&#49;92.0.2.7", "&#49;&#57;&#50;&#46;0.2.7", "\\u0031\\u0039\\u0032.0.2.7",
]  # fmt: skip
# What is said in such plans and is none.
NONE_NAMED: list[Any] = [
    "", "k1", "eni-1", "eni-0a1b2c3d", "eni-0a1b2c3d4e5f60718", "rtb-0123456789abcdef0",
    "eu-west-1", "us-east-1a", "ocid1.vnic.oc1..abc", "arn:aws:iam::123456789012:role/x",
    "123456789012",
    "/subscriptions/0a1b2c3d-1111-2222-3333-444455556666/resourceGroups/x", "projects/p1/zones/b",
    "2025-11-24T16:00:00Z", "12:30:45", "00:11:22:33:44:55", "app-20251124", "host.example.net",
    "i-0abc123def", "eipalloc-0123", "subnet-0a1b2c3d4e5f60718", "vpc-1a2b3c4d", "sg-default",
    "0a1b2c3d-1111-2222-3333-444455556666", "arn:aws:ec2:eu-west-1:123456789012:instance/i-0abc",
    "v1.2.3", "release 1.2.3 of the app", "1.2.3-rc1", "Name=web", "team:network", "10%",
    "2025-11-24T16:00:00.123+01:00", "2025-11-24", "16:00", "443", "8080/tcp", "1024-65535",
    "Move the address of the app to the other zone; all is well, by default nothing else moves.",
    {"weight": 10, "priority": 5, "ttl": 60, "retries": 3}, {"count": 3}, {"size": "large"},
    {"default": 5, "tags": {"Name": "web", "env": "prod"}},
    0, 53, 65535, 1500, -1, True, False, None, 0.5, [22, 53], {"port": 443, "force": True},
]  # fmt: skip
# Both ends of the ranges above are allowed, and what lies between is not.
_ALLOWED = ["10.0.1.0/24", "10.0.9.0/24"]


def _gates(value: Any) -> list[str]:
    parameters = {"whatever": value}
    found = judge(read(plan(parameters=parameters)), policy(allowedCIDRs=_ALLOWED), NOW, 0)
    return sorted({one.gate for one in found})


@pytest.mark.parametrize("value", OUTSIDE, ids=lambda value: repr(value)[:60])
def test_an_address_that_no_policy_covers(value: Any) -> None:
    assert _gates(value) == ["cidr"]
    undo = {"action": "unassign-secondary-ip", "parameters": {"x": [value]}}
    found = judge(read(plan(undo=undo)), policy(allowedCIDRs=_ALLOWED), NOW, 0)
    assert {one.gate for one in found} == {"cidr"}
    # Under the name that an undo has for what was seen, too.
    hidden = plan(parameters={"observed": value})
    found = judge(read(hidden), policy(allowedCIDRs=_ALLOWED), NOW, 0)
    assert {one.gate for one in found} == {"cidr"}


@pytest.mark.parametrize("value", NONE_NAMED, ids=lambda value: repr(value)[:60])
def test_what_names_no_address_is_not_held(value: Any) -> None:
    assert not list(named("x", value))
    assert _gates(value) == []


@pytest.mark.parametrize("field", ["name", "providerRef"])
def test_whatever_else_the_executor_is_told(field: str) -> None:
    found = judge(read(plan(**{field: "to 192.0.2.7"})), policy(allowedCIDRs=_ALLOWED), NOW, 0)
    assert [one.gate for one in found] == ["cidr"]


def test_the_key_counts_as_the_executor_is_told_it() -> None:
    spec = read(plan(idempotencyKey="192.0.2.7"))
    found = judge(spec, policy(allowedCIDRs=_ALLOWED), NOW, 0)
    assert [one.gate for one in found] == ["cidr"]


@pytest.mark.parametrize(
    "value",
    [
        "10.0.1.5",
        "10.0.1.0/24",
        "10.0.1.5-10.0.1.9",
        "https://10.0.1.5:8443/x",
        "ip-10-0-1-5.ec2.internal",
        {"address": "10.0.1.0", "prefixLength": 24},
        {"start": "10.0.1.5", "end": "10.0.1.9"},
        {"start": "10.0.1.5", "count": 4},
        {"address": "10.0.1.5", "port": 443, "weight": 10},
        "10_0_1_5",
        "10[.]0[.]1[.]5",
        [10, 0, 1, 5],
        167772421,
    ],
    ids=repr,
)
def test_what_is_covered_passes(value: Any) -> None:
    assert _gates(value) == []


def test_a_plan_with_many_is_told_briefly() -> None:
    many = [f"192.0.2.{one}" for one in range(256)]
    found = judge(read(plan(parameters={"x": many})), policy(allowedCIDRs=_ALLOWED), NOW, 0)
    assert len(found) == 20


_SURROUNDINGS = st.sampled_from(
    [
        "{}",
        "a {} b",
        "({})",
        "[{}]",
        "x={};",
        "http://{}/",
        "{},",
        '"{}"',
        "ip:{}",
        "\n{}\n",
        "_{}_",
    ]
)


@given(st.integers(1 << 24, (1 << 32) - 1), _SURROUNDINGS, st.booleans())
def test_every_ipv4_address_in_every_surrounding(number: int, around: str, quoted: bool) -> None:
    address = str(IPv4Address(number))
    text = around.format(quote(address.replace(".", "%2e")) if quoted else address)
    assert number in {int(one.network.network_address) for one in named("x", text) if one.network}


@given(st.integers(1 << 120, (1 << 128) - 1), st.sampled_from(["{}", "[{}]:1", "({})", "a {} b"]))
def test_every_ipv6_address_in_every_surrounding(number: int, around: str) -> None:
    address = IPv6Address(number)
    for written in (str(address), address.exploded, str(address).upper()):
        found = {one.network for one in named("x", around.format(written))}
        assert number in {int(one.network_address) for one in found if one is not None}


@pytest.mark.long
@given(
    st.recursive(
        st.text()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.booleans()
        | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_can_be_looked_through(value: Any) -> None:
    list(named("x", value))


@pytest.mark.parametrize("piece", ["1.2.3.4-", "1.1.", "0", "f", "1-", "0x1.", "a:", "%2e", "1 . "])
def test_a_text_that_is_made_to_take_long(piece: str) -> None:
    """Whatever it is, it is bounded; and nothing that is not read to its end passes."""
    list(named("x", piece * (16_000 // len(piece))))
    hidden = " ".join(f"10.0.1.{one % 256}" for one in range(600)) + " 192.0.2.7"
    assert _gates(hidden) == ["cidr"]
    assert _gates("9" * 5000) == ["cidr"]


def test_many_fields_with_ends() -> None:
    """Each is counted, and it comes to an end."""
    found = list(named("x", {f"startend{one}": f"::{one:x}" for one in range(600)}))
    assert len(found) >= 600
