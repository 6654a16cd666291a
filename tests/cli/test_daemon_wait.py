"""A command that meets a socket on which nobody answers yet, or ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast.api import limits
from holdfast.api.conditions import Gone, Silent
from holdfast.cli import daemon
from holdfast.cli.exit import Exit
from holdfast.paths import Paths
from tests.api.handed import NAMES, held


def test_who_never_answers_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "STARTING_S", 2.0)
    with (
        held(root),
        pytest.raises(Silent) as told,
        daemon.connect(Paths(root), reads=False),
    ):
        pass
    assert str(told.value) == (
        f"{root}/run/holdfast/{NAMES[0]}: no answer for 2 s; a process listens there, and hangs:"
        " end it, or look into its log"
    )
    assert told.value.exit_code == Exit.FAILED
    assert capsys.readouterr().err == "waiting for the daemon to answer\n"


def test_a_live_view_waits_without_a_word(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "ABOUT_S", 2.0)
    with held(root), pytest.raises(Silent), daemon.connect(Paths(root), reads=True, waits=False):
        pass
    assert capsys.readouterr().err == ""


def test_sockets_that_are_closed_meanwhile(root: Path) -> None:
    def close() -> None:
        for one in found:
            one.close()

    with held(root) as found:
        # As when a service is stopped: who waits is let go, and nobody listens after that.
        closing = threading.Timer(1.5, close)
        closing.start()
        told = f"{NAMES[0]}: nothing was touched: the daemon ended before it answered, or could not"
        with pytest.raises(Gone, match=told), daemon.connect(Paths(root), reads=True):
            pass
        closing.join()
