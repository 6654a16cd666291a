"""Every file of dnsmasq in the golden cases is one that dnsmasq takes; and what it does not take
is not put in its place."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Scope
from holdfast.engine.intent import Intent
from holdfast.engine.kinds.file import file
from holdfast.engine.plan import Operation, Verb
from holdfast.host import process
from holdfast.host.files import FileDriver, check_content
from holdfast.paths import Paths
from holdfast.resources.compile import compile_router
from holdfast.resources.router import load_router

CASES = Path(__file__).parents[1] / "resources" / "cases"
SERVING = [path.parent for path in sorted(CASES.glob("*/router.yaml")) if "dns" in path.read_text()]
CONF = "/etc/holdfast/dnsmasq.conf"


def files(case: Path) -> dict[str, Artifact]:
    desired = compile_router(load_router(case / "router.yaml"))
    return {
        intent.artifact.key.name: intent.artifact
        for intent in desired.intents
        if isinstance(intent, Intent) and intent.artifact.fields.get("check")
    }


@pytest.mark.parametrize("case", SERVING, ids=lambda case: case.name)
def test_dnsmasq_takes_it(case: Path) -> None:
    for artifact in files(case).values():
        check_content(str(artifact.fields["check"]), artifact.payload)


def test_there_are_cases_of_every_file() -> None:
    told = {artifact.fields["check"] for case in SERVING for artifact in files(case).values()}
    assert told == {"dnsmasq", "dnsmasq hosts", "dnsmasq options"}


@pytest.mark.parametrize(
    ("check", "content"),
    [
        ("dnsmasq", "port=53\ndhcp-range=set:lan,192.0.2.1,nowhere\n"),
        ("dnsmasq", "server=/corp.example/nowhere\n"),
        ("dnsmasq hosts", "# fine\n02:00:00:00:00:zz,192.0.2.1\n"),
        ("dnsmasq options", "tag:lan,option:no-such-option,1\n"),
    ],
)
def test_dnsmasq_does_not_take_it(check: str, content: str) -> None:
    with pytest.raises(ValueError, match=r"dnsmasq would not take it: .* at line [12]"):
        check_content(check, content.encode())


def operation(verb: Verb, content: str, observed: Artifact | None = None) -> Operation:
    artifact = file(CONF, content.encode(), check="dnsmasq")
    return Operation(verb, artifact, ("x",), "as declared", observed=observed)


def test_a_file_that_would_not_be_taken_leaves_the_old_one(root: Path) -> None:
    driver = FileDriver(Paths(root))
    (made,) = driver.apply([operation(Verb.CREATE, "port=53\n")], lambda _count: None)
    assert not made.failures
    seen = driver.observe(Scope(keys=frozenset({Key("file", CONF)})))
    observed = seen.sightings[Key("file", CONF)][0].artifact
    step = operation(Verb.UPDATE, "port=53\nno-such-word\n", observed)
    (refused,) = driver.apply([step], lambda _count: None)
    assert "dnsmasq would not take it: dnsmasq: bad option at line 2" in refused.failures[0].error
    assert Paths(root).under(CONF).read_text() == "port=53\n"
    (refused,) = driver.apply([replace(step, verb=Verb.CREATE, observed=None)], lambda _count: None)
    assert refused.failures


def test_without_dnsmasq_nothing_is_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PATH", "/nonexistent")
    driver = FileDriver(Paths(root))
    (refused,) = driver.apply([operation(Verb.CREATE, "port=53\n")], lambda _count: None)
    assert "install the Debian package dnsmasq-base" in refused.failures[0].error
    assert not Paths(root).under(CONF).exists()


@pytest.mark.parametrize("place", ["a b", "a #b", 'a"b\\c'])
def test_any_root_can_be_told(place: str, tmp_path: Path) -> None:
    """dnsmasq finds its own files, whatever stands before their paths."""
    root = tmp_path / place
    desired = compile_router(load_router(CASES / "dns-forwarder" / "router.yaml"), root=str(root))
    text = {str(i.artifact.key): i.artifact for i in desired.intents if isinstance(i, Intent)}
    conf = text[f"file {CONF}"].payload.decode().replace("servers-file", "conf-file")
    done = subprocess.run(
        ["dnsmasq", "--test", "--conf-file=-"], input=conf, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert f"cannot read {root}/etc/holdfast/dnsmasq/servers" in done.stderr
