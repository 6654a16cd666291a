"""`dynamic`: parts by hand, and what every command makes of them."""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config.part import Part
from holdfast.paths import Paths
from holdfast.resources.spec.moments import format_moment
from holdfast.state.ledger import Ledger
from tests.cli.conftest import ADMITTING, WAN, WAN_ADDRESS, Holdfast, route
from tests.cli.served import daemon
from tests.namespace import Namespace
from tests.resources.parts import raw

POLICY = """
    - apiVersion: config.holdfast.dev/v1alpha1
      kind: DynamicOverridePolicy
      metadata: {name: ci}
      spec:
        allow:
          - source: Owner/ci
            operations: [mask]
            targets:
              - {apiVersion: net.holdfast.dev/v1alpha1, kind: IPv4Route, name: fallback}
"""
APP = raw("IPv4Route", "app", {"destination": "10.1.0.0/16", "gateway": "192.0.2.9"})
MASK = {
    "op": "mask",
    "target": {"apiVersion": "net.routerd.net/v1alpha1", "kind": "IPv4Route", "name": "fallback"},
    "reason": "the app is elsewhere",
}


@pytest.fixture
def served(holdfast: Holdfast) -> Path:
    path = holdfast.declare(ADMITTING, WAN, WAN_ADDRESS, route("fallback", "10.1.0.0/16"))
    path.write_text(path.read_text() + POLICY.lstrip("\n"))
    return path


def write(holdfast: Holdfast, generation: int = 1, lasts: float = 300, **spec: Any) -> str:
    now = time.time()
    document = {
        "apiVersion": "config.routerd.net/v1alpha1",
        "kind": "DynamicConfigPart",
        "metadata": {"name": "by-hand"},
        "spec": {
            "source": "Owner/ci",
            "generation": generation,
            "observedAt": format_moment(now),
            "expiresAt": format_moment(now + lasts),
            "resources": [APP],
            "directives": [MASK],
        }
        | spec,
    }
    name = f"part-{generation}.yaml"
    (holdfast.folder / name).write_text(yaml.safe_dump(document, sort_keys=False))
    return name


@pytest.mark.usefixtures("served")
def test_a_part_is_withdrawn_by_its_name(holdfast: Holdfast) -> None:
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    assert "Owner/ci" in holdfast.ok("dynamic", "describe", "by-hand", "router.yaml").out
    assert holdfast.ok("dynamic", "withdraw", "by-hand").out == "Owner/ci#1 is withdrawn\n"
    done = holdfast.run("dynamic", "withdraw", "by-hand")
    assert (done.code, "by-hand contributes nothing that could" in done.err) == (1, True)


@pytest.mark.usefixtures("served")
def test_a_part_is_put_in_force_and_withdrawn(holdfast: Holdfast, wan: Namespace) -> None:
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "via 192.0.2.254" in wan.ip("route show 10.1.0.0/16")
    assert holdfast.ok("dynamic", "list", "router.yaml").out == "no source has handed in any part\n"
    assert holdfast.ok("dynamic", "diff", "router.yaml").out == "no dynamic config changes\n"
    done = holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    assert done.out == "Owner/ci#1 is stored, and counts from now on\n"
    assert "1 to update" in holdfast.ok("plan", "router.yaml").out
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "via 192.0.2.9" in wan.ip("route show 10.1.0.0/16")
    lines = holdfast.ok("dynamic", "list", "router.yaml").out.splitlines()
    assert lines[0].split() == [
        "SOURCE", "GEN", "STATUS", "RESOURCES", "DIRECTIVES", "ACTIONPLANS", "EXPIRES",
    ]  # fmt: skip
    assert lines[1].split()[:6] == ["Owner/ci", "1", "Active", "1", "1", "0"]
    added, masked = holdfast.ok("dynamic", "diff", "router.yaml").out.splitlines()
    assert added == "+ IPv4Route/app source=Owner/ci generation=1"
    assert masked.startswith("- IPv4Route/fallback maskedBy=Owner/ci#1 maskedUntil=20")
    assert masked.endswith("Z reason=the app is elsewhere")
    done = holdfast.ok("dynamic", "withdraw", "Owner/ci")
    assert done.out == "Owner/ci#1 is withdrawn\n"
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "via 192.0.2.254" in wan.ip("route show 10.1.0.0/16")
    assert "Expired" in holdfast.ok("dynamic", "list", "router.yaml").out
    with Ledger.read(Paths(holdfast.root)) as ledger:
        kinds = [event.kind for event in ledger.events()]
    assert [kind for kind in kinds if kind.startswith(("part", "mask"))] == [
        "part-accepted", "mask-applied", "part-ended", "mask-lifted",
    ]  # fmt: skip


