from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.sysctl import SYSCTL, UNSET, sysctl
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host.sysctl import SysctlDriver, setting_path
from tests.namespace import Namespace
from tests.safety.router_scene import scene
from tests.unprivileged import as_user

FORWARD = "net.ipv4.ip_forward"


def _value(name: str, driver: SysctlDriver | None = None) -> object:
    seen = (driver or SysctlDriver()).observe(Scope(frozenset({Key("sysctl", name)}))).sightings
    return seen[Key("sysctl", name)][0].artifact.fields["value"] if seen else None


def _unknown(name: str) -> str:
    seen = SysctlDriver().observe(Scope(frozenset({Key("sysctl", name)})))
    assert not seen.sightings
    return seen.unknown[Key("sysctl", name)]


def _apply(subject: Artifact, verb: Verb = Verb.UPDATE) -> Result:
    counted: list[int] = []
    operation = Operation(verb, subject, ("Sysctl/x",), "test")
    (result,) = SysctlDriver().apply([operation], counted.append)
    assert counted == [1]
    return result


def test_a_setting_is_read_and_written(netns: Namespace) -> None:
    assert _value(FORWARD) == "0"
    assert _apply(sysctl(FORWARD, "1")).done == 1
    assert _value(FORWARD) == "1"
    assert netns.run("cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"


@pytest.mark.usefixtures("netns")
def test_lists_are_compared_by_their_words() -> None:
    name = "net.ipv4.ping_group_range"
    assert _apply(sysctl(name, "0 100")).ok
    assert _value(name) == "0\t100"
    assert SYSCTL.matches("value", "0 100", _value(name))  # type: ignore[arg-type]  # a string


def test_a_link_with_a_dot_in_its_name(netns: Namespace) -> None:
    netns.veth("lan0.10", "peer0")
    name = "net.ipv4.conf.lan0/10.rp_filter"
    assert _value(name) is not None
    assert _apply(sysctl(name, "2")).ok
    assert netns.run("cat", "/proc/sys/net/ipv4/conf/lan0.10/rp_filter") == "2\n"
    assert _value("net/ipv4/conf/lan0.10/rp_filter") == "2"
    assert _value("net.ipv4.conf.lan0.10.rp_filter") is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (FORWARD, "net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/10.rp_filter", "net/ipv4/conf/eth0.10/rp_filter"),
        ("net/ipv4/conf/eth0.10/rp_filter", "net/ipv4/conf/eth0.10/rp_filter"),
        ("kernel/hostname", "kernel/hostname"),
        ("vm", "vm"),
    ],
)
def test_dots_and_slashes(name: str, path: str) -> None:
    assert setting_path(name) == Path(path)


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "net/../../../etc/passwd", "net.//.x", "net..ipv4", "a/./b", "a\0b", ".x"],
)
def test_what_leads_out_of_proc_sys_is_no_setting(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a kernel setting"):
        setting_path(name)
    assert "not the name of a kernel setting" in _unknown(name)
    assert not _apply(sysctl(name, "1")).ok


@pytest.mark.usefixtures("netns")
def test_absent_is_what_the_kernel_does_not_have() -> None:
    assert _value("net.ipv4.conf.gone0.rp_filter") is None
    assert _value("net.ipv4.ip_forward.below") is None
    (failure,) = _apply(sysctl("net.ipv4.conf.gone0.rp_filter", "1")).failures
    assert failure.error == "No such file or directory"


def test_no_proc_is_unknown_not_absent(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="mount proc"):
        _value(FORWARD, SysctlDriver(tmp_path / "proc/sys"))


def test_what_cannot_be_read_is_unknown_not_absent(netns: Namespace) -> None:
    name = "net.ipv4.route.flush"  # write-only
    assert _unknown(name) == f"sysctl {name}: could not be read: Permission denied"
    assert _unknown("net.ipv4") == "sysctl net.ipv4: could not be read: Is a directory"
    assert netns.run("cat", "/proc/sys/net/ipv4/ip_forward") == "0\n"


@pytest.mark.usefixtures("netns")
def test_the_kernel_s_refusal_in_its_own_words() -> None:
    (failure,) = _apply(sysctl("net.ipv4.tcp_congestion_control", "no-such")).failures
    assert failure.error == "writing 'no-such': No such file or directory"
    (failure,) = _apply(sysctl("net.ipv4.ip_default_ttl", "300")).failures
    assert failure.error == "writing '300': Invalid argument"
    with as_user():
        (failure,) = _apply(sysctl(FORWARD, "1")).failures
    assert failure.error == "Permission denied"
    assert _value(FORWARD) == "0"


@pytest.mark.usefixtures("netns")
def test_a_value_the_kernel_takes_and_changes() -> None:
    """Octal here: the kernel reads 010 as 8."""
    (failure,) = _apply(sysctl("net.ipv4.ip_default_ttl", "010")).failures
    assert failure.error == "wrote '010', and the kernel kept '8'"


@pytest.mark.usefixtures("netns")
@pytest.mark.parametrize("verb", [Verb.CREATE, Verb.REPLACE, Verb.DELETE])
def test_settings_are_only_ever_updated(verb: Verb) -> None:
    (failure,) = _apply(sysctl(FORWARD, "1"), verb).failures
    assert f"cannot be the subject of {verb}" in failure.error
    assert _value(FORWARD) == "0"


def test_a_setting_without_a_value_can_be_given_one(netns: Namespace) -> None:
    """The kernel says EIO of a secret that was never set, and takes no empty one."""
    name = "net.ipv6.conf.lo.stable_secret"
    assert netns.run("sysctl", "-n", FORWARD) == "0\n"
    assert _value(name) == UNSET
    value = "2001:0db8:0000:0000:0000:0000:0000:0001"
    assert _apply(sysctl(name, value)).ok
    assert _value(name) == value
    assert not SYSCTL.restores({"value": UNSET})
    assert SYSCTL.restores({"value": "0"})


@pytest.mark.programs
def test_one_setting_that_cannot_be_read_stops_no_other() -> None:
    with scene() as router:
        router.apply({"Sysctl/old": "{key: net.ipv4.conf.nic0.rp_filter, value: 2}"})
        report = router.apply(
            {
                "Sysctl/forward": f"{{key: {FORWARD}, value: 1}}",
                "Sysctl/flush": "{key: net.ipv4.route.flush, value: 1}",
            }
        )
        assert _value(FORWARD) == "1"
        assert [held.owner for held in report.after.blocked] == ["Sysctl/flush"]
        assert not report.converged
