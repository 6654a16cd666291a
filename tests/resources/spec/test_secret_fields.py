"""Secrets are declared on the field that holds them, and shown nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.config.redaction import is_secret, redact
from holdfast.render import effective_config
from holdfast.resources import registry
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.spec.secret_fields import of_kind
from holdfast.resources.spec.shape import Entry, Spec
from holdfast.runtime.plugins.redaction import redacted
from tests.resources.routers import load

_HELD: dict[str, dict[str, Any]] = {
    "PPPoEInterface": {"interface": "wan", "username": "u", "password": "hunter2"},
    "DynamicConfigSource": {"source": "Owner/ci", "tokens": ["${hunter2}"]},
    "Plugin": {"executable": "/opt/x", "env": {"FEED": "hunter2", "TOKEN": "hunter2"}},
}
_WITH_SECRETS = [name for name in registry.names() if of_kind(name)]


def _entries(spec: type[Spec]) -> Iterator[Entry]:
    for entry in spec.entries:
        yield entry
        if entry.shape.nested is not None:
            yield from _entries(entry.shape.nested)


@pytest.mark.parametrize("name", list(registry.names()))
def test_a_field_that_is_called_like_a_secret_is_declared_one(name: str) -> None:
    for entry in _entries(registry.kind(name).spec):
        assert entry.secret or not is_secret(entry.name), entry.name


@pytest.mark.parametrize("name", list(registry.names()))
def test_no_kind_that_others_may_declare_holds_a_secret(name: str) -> None:
    assert not (of_kind(name) and registry.kind(name).open_to_others)


@pytest.mark.parametrize("name", _WITH_SECRETS)
@pytest.mark.parametrize("indent", [None, 2])
def test_it_is_shown_nowhere(name: str, indent: int | None, tmp_path: Any) -> None:
    """A kind with a new secret field has to be named above."""
    spec = _HELD[name]
    assert of_kind(name) <= set(spec)
    around = [("Interface", "wan", {"ifname": "eth0"})]
    router = load(tmp_path, *around, (name, "x", spec))
    written = router.files[0].content.decode()
    assert "hunter2" in written
    assert "hunter2" not in redact(json.dumps(json.loads(written), indent=indent), of_kind)
    assert "hunter2" not in json.dumps(list(effective_config.members(Effective(router, router))))
    assert "hunter2" not in json.dumps(redacted(spec))