@pytest.mark.usefixtures("served")
def test_a_trial_of_the_file_in_force_is_none_of_parts(holdfast: Holdfast, wan: Namespace) -> None:
    """What they change, or no longer declare, would be for good, though a trial was asked for."""

    def tried() -> str:
        before = wan.ip("route show")
        done = holdfast.run("apply", "router.yaml", "--yes", "--confirm-within", "1h")
        assert done.code == 4
        assert wan.ip("route show") == before
        with Ledger.read(Paths(holdfast.root)) as ledger:
            assert ledger.waiting() is None
        return done.err

    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    assert "nothing was touched: the file is the one in force" in tried()
    assert "from what Owner/ci declares" in tried()
    holdfast.ok("apply", "router.yaml", "--yes")
    wan.ip("route del 10.1.0.0/16")
    repaired = holdfast.ok("apply", "router.yaml", "--yes", "--confirm-within", "1h")
    assert "Nothing waits to be confirmed: no other configuration" in repaired.err
    assert "via 192.0.2.9" in wan.ip("route show 10.1.0.0/16")
    # The same once more, by another number: it is no other configuration.
    holdfast.ok("dynamic", "put", write(holdfast, 2), "router.yaml")
    wan.ip("route del 10.1.0.0/16")
    holdfast.ok("apply", "router.yaml", "--yes", "--confirm-within", "1h")
    assert "via 192.0.2.9" in wan.ip("route show 10.1.0.0/16")
    holdfast.ok("dynamic", "withdraw", "Owner/ci")
    assert "or does not any more" in tried()
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "via 192.0.2.254" in wan.ip("route show 10.1.0.0/16")


@pytest.mark.usefixtures("wan")
@pytest.mark.parametrize("through", ["the command", "a daemon"])
def test_parts_by_name_and_of_one_kind(holdfast: Holdfast, served: Path, through: str) -> None:
    """A source, a part of it, the name it was handed in under, and that of its source alone."""
    with ExitStack() as stack:
        if through == "a daemon":
            stack.enter_context(daemon(holdfast, served))
        file = () if through == "a daemon" else ("router.yaml",)
        for generation in (1, 2):
            holdfast.ok("dynamic", "put", write(holdfast, generation), *file)
        whole = holdfast.ok("dynamic", "describe", "Owner/ci", *file).out
        assert "Owner/ci#1: Superseded" in whole
        for name in ("by-hand", "ci"):
            assert holdfast.ok("dynamic", "describe", name, *file).out == whole, name
        one = holdfast.ok("dynamic", "describe", "Owner-ci-1", *file).out
        assert one == holdfast.ok("dynamic", "describe", "Owner/ci#1", *file).out != whole
        assert "no such source or part" in holdfast.run("dynamic", "describe", "nobody", *file).err

        def listed(*words: str) -> list[int]:
            told = holdfast.ok("dynamic", "list", *file, *words, "-o", "json").json
            return [each["generation"] for each in told["parts"]]

        assert listed("--all") == [2, 1]
        assert listed("--all", "--status", "superseded") == [1]
        for words in (("--source", "Owner/ci"), ("--source", "by-hand"), ("--status", "Active")):
            assert listed(*words) == [2], words
        for words in (("--source", "Owner/cd"), ("--status", "Expired")):
            assert listed(*words) == [], words
        done = holdfast.ok("dynamic", "list", *file, "--source", "Owner/cd")
        assert done.out == "no part is like that\n"


