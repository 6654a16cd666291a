"""Documents of parts, and the points in time in them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config.part import Directive, Part, Target
from holdfast.errors import ConfigError
from holdfast.resources.dynamic.dynamic_config_part import part_of, read_part
from holdfast.resources.dynamic.source_name import parse_source, plugin_of
from holdfast.resources.spec.moments import format_moment, parse_moment

TARGET = {"apiVersion": "net.routerd.net/v1alpha1", "kind": "IPv4Route", "name": "fallback"}


def document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "config.routerd.net/v1alpha1",
        "kind": "DynamicConfigPart",
        "metadata": {"name": "oci-inventory"},
        "spec": {
            "source": "Plugin/oci-inventory",
            "generation": 12,
            "observedAt": "2026-05-29T12:00:00Z",
            **spec,
        },
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-05-29T12:00:00Z", 1780056000),
        ("2026-05-29T14:30:00+02:30", 1780056000),
        ("2026-05-29t07:00:00-05:00", 1780056000),
        ("2026-05-29T12:00:00.25Z", 1780056000.25),
        ("2024-02-29T23:59:59Z", 1709251199),
    ],
)
def test_moments(text: str, seconds: float) -> None:
    assert parse_moment(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1780056000, "2026-05-29T12:00:00Z"),
        (1780056000.25, "2026-05-29T12:00:00.250Z"),
        (1780056000.0004, "2026-05-29T12:00:00Z"),
        (1780056000.9999, "2026-05-29T12:00:01Z"),
        (1780056000.001, "2026-05-29T12:00:00.001Z"),
    ],
)
def test_a_moment_is_written_in_one_way_and_read_back(seconds: float, text: str) -> None:
    assert format_moment(seconds) == text
    assert abs(parse_moment(text) - seconds) <= 0.0005


@given(st.integers(0, 4_102_444_800_000))
def test_moments_are_those_of_the_calendar(millis: int) -> None:
    known = datetime.fromtimestamp(millis // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    part = f".{millis % 1000:03}" if millis % 1000 else ""
    assert format_moment(millis / 1000) == f"{known}{part}Z"


@pytest.mark.parametrize(
    "text",
    [
        "now", "2026-05-29", "2026-05-29T12:00:00", "2026-05-29 12:00:00Z", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-05-29T24:00:00Z", "2026-05-29T12:60:00Z",
        "1969-12-31T23:59:59Z", "2026-05-29T12:00:61Z", "0000-01-01T00:00:00Z",
        "\uff12026-05-29T12:00:00Z", "2026-05-29T12:00:00+24:00", "2026-05-29T12:00:00+01:60",
    ],
)  # fmt: skip
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="point in time"):
        parse_moment(text)


def test_a_whole_document() -> None:
    directive = {"op": "mask", "target": TARGET, "reason": "it is active"}
    given = document(
        expiresAt="2026-05-29T12:05:00Z",
        resources=[{"kind": "IPv4Route"}],
        directives=[directive],
        actionPlans=[{"name": "a"}],
    )
    part = part_of(given)
    assert part == Part(
        "Plugin/oci-inventory",
        12,
        1780056000,
        1780056300,
        ({"kind": "IPv4Route"},),
        (Directive("mask", Target(**_snake(TARGET)), "it is active"),),
        ({"name": "a"},),
    )
    assert (part.name, part.ref) == ("Plugin-oci-inventory-12", "Plugin/oci-inventory#12")
    given["spec"]["digest"] = part.digest
    assert part_of(given) == part
    given["spec"]["digest"] = part.digest.removeprefix("sha256:")
    assert part_of(given) == part
    given["spec"]["resources"] = []
    with pytest.raises(ConfigError, match=r"^DynamicConfigPart: spec.digest: is not that of"):
        part_of(given)


def _snake(target: dict[str, str]) -> dict[str, str]:
    return {"api_version": target["apiVersion"], "kind": target["kind"], "name": target["name"]}


def test_the_digest_does_not_depend_on_when_or_how_it_was_written() -> None:
    one = part_of(document(resources=[{"a": 1, "b": [2]}], expiresAt="2026-05-29T12:05:00Z"))
    other = part_of(document(generation=13, resources=[{"b": [2], "a": 1}], actionPlans=[{"x": 1}]))
    assert one.digest == other.digest
    assert one.digest != part_of(document(resources=[{"a": 1, "b": [3]}])).digest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "DynamicConfigPart: has no value"),
        ([], "DynamicConfigPart: must be a mapping of fields"),
        ({}, "DynamicConfigPart: apiVersion: is missing"),
        (document() | {"kind": "Router"}, "kind: must be one of DynamicConfigPart"),
        (document(source="Startup"), "spec.source: 'Startup' is not a source"),
        (document(generation="3"), "spec.generation: must be a whole number"),
        (document(generation=True), "spec.generation: must be a whole number"),
        (document(observedAt=1780056000), "spec.observedAt: must be text"),
        (document(digest="md5:1"), "spec.digest: 'md5:1' is not a SHA-256 digest"),
        (document(resources={}), "spec.resources: must be a list"),
        (document(directives=[{"op": "mask"}]), "spec.directives[0].target: is missing"),
        (document(directives=[{"op": "mask", "target": TARGET, "reason": "x" * 2000}]),
         "spec.directives[0].reason: must be at most 1024 bytes"),
        (document(directives=[{"op": "mask", "target": TARGET | {"name": "*", "labels": 1}}]),
         "spec.directives[0].target.labels: unknown field"),
    ],
)  # fmt: skip
def test_bad_documents(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        part_of(given)
    assert said in str(caught.value)


def test_places_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "part.yaml"
    path.write_text("kind: DynamicConfigPart\nkind: DynamicConfigPart\n")
    with pytest.raises(ConfigError, match=r"part.yaml:2:1: 'kind' is given twice"):
        read_part(path)
    path.write_text("")
    with pytest.raises(ConfigError, match="the file is empty: a DynamicConfigPart document is"):
        read_part(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_part(tmp_path / "none")
    path.write_text(
        "apiVersion: config.holdfast.dev/v1alpha1\nkind: DynamicConfigPart\nspec: {x: 1}\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_part(path)
    assert f"{path}:3:8: spec.x: unknown field" in str(caught.value)


def test_sources() -> None:
    assert plugin_of(parse_source("Plugin/a.b-c")) == "a.b-c"
    assert plugin_of(parse_source("Owner/ci")) == ""
    for text in ("", "Plugin", "Plugin/", "plugin/a", "Owner/a/b", "Owner/a\n", "Owner/ä", "X/a"):
        with pytest.raises(ValueError, match="is not a"):
            parse_source(text)
