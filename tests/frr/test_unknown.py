"""What is not known is not empty: daemons that are gone, or have only just been started."""

from __future__ import annotations

from holdfast.engine.driver import Scope
from holdfast.engine.kinds.bgp_attributes import Attributes
from holdfast.engine.kinds.bgp_instance import bgp_instance
from holdfast.engine.kinds.bgp_network import BGP_NETWORK
from holdfast.errors import DriverError
from holdfast.frr.driver import BgpDriver
from holdfast.frr.lines import golden
from holdfast.frr.network_steps import maps
from holdfast.frr.running_config import RunningConfig
from tests.frr.drive import Drive
from tests.frr.ground import Ground, wait_until

INSTANCE = bgp_instance(65001)


def _why(driver: BgpDriver) -> str:
    try:
        driver.observe(Scope(frozenset({INSTANCE.key})))
    except DriverError as error:
        return str(error)
    return ""


def test_a_daemon_of_just_now_is_unknown_until_it_settles(frr: Ground) -> None:
    driver = BgpDriver(frr.frr("bgpd").folder, settles=8.0)
    assert "frr.conf is not known yet" in _why(driver)
    wait_until("it has settled", lambda: not _why(driver))
    driver.close()


def test_a_daemon_that_ended_is_unknown(frr: Ground) -> None:
    instance = frr.frr("bgpd")
    driver = BgpDriver(instance.folder, settles=0.0)
    drive = Drive(driver)
    drive.settle(INSTANCE)
    instance.kill("bgpd")
    assert "is FRR running" in _why(driver)
    instance.start("bgpd")
    drive.settle(INSTANCE)
    driver.close()


def test_where_nothing_is_declared_nobody_is_asked(frr: Ground) -> None:
    driver = BgpDriver(frr.frr().folder, settles=0.0)
    observed = driver.observe(Scope())
    assert not observed.sightings
    assert not observed.bulk[BGP_NETWORK.name].own


def test_the_lines_of_a_map() -> None:
    attributes = Attributes(med=0)
    name = attributes.map_name
    assert golden(maps({name: attributes}, RunningConfig())) == [
        "XFRR_start_configuration",
        f" route-map {name} permit 10",
        " set metric 0",
    ]