@pytest.mark.usefixtures("wan")
def test_what_is_masked_is_suppressed_and_well(holdfast: Holdfast, served: Path) -> None:
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    holdfast.ok("apply", "router.yaml", "--yes")
    done = holdfast.ok("status", "router.yaml")
    assert "Suppressed  IPv4Route/fallback        masked by Owner/ci#1 until 20" in done.out
    assert "6 resources: 5 Healthy, 1 Suppressed." in done.out
    status = holdfast.ok("status", "router.yaml", "-o", "json").json
    (one,) = [each for each in status["resources"] if each["phase"] == "Suppressed"]
    assert one["maskedBy"] == ["Owner/ci#1"]
    assert one["maskedUntil"].endswith("Z")
    assert one["reason"].endswith(": the app is elsewhere")
    assert one["place"].startswith(str(served))
    assert status["healthy"] is True
    story = holdfast.ok("explain", "IPv4Route/fallback", "router.yaml").out
    assert "Suppressed (masked by Owner/ci#1" in story
    story = holdfast.ok("explain", "route", "10.1.0.0/16", "router.yaml").out
    assert "by IPv4Route/app at Owner/ci#1 resources[0]" in story


@pytest.mark.usefixtures("wan", "served")
def test_explain_tells_of_what_is_masked(holdfast: Holdfast) -> None:
    """Whether it was there once or never."""
    holdfast.ok("dynamic", "put", write(holdfast, resources=[]), "router.yaml")
    story = holdfast.ok("explain", "route", "10.1.0.0/16", "router.yaml").out
    assert "declared    not now: it would be by IPv4Route/fallback at " in story
    assert ", which Owner/ci#1 masks\n" in story
    holdfast.ok("dynamic", "withdraw", "Owner/ci")
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.ok("dynamic", "put", write(holdfast, 2, resources=[]), "router.yaml")
    story = holdfast.ok("explain", "route", "10.1.0.0/16", "router.yaml").out
    assert "declared    not now: it would be by IPv4Route/fallback at " in story
    assert "next apply  deletes it" in story


@pytest.mark.usefixtures("wan", "served")
def test_explain_finds_what_a_part_declared_once(holdfast: Holdfast) -> None:
    part = write(holdfast, resources=[APP | {"metadata": {"name": "extra"}}], directives=[])
    done = holdfast.run("dynamic", "put", part, "router.yaml")
    assert done.code == 1
    assert "Owner/ci#1 is stored, and rejected:" in done.err
    assert "is declared differently by IPv4Route/fallback" in done.err
    other = APP | {"spec": {"destination": "10.2.0.0/16", "gateway": "192.0.2.9"}}
    holdfast.ok("dynamic", "put", write(holdfast, 2, resources=[other]), "router.yaml")
    holdfast.ok("apply", "router.yaml", "--yes")
    holdfast.ok("dynamic", "withdraw", "Owner/ci")
    story = holdfast.ok("explain", "route", "10.2.0.0/16", "router.yaml").out
    assert "until generation 1 by IPv4Route/app at Owner/ci resources[0]" in story


