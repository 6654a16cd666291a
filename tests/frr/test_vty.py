"""The connection to real daemons: framing, pipelines, ends, records."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from holdfast.errors import DriverError
from holdfast.frr.commands import Unsendable, line
from holdfast.frr.monitor import Record
from holdfast.frr.vty import Vty, VtyError
from tests.frr.ground import Frr, Ground, bird_bgp, bird_config


@pytest.fixture
def bgpd(frr: Ground) -> Frr:
    return frr.frr("bgpd")


def _vty(instance: Frr, daemon: str = "bgpd") -> Vty:
    return Vty(instance.folder / f"{daemon}.vty")


def test_answers_come_with_their_status(bgpd: Frr) -> None:
    vty = _vty(bgpd)
    answers = vty.ask_all(["configure terminal", "router bgp 65001", "neighbor", "bar", "end"])
    assert [answer.status for answer in answers] == [0, 0, 4, 2, 0]
    assert "incomplete" in answers[2].words
    assert "router bgp 65001" in vty.show("write terminal")
    with pytest.raises(DriverError, match="bgpd says to `show bar`"):
        vty.show("show bar")
    vty.close()


def test_ten_thousand_commands_in_a_pipeline(bgpd: Frr) -> None:
    vty = _vty(bgpd)
    networks = [f"network 10.{n >> 8}.{n & 255}.0/24" for n in range(10_000)]
    vty.ask_all(["configure terminal", "router bgp 65001", "address-family ipv4 unicast"])
    answers = vty.ask_all(networks, 60.0)
    assert len(answers) == len(networks)
    assert not any(answer.failed for answer in answers)
    vty.ask("end")
    assert vty.show("write terminal").count("  network ") == 10_000
    vty.close()


def test_mgmtd_is_asked_one_at_a_time(frr: Ground) -> None:
    instance = frr.frr()
    daemon = "mgmtd" if instance.is_10 else "zebra"
    vty = Vty(instance.folder / f"{daemon}.vty", pipelined=False)
    answers = vty.ask_all(["show version"] * 20)
    assert all("FRRouting" in answer.text for answer in answers)
    vty.close()


def test_an_end_is_noticed_at_once(bgpd: Frr) -> None:
    vty = _vty(bgpd)
    bgpd.kill("bgpd")
    assert select.select([vty], [], [], 10.0)[0]
    assert vty.is_gone
    with pytest.raises(VtyError, match="is FRR running"):
        vty.ask("show version")
    with pytest.raises(VtyError, match=r"bgpd.vty: Connection refused"):
        _vty(bgpd)


def test_a_daemon_that_hangs_runs_into_the_deadline(bgpd: Frr) -> None:
    import os
    import signal

    vty = _vty(bgpd)
    os.kill(bgpd.pid("bgpd"), signal.SIGSTOP)
    try:
        with pytest.raises(VtyError, match="in time"):
            vty.ask("show version", timeout=0.05)
        assert vty.is_gone
    finally:
        os.kill(bgpd.pid("bgpd"), signal.SIGCONT)


def test_nothing_there() -> None:
    with pytest.raises(VtyError, match=r"/nowhere/bgpd.vty: No such file"):
        Vty(Path("/nowhere/bgpd.vty"))


def test_passwords_stay_between_us_and_the_daemon(bgpd: Frr) -> None:
    vty = _vty(bgpd)
    vty.ask_all(["configure terminal", "router bgp 65001"])
    answer = vty.ask(line("neighbour 192.0.2.2 password hunter2", "hunter2"))
    assert answer.failed
    assert "hunter2" in answer.text
    assert "hunter2" not in answer.words + repr(answer.line) + str(answer.line)
    with pytest.raises(Unsendable) as refused:
        line("neighbor 192.0.2.2 password hunter2\n", "hunter2")
    assert "hunter2" not in str(refused.value)
    vty.close()


def test_a_record_of_a_peer_that_comes_up(frr: Ground) -> None:
    beside = frr.elsewhere()
    beside.veth("core", "far", ("192.0.2.1/24", "192.0.2.2/24"))
    instance = frr.frr("bgpd")
    instance.configure(
        "router bgp 65001\n bgp log-neighbor-changes\n neighbor 192.0.2.2 remote-as 65002\nexit\n"
    )
    vty = _vty(instance)
    monitor = vty.monitor()
    local = "local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001;"
    frr.bird(beside, bird_config([bird_bgp("upper", local)]))
    seen: list[Record] = []
    while not any(record.id == "N9HHH-F8H1M" for record in seen):
        assert select.select([monitor], [], [], 20.0)[0]
        seen += monitor.records()
    (up,) = (record for record in seen if record.id == "N9HHH-F8H1M")
    assert up.text == "%ADJCHANGE: neighbor 192.0.2.2(Unknown) in vrf default Up"
    assert up.arguments == ("192.0.2.2(Unknown)", "default")[: len(up.arguments)]
    assert up.lost == 0
    instance.kill("bgpd")
    while not monitor.ended:
        assert select.select([monitor], [], [], 10.0)[0]
        list(monitor.records())
    monitor.close()
    vty.close()
