"""Secrets in what is no field: lines that were commented out, files of other programs."""

from __future__ import annotations

import pytest

from holdfast.config.redaction import redact
from holdfast.resources.spec.secret_fields import of_kind

KEY = "QEFvLuLMBLnVPPYPrP3PPzBlmL9ZEzcvr9LHDkSHnkY="
HIDDEN = [
    "# password: hunter2",
    "#password: hunter2",
    "#  - password: 'hunter2'",
    '#  "password": "hunter2",',
    "## passwd, password: hunter2",
    "# password: hunter#2",
    "#   presharedKey: hunter2",
    "#presharedKey=hunter2",
    "# PRIVATE-KEY: hunter2",
    "# PrivateKey = hunter2",
    "# api_token: hunter2 # old",
    "# spec: {username: me, password: hunter2}",
    "# env: {FEED: hunter2}",
    "# env:\n#   FEED: hunter2\n#   more: hunter2",
    "# password: |\n#   hunter2\n#   hunter2",
    "# password: >-\n#     hunter2",
    "# password:\n#   hunter2",
    "# password hunter2",
    "# user me\n# password hunter2",
    '# "me@isp" * "hunter2" *',
    "# me * hunter2",
    "username: me  # password: hunter2",
    "username: me  # was: other password: hunter2",
    "#\tpassword:\thunter2",
    "# pass: hunter2",
    "# DB_PASS=hunter2",
    "# passwd=hunter2",
    "# Passwort: hunter2",
    "# Authorization: Basic hunter2",
    "# bearer hunter2",
    "# Bearer hunter2 was it until May",
    "# https://u:hunter2@h/",
    "# feed https://hunter2@h/list, then",
    "# https://u:hunter/2@h/",
    "# password is hunter2",
    "# the old password was hunter2, in May",
    "# password: >-\n#   hunter1\n#\n#   hunter2",
    "# password: >-\n#   hunter1\n\n#   hunter2",
    "# password: hunter2\n#   hunter3",
    "# env:\n# - hunter2",
    "# password: hunter2 (not shown)",
]
# Beside and between what is struck out of a document, and what is kept of it.
BESIDE = {
    "env:\n  # FEED: https://me:hunter2@feed.example/\n  A: x": "A",
    "env:\n  A: x\n# hunter2\n  B: y": "B",
    "env:\n  A: x\n  # OLD: hunter2": "A",
    "env:\n  A: x\n#  OLD: hunter2\n": "A",
    "env: # hunter2\n  A: x": "A",
    "env:\n  FEED: x   # was hunter1": "FEED",
    "env: {FEED: x}   # was hunter1": "FEED",
    "env:\n  FEED: 'a # b'   # was hunter1": "FEED",
    "password: x # was hunter1": "password",
    "password: # was hunter1\n  x": "password",
    "password:\n  # hunter1\n  x": "password",
    "password: |  # hunter1\n  x": "password",
    "feed: https://me:hunter2@feed.example/": "@feed.example/",
}


@pytest.mark.parametrize("said", HIDDEN)
@pytest.mark.parametrize(
    "around",
    [
        "kind: Router\n{}\nmore: here\n",  # YAML
        "kind: [unreadable\n{}\nmore: here\n",
        "10.0.0.0/8 via 192.0.2.1\n{}\n10.1.0.0/16\n",  # a list of routes
        "{}\n",
    ],
)
def test_a_line_that_says_a_secret(said: str, around: str) -> None:
    text = around.format(said)
    shown = redact(text)
    assert "hunter" not in shown
    assert shown.count("\n") == text.count("\n")
    for kept in ("more: here", "10.0.0.0/8 via 192.0.2.1", "10.1.0.0/16"):
        assert (kept in shown) == (kept in text)


@pytest.mark.parametrize("said", BESIDE)
@pytest.mark.parametrize("after", ["more: here\n", "# ours\nmore: here\n", "more: [unreadable\n"])
def test_comments_beside_a_secret(said: str, after: str) -> None:
    shown = redact(f"# the lan behind the office\nkind: Router\n{said}\n{after}")
    assert "hunter" not in shown
    assert BESIDE[said] in shown or "unreadable" in after
    assert shown.startswith("# the lan behind the office\nkind: Router\n")
    assert shown.endswith(after) or "unreadable" in after
    if "unreadable" not in after:
        said = said.replace("|  # hunter1", "")  # that is part of the block
    assert shown.count("#") == said.replace("'a # b'", "").count("#") + 1 + after.count("#")


@pytest.mark.parametrize(
    "text",
    [
        f"# {KEY}\n",
        f"# wg: {KEY}\n",
        f"PrivateKey = {KEY}\n",
        f"PresharedKey={KEY}\n",
        f"10.0.0.0/8 # {KEY}\n",
    ],
)
def test_a_key_of_wireguard(text: str) -> None:
    assert KEY not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# the provider's router answers at 192.0.2.1\na: b\n",
        "a: b # see passwordFile: /etc/holdfast/secret\n",
        f"peers:\n  - publicKey: {KEY}\n# publicKey: {KEY}\n",
        "10.0.0.0/8 via 192.0.2.1 dev eth0 # our office\n",
        "passwordFile: /etc/x # ours\n",
        "# the lan behind the office\na: b\n",
        "# packets pass through; see https://example.net/a@b\na: b # all pass\n",
        "# passwords are in the safe\na: b\n",
        "a: https://example.net:8443/@me\n",
    ],
)
def test_what_holds_none_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["FEED", "API_KEY", "x", "PATH_OF_FEED"])
def test_every_value_of_an_environment(name: str) -> None:
    block = f"kind: Plugin\nspec:\n  env:\n    {name}: hunter2\n    B: hunter2\n  timeout: 5s\n"
    flow = f"- {{kind: Plugin, spec: {{env: {{{name}: hunter2}}, timeout: 5s}}}}\n"
    for text in (block, flow):
        shown = redact(text, of_kind)
        assert "hunter" not in shown
        assert name in shown
        assert "timeout: 5s" in shown