@pytest.mark.usefixtures("served")
def test_everything_about_a_source(holdfast: Holdfast) -> None:
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    plans = [{"name": "assign", "provider": "aws"}]
    second = write(holdfast, 2, directives=[MASK | {"reason": ""}], actionPlans=plans)
    holdfast.ok("dynamic", "put", second, "router.yaml")
    listed = holdfast.ok("dynamic", "list", "router.yaml", "--all", "-o", "json").json["parts"]
    assert [(one["generation"], one["status"]) for one in listed] == [
        (2, "Active"),
        (1, "Superseded"),
    ]
    newest = holdfast.ok("dynamic", "list", "router.yaml", "-o", "yaml").out
    assert [one["generation"] for one in yaml.safe_load(newest)["parts"]] == [2]
    text = holdfast.ok("dynamic", "describe", "Owner/ci", "router.yaml").out
    assert text.startswith("Owner/ci#2: Active\n")
    assert "  action plan  assign\n" in text
    assert "  mask        IPv4Route/fallback (the app is elsewhere)\n" in text
    (one,) = holdfast.ok(
        "dynamic", "describe", "Owner-ci-1", "router.yaml", "-o", "json"
    ).json["parts"]  # fmt: skip
    assert one["digest"].startswith("sha256:")
    assert one["resources"] == [APP]
    assert one["directives"] == [MASK]
    done = holdfast.run("dynamic", "describe", "Owner/nobody", "router.yaml")
    assert done.code == 1
    assert "no such source or part; there are parts of Owner/ci" in done.err


@pytest.mark.usefixtures("wan", "served")
def test_the_effective_config_can_be_applied_as_a_file(holdfast: Holdfast) -> None:
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    text = holdfast.ok("dynamic", "render", "router.yaml").out
    resources = yaml.safe_load(text)["spec"]["resources"]
    assert [one["metadata"]["name"] for one in resources] == ["ci", "wan", "wan", "ci", "app"]
    assert resources[-1] == APP
    holdfast.ok("dynamic", "withdraw", "Owner/ci")
    (holdfast.folder / "whole.yaml").write_text(text)
    assert holdfast.ok("validate", "whole.yaml")
    as_json = holdfast.ok("dynamic", "render", "router.yaml", "-o", "json").json
    assert [one["metadata"]["name"] for one in as_json["spec"]["resources"]] == [
        "ci", "wan", "wan", "fallback", "ci",
    ]  # fmt: skip


def test_a_secret_is_not_rendered(holdfast: Holdfast) -> None:
    session = "{interface: wan, username: me, password: hush-hush}"
    holdfast.declare(WAN, ("PPPoEInterface", "isp", session))
    text = holdfast.ok("dynamic", "render", "router.yaml").out
    assert "hush" not in text
    assert "(a secret, not shown)" in text


