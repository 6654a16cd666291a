"""Confirm or revert beside a daemon: it keeps the deadline, and the host to the candidate."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.paths import Paths
from holdfast.state.ledger import Ledger
from tests.agent.daemon import serve
from tests.cli import confirm_scene as scene
from tests.cli.conftest import Holdfast
from tests.namespace import Namespace


@pytest.fixture
def holdfast(tmp_path: Path, root: Path) -> Holdfast:
    folder = tmp_path / "work"
    folder.mkdir()
    return Holdfast(folder, root)


@pytest.fixture
def router(holdfast: Holdfast, netns: Namespace) -> Iterator[Namespace]:
    with scene.router(holdfast, netns):
        yield netns


def settled(holdfast: Holdfast, router: Namespace) -> dict[str, object]:
    return scene.settled(lambda: scene.state(holdfast, router))


def test_nobody_confirms(holdfast: Holdfast, router: Namespace) -> None:
    served = holdfast.folder / "router.yaml"
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        before = settled(holdfast, router)
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "15s")
        daemon.wait_for("is on trial")
        # What drifts meanwhile is repaired, by what the candidate says.
        router.ip("route del 10.6.0.0/16")
        scene.until(lambda: "10.6.0.0/16" in router.ip("route show"), "repaired")
        # The served file is not read meanwhile.
        text = served.read_text()
        served.write_text(text.replace("10.8.0.0/16", "10.88.0.0/16"))
        scene.until(lambda: not scene.waiting(holdfast.root), "reverted at the deadline")
        scene.until(lambda: "10.88.0.0/16" in router.ip("route show"), "the file counts again")
        served.write_text(text)
        scene.until(lambda: "10.88.0.0/16" not in router.ip("route show"), "as it was")
        assert without_generations(settled(holdfast, router)) == without_generations(before)
        assert "fight" not in daemon.said()
        assert daemon.end() == 0


def without_generations(state: dict[str, object]) -> dict[str, object]:
    """The served file was edited to and fro, and so some claims are of a later generation."""
    claims = {str(key): str(claim.fields) for key, claim in state["claims"].items()}  # type: ignore[attr-defined]
    return state | {"claims": claims}


def test_confirmed(holdfast: Holdfast, router: Namespace) -> None:
    served = holdfast.folder / "router.yaml"
    served.chmod(0o640)
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        changed = settled(holdfast, router)
        looked = holdfast.ok("plan")
        assert looked.err.startswith("generation 2 waits to be confirmed until ")
        assert looked.out.startswith("Plan: nothing to do")
        told = holdfast.ok("status", "-o", "json").json["trial"]
        assert (told["generation"], told["state"]) == (2, "open")
        refused = holdfast.run("apply", "--yes")
        assert refused.code == 4
        assert "nothing was touched: generation 2 waits to be confirmed until" in refused.err
        done = holdfast.ok("confirm")
        candidate = holdfast.folder / "candidate.yaml"
        assert done.out.splitlines()[1] == f"{candidate} took the place of {served}."
        assert served.read_bytes() == candidate.read_bytes()
        assert served.stat().st_mode & 0o777 == 0o640
        daemon.wait_for("read again")
        after = settled(holdfast, router)
        # Owners stand in another file now; the host is as it was.
        assert {**after, "claims": None} == {**changed, "claims": None}
        assert daemon.end() == 0


def test_confirmed_in_time_while_the_ledger_is_held(holdfast: Holdfast, router: Namespace) -> None:
    """Past the deadline: the daemon keeps the deadline, and knows that somebody asked in time."""
    with serve(holdfast.root, holdfast.folder / "router.yaml") as daemon:
        daemon.wait_for("read: ")
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "8s")
        with Ledger.open(Paths(holdfast.root), command="a long pass", wait=60):
            asking = holdfast.start("confirm")
            scene.until(lambda: scene.asked(holdfast.root), "asked")
            assert not scene.overdue(holdfast.root)
            scene.until(lambda: scene.overdue(holdfast.root), "the deadline passed")
        assert asking.wait(scene.LONG_S) == 0
        assert not scene.waiting(holdfast.root)
        assert "10.6.0.0/16" in router.ip("route show")
        assert "reverted" not in daemon.said()
        assert daemon.end() == 0


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_daemon_killed(holdfast: Holdfast, router: Namespace, late: bool) -> None:
    """And whoever else kept the deadline: the next daemon does."""
    served = holdfast.folder / "router.yaml"
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        before = settled(holdfast, router)
        within = "8s" if late else "30s"
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", within)
        daemon.signal(signal.SIGKILL)
        scene.kill(scene.keepers(holdfast.root))
    assert scene.waiting(holdfast.root)
    if late:
        scene.until(lambda: scene.overdue(holdfast.root), "the deadline passed")
    with serve(holdfast.root, served) as daemon:
        if not late:
            daemon.wait_for("is on trial")
            assert scene.waiting(holdfast.root)
        daemon.wait_for("was reverted: nobody confirmed it within")
        daemon.wait_for(f"{served} read")
        assert settled(holdfast, router) == before
        if late:
            assert "is on trial" not in daemon.said(), "before anything else"
        assert daemon.end() == 0


def test_reverted_text_in_the_served_file(holdfast: Holdfast, router: Namespace) -> None:
    """It is not applied again by itself, unless somebody asks for it."""
    served = holdfast.folder / "router.yaml"
    text = served.read_bytes()
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        before = settled(holdfast, router)
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        holdfast.ok("rollback")
        assert settled(holdfast, router) == before
        served.write_bytes((holdfast.folder / "candidate.yaml").read_bytes())
        daemon.wait_for("is not applied again by itself")
        assert settled(holdfast, router) == before
        assert daemon.end() == 0
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("is not applied again by itself")
        assert settled(holdfast, router) == before, "the last good generation is in force"
        served.write_bytes(text)
        daemon.wait_for("resources")
        assert settled(holdfast, router) == before
        served.write_bytes((holdfast.folder / "candidate.yaml").read_bytes())
        daemon.wait_for("is not applied again by itself", 2)
        holdfast.ok("apply", "--yes")
        assert settled(holdfast, router)["routes"] != before["routes"], "asked for, it is meant"
        assert daemon.end() == 0


def test_candidate_that_would_mean_something_else(
    holdfast: Holdfast, router: Namespace, tmp_path: Path
) -> None:
    """It names a file beside it, which is not beside the served file."""
    served = holdfast.folder / "router.yaml"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "list.routes").write_text("10.66.0.0/16\n")
    spec = "{gateway: 192.0.2.254, file: list.routes}"
    candidate = elsewhere / "candidate.yaml"
    candidate.write_text(scene.document((*scene.AFTER, f"net RouteList a {spec}")))
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        before = settled(holdfast, router)
        done = holdfast.run("apply", str(candidate), "--yes", "--confirm-within", "1h")
        assert done.code == 4
        assert "does not mean the same" in done.err
        done = holdfast.run("apply", "--yes", "--confirm-within", "1h")
        assert done.code == 4
        assert "put the change into another file" in done.err
        assert settled(holdfast, router) == before
        with Ledger.read(Paths(holdfast.root)) as ledger:
            assert ledger.waiting() is None
        assert daemon.end() == 0


def test_rollback_beside_a_daemon(holdfast: Holdfast, router: Namespace) -> None:
    """To what was applied before a candidate took the place of the served file, and back again."""
    served = holdfast.folder / "router.yaml"
    texts = [served.read_bytes(), (holdfast.folder / "candidate.yaml").read_bytes()]
    with serve(holdfast.root, served) as daemon:
        daemon.wait_for("read: ")
        before = settled(holdfast, router)
        holdfast.ok("apply", "candidate.yaml", "--yes", "--confirm-within", "1h")
        holdfast.ok("confirm")
        changed = settled(holdfast, router)
        with Ledger.read(Paths(holdfast.root)) as ledger:
            assert {one.state for one in ledger.generations()} == {"converged"}
        # Not to the candidate, which says the same under another name.
        holdfast.ok("rollback", "--yes")
        assert served.read_bytes() == texts[0]
        found = settled(holdfast, router)
        # Links that were made stay when nothing declares them any more.
        for part in ("routes", "rules", "tables", "hostname", "files"):
            assert _without(found[part]) == _without(before[part]), part
        holdfast.ok("rollback", "--to", "2", "--yes")
        assert served.read_bytes() == texts[1], "stored under the name of the candidate"
        assert settled(holdfast, router)["tables"] == changed["tables"]
        assert daemon.end() == 0


def _without(part: object) -> str:
    return "\n".join(line for line in str(part).split("', '") if "more0" not in line)
