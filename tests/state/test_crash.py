"""SIGKILL in the middle of writing: the ledger stays sound and holds whole transactions only."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.child import in_child, kill
from tests.state.samples import File, claim

KILLS = 25
_random = random.Random(2)  # noqa: S311 (moments, no secrets)


def _killed_while(work: Callable[[Callable[[], None]], None]) -> int:
    """Lets a child work, kills it some moment after it has said a few times that something is
    done, and answers how often it said so."""
    told, tell = os.pipe()
    pid = in_child(lambda: work(lambda: _say(tell)))
    os.close(tell)
    try:
        said = 0
        wanted = _random.randint(1, 4)
        while said < wanted:
            more = len(os.read(told, 1))
            assert more, "the child ended by itself"
            said += more
        time.sleep(_random.random() * 0.02)
    finally:
        kill(pid)
    while more := len(os.read(told, 65536)):
        said += more
    os.close(told)
    return said


def _say(tell: int) -> None:
    os.write(tell, b".")


def test_claims(paths: Paths) -> None:
    rounds = 0
    for _ in range(KILLS):

        def work(done: Callable[[], None], start: int = rounds) -> None:
            with Ledger.open(paths, command="apply") as ledger:
                for generation in range(start + 1, start + 100_000):
                    # Of every round some claims are put and others removed.
                    put = [claim(n, generation) for n in range(generation % 2, 300, 2)]
                    gone = [claim(n).key for n in range(1 - generation % 2, 300, 2)]
                    ledger.write_claims(put, gone)
                    done()

        acknowledged = rounds + _killed_while(work)
        with Ledger.open(paths, command="apply") as ledger:
            assert ledger.check() == []
            found = ledger.claims()
        assert len(found) == 150
        (rounds,) = {item.generation for item in found.values()}  # one: no part of a transaction
        assert rounds in (acknowledged, acknowledged + 1), "an acknowledged transaction is gone"


def test_generations(paths: Paths) -> None:
    written = 0
    for _ in range(KILLS):

        def work(done: Callable[[], None]) -> None:
            with Ledger.open(paths, command="apply") as ledger:
                while True:
                    routes = File("routes.txt", os.urandom(50_000))
                    number = ledger.begin_generation([File("router.yaml", b"same"), routes])
                    ledger.finish_generation(number, "converged")
                    done()

        written += _killed_while(work)
        with Ledger.open(paths, command="apply") as ledger:
            assert ledger.check() == []
            for generation in ledger.generations():
                contents = ledger.generation_files(generation.number)
                assert set(contents) == {"router.yaml", "routes.txt"}
            unfinished = [item for item in ledger.generations() if item.state == "applying"]
            assert len(unfinished) <= KILLS
            assert written <= ledger.generations(limit=1)[0].number <= written + KILLS


def test_while_the_ledger_is_being_made(tmp_path: Path) -> None:
    """A half-made ledger is made anew; it is never mistaken for a damaged one."""
    for turn in range(KILLS):

        def work(done: Callable[[], None], turn: int = turn) -> None:
            for number in range(10_000):
                Ledger.open(Paths(tmp_path / f"{turn}.{number}"), command="apply").close()
                done()

        _killed_while(work)
        for root in tmp_path.glob(f"{turn}.*"):
            with Ledger.open(Paths(root), command="apply") as ledger:
                ledger.write_claims([claim(1)])
                assert ledger.check() == []
            assert not list((root / "var/lib/holdfast").glob("*.new*"))
