from __future__ import annotations

import hashlib
import os

import pytest

from holdfast.errors import LedgerError, Refused
from holdfast.paths import Paths
from holdfast.state import defaults
from holdfast.state.generations import Generation, GenerationFile
from holdfast.state.ledger import Ledger
from tests.state.samples import File

ROUTER = File("router.yaml", b"kind: Router\n")
ROUTES = File("routes.txt", b"192.0.2.0/24 via 10.0.0.1\n" * 1000)


def test_a_generation_and_its_files(ledger: Ledger) -> None:
    assert ledger.begin_generation([ROUTER, ROUTES]) == 1
    assert ledger.generations()[0].state == "applying"
    assert ledger.generations()[0].finished is None
    assert ledger.generation_files(1) == {
        "router.yaml": ROUTER.content,
        "routes.txt": ROUTES.content,
    }
    sizes = {file.path: (file.sha256, file.size) for file in ledger.generations()[0].files}
    assert sizes["routes.txt"] == (hashlib.sha256(ROUTES.content).hexdigest(), 26_000)


def test_times_are_the_clock_s(ledger: Ledger) -> None:
    ledger.begin_generation([ROUTER])
    ledger.finish_generation(1, "failed")
    digest = hashlib.sha256(ROUTER.content).hexdigest()
    file = GenerationFile("router.yaml", digest, len(ROUTER.content))
    assert ledger.generations() == [Generation(1, "failed", 1000.5, 1000.5, (file,))]


def test_the_best_outcome_is_kept(ledger: Ledger) -> None:
    """A later pass with the same files says how the host is, not what the files are worth."""
    number = ledger.begin_generation([ROUTER])
    told = ("failed", "partial", "failed", "converged", "partial", "failed")
    states = []
    for outcome in told:
        ledger.finish_generation(number, outcome)
        states.append(ledger.generations()[0].state)
    assert states == ["failed", "partial", "partial", "converged", "converged", "converged"]


def test_the_same_files_in_any_order_are_the_same_generation(ledger: Ledger) -> None:
    assert ledger.begin_generation([ROUTER, ROUTES]) == 1
    assert ledger.begin_generation([ROUTES, ROUTER, ROUTER]) == 1
    assert ledger.begin_generation([ROUTER]) == 2
    assert ledger.begin_generation([File("other.yaml", ROUTER.content)]) == 3
    assert ledger.begin_generation([ROUTER, ROUTES]) == 4, "going back is a new generation"
    assert [generation.number for generation in ledger.generations(limit=2)] == [4, 3]


def test_an_unchanged_configuration_is_not_written_again(ledger: Ledger, paths: Paths) -> None:
    large = File("routes.txt", os.urandom(1 << 20))
    ledger.begin_generation([large])
    ledger.finish_generation(1, "converged")
    log = paths.state_dir / "state.db-wal"
    before = log.stat().st_size, log.stat().st_mtime_ns
    assert ledger.begin_generation([large]) == 1
    ledger.finish_generation(1, "converged")
    assert (log.stat().st_size, log.stat().st_mtime_ns) == before
    assert ledger.generations()[0].state == "converged"


def test_contents_are_stored_once(ledger: Ledger, paths: Paths) -> None:
    large = File("routes.txt", os.urandom(1 << 20))
    for number in range(10):
        ledger.begin_generation([large, File("router.yaml", str(number).encode())])
    ledger.close()
    assert paths.ledger.stat().st_size < 2 << 20


def test_old_generations_go_and_their_contents_with_them(ledger: Ledger, paths: Paths) -> None:
    kept = File("kept.txt", b"kept")
    for number in range(defaults.KEEP_GENERATIONS + 10):
        ledger.begin_generation([kept, File("a", os.urandom(100_000) + bytes([number]))])
    numbers = [generation.number for generation in ledger.generations()]
    assert numbers == list(range(60, 10, -1))
    assert ledger.generation_files(11)["kept.txt"] == b"kept"
    with pytest.raises(Refused, match="no generation 10"):
        ledger.generation_files(10)
    ledger.close()
    assert paths.ledger.stat().st_size < (defaults.KEEP_GENERATIONS + 4) * 105_000


def test_wrong_outcomes_are_refused(ledger: Ledger) -> None:
    ledger.begin_generation([ROUTER])
    with pytest.raises(ValueError, match="'applied' is none of"):
        ledger.finish_generation(1, "applied")
    with pytest.raises(LedgerError, match="no generation 2"):
        ledger.finish_generation(2, "converged")


def test_a_file_that_changed_between_two_reads_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"router\.yaml: read twice"):
        ledger.begin_generation([ROUTER, File("router.yaml", b"other")])
    assert ledger.generations() == []
