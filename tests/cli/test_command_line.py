"""The command line itself: its exit codes, its help, its manners."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.cli import reference
from holdfast.cli.exit import MEANINGS, Exit
from holdfast.cli.main import run
from holdfast.errors import ConfigError, HoldfastError, LedgerError, Refused
from tests.cli.conftest import WAN, Holdfast
from tests.unprivileged import as_user

DOCS = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("bogus",),
        ("plan", "--bogus"),
        ("plan", "a.yaml", "b.yaml"),
        ("plan", "-o", "xml"),
        ("reconcile",),
        ("explain",),
        ("forget",),
        ("ledger", "bogus"),
        ("apply", "--wait", "-1"),
        ("generations", "show", "0"),
        ("generations", "show", "99999999999999999999"),
        ("rollback", "--to", "99999999999999999999"),
        ("events", "--after", "99999999999999999999"),
        ("events", "--resource", "wan"),
        ("events", "--resource", "Interface/"),
        ("completion", "tcsh"),
    ],
)
def test_a_wrong_command_line_is_64(holdfast: Holdfast, words: tuple[str, ...]) -> None:
    done = holdfast.run(*words)
    assert done.code == Exit.USAGE
    assert done.out == ""
    assert "Usage: holdfast" in done.err


@pytest.mark.usefixtures("wan")
def test_in_a_folder_that_is_gone(holdfast: Holdfast) -> None:
    """As of a shell that stayed in it. What is named by a whole path is found all the same."""
    file, gone = holdfast.declare(WAN), holdfast.folder / "gone"
    holdfast.ok("apply", str(file), "--yes")
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    for words, code in ((("status", str(file)), 0), (("status", "router.yaml"), 1)):
        gone.mkdir()
        done = subprocess.run(
            ["sh", "-c", script, "sh", *holdfast.arguments(*words)],
            env=holdfast.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_the_nearest_command_is_suggested(holdfast: Holdfast) -> None:
    assert "Did you mean 'apply'?" in holdfast.run("aply").err


@pytest.mark.parametrize("words", [("--help",), ("plan", "-h"), ("ledger", "import", "--help")])
def test_help_is_no_error(holdfast: Holdfast, words: tuple[str, ...]) -> None:
    done = holdfast.ok(*words)
    assert done.out.startswith("Usage: holdfast")


def test_version(holdfast: Holdfast) -> None:
    assert holdfast.ok("--version").out == f"holdfast {__version__}\n"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"holdfast {__version__}\n"
    assert "click" not in done.stderr
    assert "holdfast.cli" not in done.stderr


def test_errors_lead_to_the_documented_codes() -> None:
    assert HoldfastError.exit_code == Exit.FAILED
    assert ConfigError.exit_code == Exit.INVALID
    assert Refused.exit_code == Exit.REFUSED
    assert LedgerError.exit_code == Exit.LEDGER
    assert set(MEANINGS) == set(Exit)


def test_validate(holdfast: Holdfast) -> None:
    path = holdfast.declare(WAN)
    done = holdfast.ok("validate", "router.yaml")
    assert done.out == "router.yaml: valid, 1 resource declaring 1 artifact\n"
    path.write_text(path.read_text().replace("mtu: 1500", "mtu: 9, adminup: true"))
    done = holdfast.run("validate", "router.yaml")
    assert done.code == 3
    lines = done.err.splitlines()
    assert all(line.startswith("router.yaml:9:") for line in lines[:2])
    assert "did you mean 'adminUp'?" in done.err
    assert "(2 problems)" in lines[-1]


@pytest.mark.parametrize("text", ["", "just text", "{", "\x00", "a: [b", "- 1\n- 2\n", "é" * 10])
def test_what_is_no_configuration(holdfast: Holdfast, text: str) -> None:
    (holdfast.folder / "router.yaml").write_text(text)
    for command in ("validate", "plan", "apply"):
        done = holdfast.run(command, "router.yaml", *(["--yes"] if command == "apply" else []))
        assert done.code == 3, (command, done.err)
        assert done.err.startswith(("router.yaml:1:", "router.yaml:2:1:"))
        assert "Traceback" not in done.err


def test_a_file_that_cannot_be_read(holdfast: Holdfast) -> None:
    assert "No such file or directory" in holdfast.run("plan", "missing.yaml").err
    assert "it is not a regular file, but a directory" in holdfast.run("plan", ".").err
    assert holdfast.run("apply", ".", "--yes").code == 3


@pytest.mark.parametrize("command", ["validate", "plan", "status"])
def test_a_first_command_without_a_file(holdfast: Holdfast, command: str, netns: object) -> None:
    done = holdfast.run(command)
    assert done.code == 3
    assert "etc/holdfast/router.yaml: there is no such file: write it, or name" in done.err
    assert netns


@pytest.mark.parametrize("word", ["0", "x", "-1", "9223372036854775808"])
def test_what_is_no_number(holdfast: Holdfast, word: str) -> None:
    done = holdfast.run("events", "--after", word)
    assert f"{word!r} is not a number from 1 on" in done.err


def test_a_name_is_no_resource(holdfast: Holdfast) -> None:
    done = holdfast.run("events", "--resource", "wan")
    assert "'wan' is no resource: give its kind and name, such as Interface/wan" in done.err


def test_a_plan_that_cannot_be_stored(holdfast: Holdfast, netns: object) -> None:
    holdfast.declare(WAN)
    done = holdfast.run("plan", "router.yaml", "--out", "missing/the.plan")
    assert done.code == 1
    assert "holdfast: missing/the.plan: No such file or directory" in done.err
    done = holdfast.run("plan", "router.yaml", "--out", ".")
    assert "Is a directory" in done.err
    assert "fault" not in done.err
    assert netns


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_what_takes_root_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Loads what it needs: Python may be where another user cannot read it.
    run(["--root", str(tmp_path), "ledger", "export", str(tmp_path / "export.json")])
    capsys.readouterr()
    with as_user():
        assert run(["--root", "/nonexistent", "ledger", "export", "/export.json"]) == Exit.FAILED
    assert "Permission denied; this takes root: run it with sudo" in capsys.readouterr().err


def test_faults_of_our_own_are_short_unless_asked(holdfast: Holdfast) -> None:
    """A resource module that cannot be imported stands for any fault."""
    shadow = holdfast.folder / "sitecustomize.py"
    shadow.write_text("import sys\nsys.modules['holdfast.resources.router'] = None\n")
    holdfast.declare(WAN)
    path = str(holdfast.folder)
    done = holdfast.start_and_wait("validate", "router.yaml", PYTHONPATH=path)
    assert done.code == 1
    assert "a fault in Holdfast itself: ModuleNotFoundError" in done.err
    assert "HOLDFAST_DEBUG=1" in done.err
    assert "Traceback" not in done.err
    done = holdfast.start_and_wait("validate", "router.yaml", PYTHONPATH=path, HOLDFAST_DEBUG="1")
    assert "Traceback" in done.err


def test_schema_export_is_a_schema_that_takes_our_files(holdfast: Holdfast) -> None:
    import jsonschema
    import yaml

    schema = holdfast.ok("schema", "export").json
    valid = yaml.safe_load(holdfast.declare(WAN).read_text())
    jsonschema.validate(valid, schema)
    valid["spec"]["resources"][0]["spec"]["mtu"] = "many"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(valid, schema)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(holdfast: Holdfast, shell: str) -> None:
    assert "_HOLDFAST_COMPLETE" in holdfast.ok("completion", shell).out


def test_completion_completes(holdfast: Holdfast) -> None:
    done = subprocess.run(
        [*holdfast.arguments()[:1]],
        env=os.environ
        | {
            "_HOLDFAST_COMPLETE": "bash_complete",
            "COMP_WORDS": "holdfast re",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "plain,reconcile\n"


@pytest.mark.parametrize("page", ["commands.md", "events.md", "exit-codes.md"])
def test_reference_pages_are_up_to_date(page: str) -> None:
    remedy = "run `python -m holdfast.cli.reference docs/reference`"
    assert (DOCS / page).read_text() == reference.pages()[page], remedy


def test_output_forms_are_valid_everywhere(holdfast: Holdfast, netns: object) -> None:
    """Every command that prints data prints it as JSON and as YAML."""
    import yaml

    holdfast.declare(("Interface", "lo", "{ifname: lo, adminUp: true}"))
    for words in (
        ("plan", "router.yaml"),
        ("apply", "router.yaml", "--yes"),
        ("status", "router.yaml"),
        ("explain", "lo", "router.yaml"),
        ("explain", "Interface/lo", "router.yaml"),
        ("adopt", "--candidates", "router.yaml"),
        ("ledger", "show"),
    ):
        first = holdfast.ok(*words, "-o", "json")
        second = holdfast.ok(*words, "-o", "yaml")
        assert json.loads(first.out)["format_version"] == "1.0", words
        assert yaml.safe_load(second.out).keys() == json.loads(first.out).keys(), words
    assert netns
