from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from holdfast.errors import LedgerError
from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.child import in_child, kill
from tests.state.samples import claim


def _holding_child(paths: Paths) -> int:
    """A process that has the ledger open, until it is told to go by SIGUSR1, and has written one
    claim."""
    ready, tell = os.pipe()

    def work() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        with Ledger.open(paths, command="holdfast apply r.yaml", clock=lambda: 86400.0) as ledger:
            ledger.write_claims([claim(1)])
            os.write(tell, b"x")
            signal.sigtimedwait({signal.SIGUSR1}, 600)

    pid = in_child(work)
    os.close(tell)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    return pid


def test_the_holder_is_named(paths: Paths) -> None:
    pid = _holding_child(paths)
    try:
        with pytest.raises(LedgerError) as caught:
            Ledger.open(paths, command="holdfast adopt")
    finally:
        kill(pid)
    assert f"process {pid} (`holdfast apply r.yaml`) since 1970-01-02 00:00:00 UTC" in str(
        caught.value
    )
    assert "Nothing was touched" in str(caught.value)


def test_a_killed_holder_holds_nothing(paths: Paths) -> None:
    kill(_holding_child(paths))
    with Ledger.read(paths) as ledger:
        assert ledger.claims() == {claim(1).key: claim(1)}
    with Ledger.open(paths, command="holdfast apply") as ledger:
        assert ledger.claims() == {claim(1).key: claim(1)}
        assert ledger.check() == []


def test_the_second_waits_as_long_as_told(paths: Paths) -> None:
    pid = _holding_child(paths)
    started = time.monotonic()
    with pytest.raises(LedgerError, match=r"still, after waiting 0\.2 s, held by process"):
        Ledger.open(paths, command="holdfast apply", wait=0.2)
    assert time.monotonic() - started >= 0.2
    telling = threading.Timer(0.3, os.kill, (pid, signal.SIGUSR1))
    telling.start()
    with Ledger.open(paths, command="holdfast apply", wait=300) as ledger:
        assert ledger.claims() == {claim(1).key: claim(1)}
    telling.join()
    assert os.waitpid(pid, 0) == (pid, 0)


def test_a_reader_works_beside_a_writer_and_sees_whole_transactions(paths: Paths) -> None:
    def work() -> None:
        with Ledger.open(paths, command="apply") as ledger:
            for generation in range(10_000):
                ledger.write_claims([claim(n, generation) for n in range(50)])

    with Ledger.open(paths, command="apply") as ledger:
        ledger.write_claims([claim(n, 0) for n in range(50)])
    pid = in_child(work)
    seen: set[int] = set()
    try:
        deadline = time.monotonic() + 120
        while len(seen) < 5 and time.monotonic() < deadline:
            with Ledger.read(paths) as reader:
                generations = [found.generation for found in reader.claims().values()]
            assert len(generations) == 50
            assert len(set(generations)) == 1
            seen.add(generations[0])
    finally:
        kill(pid)
    assert len(seen) >= 5, "the writer went on while it was read"


def test_opening_twice_in_one_process_is_refused_too(ledger: Ledger, paths: Paths) -> None:
    with pytest.raises(LedgerError, match=f"process {os.getpid()} "):
        Ledger.open(paths, command="apply")
    ledger.close()
    Ledger.open(paths, command="apply").close()


def test_a_child_that_outlives_its_parent_s_ledger_does_not_keep_the_lock(paths: Paths) -> None:
    ledger = Ledger.open(paths, command="apply")
    pid = in_child(lambda: time.sleep(30))
    ledger.close()
    try:
        Ledger.open(paths, command="apply").close()
    finally:
        kill(pid)