def test_the_secrets_of_a_plugin_are_not_rendered(holdfast: Holdfast) -> None:
    spec = "{executable: /bin/true, env: {API_KEY: hush-hush, TOKEN_FILE: /etc/token}}"
    place = holdfast.declare(WAN)
    with place.open("a") as stream:
        stream.write("    - apiVersion: plugin.holdfast.dev/v1alpha1\n      kind: Plugin\n")
        stream.write(f"      metadata: {{name: cloud}}\n      spec: {spec}\n")
    for form in ("yaml", "json"):
        text = holdfast.ok("dynamic", "render", "router.yaml", "-o", form).out
        assert "hush" not in text
        assert "/etc/token" not in text, "no value of an environment is told"
        assert "TOKEN_FILE" in text


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"source": "Plugin/cloud"}, 4, "Plugin/cloud does not hand parts in this way"),
        ({"source": "Me"}, 3, "spec.source: 'Me' is not a source such as"),
        ({"observedAt": "tomorrow"}, 3, "spec.observedAt: 'tomorrow' is not a point in time"),
        ({"observedAt": "2999-01-01T00:00:00Z", "expiresAt": "2999-01-02T00:00:00Z"}, 3,
         "s in the future: the clock of the source is wrong"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, 3, "spec.expiresAt: is not after observedAt"),
        ({"generation": 0}, 3, "spec.generation: must be from 1 to"),
        ({"digest": "sha256:" + "0" * 64}, 3, "spec.digest: is not that of the resources"),
        ({"directives": [MASK | {"op": "delete"}]}, 3, "directives[0].op: must be one of mask"),
        ({"resources": ["x"]}, 3, "spec.resources[0]: must be a mapping"),
        ({"expires": 5}, 3, "spec.expires: unknown field; did you mean 'expiresAt'?"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("served")
def test_what_cannot_be_put(
    holdfast: Holdfast, changes: dict[str, Any], code: int, said: str
) -> None:
    done = holdfast.run("dynamic", "put", write(holdfast, **changes), "router.yaml")
    assert done.code == code, done.err
    assert said in done.err
    if code == 3 and "future" not in said and "after" not in said:
        assert "part-1.yaml:" in done.err or "part-0.yaml:" in done.err
    with Ledger.read(Paths(holdfast.root)) as ledger:
        assert ledger.parts() == []


@pytest.mark.usefixtures("served")
def test_the_reason_is_listed(holdfast: Holdfast) -> None:
    holdfast.ok("dynamic", "put", write(holdfast, 3), "router.yaml")
    assert holdfast.run("dynamic", "put", write(holdfast, 2), "router.yaml").code == 3
    lines = holdfast.ok("dynamic", "list", "router.yaml").out.splitlines()
    assert lines[1].split() == ["Owner/ci", "-", "Refused", "-", "-", "-", "-"]
    assert lines[2] == (
        "    Owner/ci#2: spec.generation: 2 is not above 3, which Owner/ci handed in before"
    )
    assert lines[3].split()[:3] == ["Owner/ci", "3", "Active"]
    holdfast.ok("dynamic", "put", write(holdfast, 4), "router.yaml")
    assert "Refused" not in holdfast.ok("dynamic", "list", "router.yaml").out


@pytest.mark.parametrize("served_by", ["nobody", "a daemon"])
def test_what_was_refused_can_be_forgotten(
    holdfast: Holdfast, served: Path, wan: Namespace, served_by: str
) -> None:
    with ExitStack() as stack:
        wan.ip("link set lo up")
        if served_by == "a daemon":
            stack.enter_context(daemon(holdfast, served))
        assert holdfast.run("dynamic", "put", write(holdfast, 1, lasts=-9), "router.yaml").code == 3
        assert "Refused" in holdfast.ok("dynamic", "list", "router.yaml").out
        done = holdfast.ok("dynamic", "withdraw", "Owner/ci")
        assert done.out == "Owner/ci contributes nothing; what was refused of it is forgotten\n"
        assert "Refused" not in holdfast.ok("dynamic", "list", "router.yaml").out
        done = holdfast.run("dynamic", "withdraw", "Owner/ci")
        assert (done.code, "contributes nothing that could be withdrawn" in done.err) == (1, True)


@pytest.mark.usefixtures("served", "wan")
def test_what_a_rejected_part_or_mask_is_about_is_listed(holdfast: Holdfast) -> None:
    bad = [raw("Interface", "wan", {"ifname": "x"})]
    assert holdfast.run("dynamic", "put", write(holdfast, resources=bad), "router.yaml").code == 1
    lines = holdfast.ok("dynamic", "list", "router.yaml").out.splitlines()
    assert lines[1].split()[:3] == ["Owner/ci", "1", "Rejected"]
    assert "Owner/ci#1 resources[0]: Interface/wan is declared already, at " in lines[2]
    status = holdfast.run("status", "router.yaml", "-o", "json")
    assert "Owner/ci#1 is rejected" in status.json["troubles"][0]
    assert "warning: Owner/ci#1 is rejected" in status.err
    missing = MASK | {"target": MASK["target"] | {"name": "nobody"}}  # type: ignore[operator]
    done = holdfast.ok("dynamic", "put", write(holdfast, 2, directives=[missing], resources=[]))
    assert done.out == "Owner/ci#2 is stored, and counts once there is a valid startup file\n"
    done = holdfast.ok(
        "dynamic", "put", write(holdfast, 3, directives=[missing], resources=[]), "router.yaml"
    )
    assert "mask of IPv4Route/nobody is ignored: the startup file declares no such" in done.err
    listed = holdfast.ok("dynamic", "list", "router.yaml").out
    assert "    Owner/ci#3: mask of IPv4Route/nobody is ignored" in listed
    troubles = holdfast.run("status", "router.yaml", "-o", "json").json["troubles"]
    assert any("mask of IPv4Route/nobody is ignored" in one for one in troubles)


@pytest.mark.usefixtures("wan")
def test_an_invalid_startup_file_changes_nothing(holdfast: Holdfast, served: Path) -> None:
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    holdfast.ok("apply", "router.yaml", "--yes")
    served.write_text("spec: [\n")
    done = holdfast.ok("dynamic", "diff", "router.yaml")
    assert "+ IPv4Route/app" in done.out
    assert "is invalid: generation 1 of the ledger is in force" in done.err
    assert holdfast.run("plan", "router.yaml").code == 3


@pytest.mark.usefixtures("wan", "served")
def test_a_stored_plan_is_stale_once_parts_are_others(holdfast: Holdfast) -> None:
    holdfast.run("plan", "router.yaml", "--out", "plan.json")
    holdfast.ok("dynamic", "put", write(holdfast), "router.yaml")
    done = holdfast.run("apply", "plan.json")
    assert done.code == 4
    assert "dynamic:Owner/ci is new in it" in done.err


@pytest.mark.usefixtures("wan", "served")
def test_an_older_ledger_has_no_parts(holdfast: Holdfast) -> None:
    """`apply` brings it up to date, as ever."""
    import sqlite3

    holdfast.ok("apply", "router.yaml", "--yes")
    path = Paths(holdfast.root).ledger
    with sqlite3.connect(path) as database:
        later = ("parts", "plugin_runs", "actions", "confirmations", "latches")
        for table in (*later, "declaring", "declared"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version=2")
    database.close()
    assert holdfast.run("dynamic", "list", "router.yaml").code == 5
    holdfast.ok("apply", "router.yaml", "--yes")
    assert holdfast.ok("dynamic", "list", "router.yaml").out == "no source has handed in any part\n"


@pytest.mark.usefixtures("served")
def test_expired_parts_count_for_nothing(holdfast: Holdfast, wan: Namespace) -> None:
    with Ledger.open(Paths(holdfast.root), command="test") as ledger:
        ledger.put_part(Part("Owner/ci", 1, time.time() - 60, time.time() - 1, (APP,)))
    holdfast.ok("apply", "router.yaml", "--yes")
    assert "via 192.0.2.254" in wan.ip("route show 10.1.0.0/16")


def test_a_token_is_made_and_only_its_digest_declared(holdfast: Holdfast) -> None:
    first = yaml.safe_load(holdfast.ok("dynamic", "token", "Owner/ci", "-o", "yaml").out)
    second = yaml.safe_load(holdfast.ok("dynamic", "token", "Owner/ci", "-o", "yaml").out)
    assert first["token"] != second["token"]
    assert len(first["token"]) >= 40
    expected = hashlib.sha256(first["token"].encode()).hexdigest()
    assert first["digest"] == f"sha256:{expected}"
    refused = holdfast.run("dynamic", "token", "Plugin/inventory")
    assert "is a plugin" in refused.err
    holdfast.ok("validate", str(_with_token(holdfast, first["digest"])))
    wrong = holdfast.run("validate", str(_with_token(holdfast, first["token"])))
    assert "must be `sha256:`" in wrong.out + wrong.err
    assert first["token"] not in wrong.out + wrong.err


def _with_token(holdfast: Holdfast, digest: str) -> Path:
    path = holdfast.declare(WAN)
    source = raw("DynamicConfigSource", "ci", {"source": "Owner/ci", "tokens": [digest]})
    document = yaml.safe_load(path.read_text())
    document["spec"]["resources"].append(source)
    path.write_text(yaml.safe_dump(document))
    return path
