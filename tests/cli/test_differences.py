"""A plan shows what differs in tables, files and services: in short, in full, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Holdfast
from tests.firewall.home_network import document
from tests.namespace import Namespace

LAN = {
    "Interface/lan": "{ifname: lan0, adminUp: true}",
    "Interface/wan": "{ifname: wan0, adminUp: true}",
    "IPv4StaticAddress/lan": "{interface: lan, address: 192.168.7.1/24}",
    "IPv4DHCPServer/lan": "{listenInterfaces: [lan]}",
    "IPv4DHCPScope/lan": (
        "{server: lan, interface: lan, rangeStart: 192.168.7.100, rangeEnd: 192.168.7.200}"
    ),
    "Zone/lan": "{interfaces: [lan]}",
    "Zone/wan": "{interfaces: [wan]}",
    "FirewallPolicy/home": "{input: {default: drop}}",
    "ExposeService/web": (
        "{fromZone: wan, viaInterface: wan, protocol: tcp, externalPort: 80,"
        " internalAddress: 192.168.7.10, internalPort: 80}"
    ),
}
PORT = ("internalPort: 80", "internalPort: 8080")


@pytest.fixture
def lan(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    """A router that is as declared."""
    netns.veth("lan0", "laptop0")
    netns.veth("wan0", "isp0")
    _declare(holdfast)
    holdfast.set_up("apply", "router.yaml", "--yes")
    yield netns
    holdfast.set_up("cleanup", "router.yaml", "--yes")


def _declare(holdfast: Holdfast, *changed: tuple[str, str]) -> None:
    text = document(LAN)
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    (holdfast.folder / "router.yaml").write_text(text)


def _difference(plan: Any, artifact: str) -> Any:
    (found,) = (
        one
        for one in plan["operations"]
        if f"{one['artifact']['kind']} {one['artifact']['name']}" == artifact
    )
    return found["difference"]


def _lines(difference: Any) -> list[tuple[str, str, str]]:
    return [
        (hunk["where"], line["change"], line["text"])
        for hunk in difference["hunks"]
        for line in hunk["lines"]
    ]


@pytest.mark.usefixtures("lan")
def test_elements_lines_and_settings(holdfast: Holdfast) -> None:
    _declare(holdfast, PORT, ("rangeEnd: 192.168.7.200", "rangeEnd: 192.168.7.220"))
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    assert _lines(_difference(plan, "nft inet holdfast_filter")) == [
        ("set exposed4", "removed", '"wan0" . 192.168.7.10 . tcp . 80'),
        ("set exposed4", "added", '"wan0" . 192.168.7.10 . tcp . 8080'),
    ]
    conf = _difference(plan, "file /etc/holdfast/dnsmasq.conf")
    assert (conf["added"], conf["removed"]) == (1, 1)
    changes = [(change, text.split(",")[2]) for _, change, text in _lines(conf) if "range" in text]
    assert changes == [("removed", "192.168.7.200"), ("added", "192.168.7.220")]
    assert "the files that it reads" in _difference(plan, "service dnsmasq")["note"]

    shown = holdfast.ok("plan", "router.yaml").out
    assert '- "wan0" . 192.168.7.10 . tcp . 80\n' in shown
    assert '+ "wan0" . 192.168.7.10 . tcp . 8080\n' in shown
    for operation in plan["operations"]:
        for change in operation["changes"]:
            assert f"→ {change['after']}" not in shown, "nobody reads a digest"


@pytest.mark.usefixtures("lan")
def test_a_stored_plan_does_not_depend_on_what_is_shown(holdfast: Holdfast) -> None:
    _declare(holdfast, PORT)
    digests = {
        holdfast.ok("plan", "router.yaml", "-o", "json", *full).json["digest"]
        for full in ((), ("--full",))
    }
    assert len(digests) == 1
    whole = holdfast.ok("plan", "router.yaml", "-o", "json", "--full").out
    (holdfast.folder / "shown.plan").write_text(whole)
    holdfast.ok("apply", "shown.plan", "--dry-run")
    (holdfast.root / "run/holdfast/tables/inet holdfast_filter.nft").unlink()
    holdfast.ok("apply", "shown.plan")
    assert holdfast.ok("plan", "router.yaml", "-o", "json").json["summary"]["keep"] == 11


@pytest.mark.parametrize("known", [True, False])
def test_a_table_changed_by_hand(holdfast: Holdfast, lan: Namespace, known: bool) -> None:
    """nft lists both then, and what was counted or only written otherwise does not differ."""
    lan.run("nft", "add", "rule", "inet", "holdfast_filter", "forward", "tcp dport 99 accept")
    element = '{ "wan0" . 192.168.7.10 . tcp . 80 }'
    lan.run("nft", "delete", "element", "inet", "holdfast_filter", "exposed4", element)
    if not known:
        (holdfast.root / "run/holdfast/tables/inet holdfast_filter.nft").unlink()
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    assert _lines(_difference(plan, "nft inet holdfast_filter")) == [
        ("set exposed4", "added", '"wan0" . 192.168.7.10 . tcp . 80'),
        ("chain forward", "removed", "tcp dport 99 accept"),
    ]
    assert "content  changed by hand\n" in holdfast.ok("plan", "router.yaml").out


@pytest.mark.usefixtures("lan")
def test_a_file_changed_by_hand_cannot_talk_to_the_terminal(holdfast: Holdfast) -> None:
    file = holdfast.root / "etc/holdfast/dnsmasq.conf"
    said = b"# \x1b[2Jgone\rover password: hunter2\npassword hunter2\nme * hunter2\nkey %s=\n"
    file.write_bytes(file.read_bytes() + said % (b"hunter2" * 6 + b"x"))
    shown = holdfast.ok("plan", "router.yaml", "--full").out
    assert "\\x1b[2Jgone" in shown
    assert not {"\x1b", "\r"} & set(shown)
    assert "hunter2" not in shown


@pytest.mark.usefixtures("netns")
def test_what_comes_and_goes_is_counted_and_shown_in_full(
    holdfast: Holdfast, netns: Namespace
) -> None:
    netns.veth("lan0", "laptop0")
    netns.veth("wan0", "isp0")
    _declare(holdfast)
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    made = _difference(plan, "nft inet holdfast_filter")
    assert made["hunks"] == []
    assert made["left_out"] == made["added"] > 10
    assert made["removed"] == 0
    shown = holdfast.ok("plan", "router.yaml").out
    assert f"+ nft inet holdfast_filter ({made['added']} lines)\n" in shown
    assert "--full shows" in shown
    whole = holdfast.ok("plan", "router.yaml", "--full").out
    assert "--full" not in whole
    assert "+ ct state established,related accept\n" in whole
    assert "+ argument /usr/sbin/dnsmasq\n" in whole
    full = holdfast.ok("plan", "router.yaml", "--full", "-o", "json").json
    assert len(_lines(_difference(full, "nft inet holdfast_filter"))) == made["added"]


def test_a_long_difference_is_cut(holdfast: Holdfast, lan: Namespace) -> None:
    del lan
    more = {
        f"ExposeService/web-{port}": (
            f"{{fromZone: wan, viaInterface: wan, protocol: tcp, externalPort: {port},"
            f" internalAddress: 192.168.7.10, internalPort: {port}}}"
        )
        for port in range(1000, 1200)
    }
    (holdfast.folder / "router.yaml").write_text(document(LAN | more))
    plan = holdfast.ok("plan", "router.yaml", "-o", "json").json
    cut = _difference(plan, "nft inet holdfast_filter")
    assert (cut["added"], len(_lines(cut)), cut["left_out"]) == (200, 20, 180)
    assert "… 180 more lines, --full shows all\n" in holdfast.ok("plan", "router.yaml").out


def test_the_body_of_a_table_is_kept_for_its_owner_alone(
    holdfast: Holdfast, lan: Namespace
) -> None:
    del lan
    kept = holdfast.root / "run/holdfast/tables/inet holdfast_filter.nft"
    assert kept.stat().st_mode & 0o777 == 0o600
    holdfast.set_up("cleanup", "router.yaml", "--yes")
    assert not Path(kept).exists()


def test_what_is_in_the_way_is_shown(holdfast: Holdfast, netns: Namespace) -> None:
    """A table and a file of others' in the place of ours; one that not all may read is not."""
    netns.veth("lan0", "laptop0")
    netns.veth("wan0", "isp0")
    netns.run("nft", "add table inet holdfast_filter")
    netns.run("nft", "add chain inet holdfast_filter theirs")
    netns.run("nft", "add rule inet holdfast_filter theirs tcp dport 99 counter accept")
    folder = holdfast.root / "etc/holdfast"
    folder.mkdir(parents=True)
    (folder / "dnsmasq.conf").write_text("# theirs\n")
    (folder / "dnsmasq").mkdir()
    (folder / "dnsmasq/servers").write_text("hunter2\n")
    (folder / "dnsmasq/servers").chmod(0o640)
    _declare(holdfast)
    plan = holdfast.run("plan", "router.yaml", "-o", "json").json
    found = {one["artifact"]["name"]: one["difference"] for one in plan["conflicts"]}
    table = _lines(found["inet holdfast_filter"])
    assert ("chain theirs", "removed", "tcp dport 99 counter accept") in table
    assert ("line 1", "removed", "# theirs") in _lines(found["/etc/holdfast/dnsmasq.conf"])
    assert found["/etc/holdfast/dnsmasq/servers"]["note"] == "content differs (secret)"
    shown = holdfast.run("plan", "router.yaml").out
    assert "- # theirs\n" in shown
    assert "hunter2" not in shown
