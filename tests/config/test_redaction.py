"""Which names speak of secrets."""

from __future__ import annotations

import pytest

from holdfast.config.redaction import is_secret, redact, speaks_of_secret


@pytest.mark.parametrize(
    ("name", "secret", "speaks"),
    [
        ("password", True, True),
        ("apiToken", True, True),
        ("API_KEY", True, True),
        ("private-key", True, True),
        ("AWS_SECRET_ACCESS_KEY", True, True),
        ("PRE_SHARED_KEY", True, True),
        ("passwordFile", False, True),
        ("TOKEN_FILE", False, True),
        ("secretEncoding", False, True),
        ("key", False, False),
        ("destination", False, False),
    ],
)
def test_names(name: str, secret: bool, speaks: bool) -> None:
    assert (is_secret(name), speaks_of_secret(name)) == (secret, speaks)


def test_the_environment_of_a_plugin_is_not_shown() -> None:
    text = "spec:\n  env: {API_KEY: hunter2, FEED: a.csv}\n"
    assert redact(text) == "spec:\n  env: {API_KEY: (not shown), FEED: (not shown)}\n"
