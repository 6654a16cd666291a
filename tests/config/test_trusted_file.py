"""Whose hands a file is in, on every step of the way to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.config.trusted_file import trusted
from holdfast.errors import Refused

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
SOMEBODY = 1000
_OPEN = Path("/proc/self/fd")


def _theirs(*places: Path) -> None:
    for place in places:
        os.chown(place, SOMEBODY, SOMEBODY, follow_symlinks=False)


def _file(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("x")
    return place


def _link(place: Path, to: Path | str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(to)
    return place


def their_file(top: Path) -> tuple[Path, str]:
    _theirs(found := _file(top / "file"))
    return found, "belongs to user 1000"


def written_by_all(top: Path) -> tuple[Path, str]:
    (found := _file(top / "file")).chmod(0o666)
    return found, "chmod go-w"


def their_folder(top: Path) -> tuple[Path, str]:
    found = _file(top / "a/b/file")
    _theirs(top / "a")
    return found, f"the folder {top / 'a'} belongs"


def folder_of_a_group(top: Path) -> tuple[Path, str]:
    found = _file(top / "a/file")
    (top / "a").chmod(0o775)
    return found, "may write the folder"


def their_link(top: Path) -> tuple[Path, str]:
    """In a sticky folder: whoever made it can turn it."""
    (top / "open").mkdir()
    (top / "open").chmod(0o1777)
    _theirs(link := _link(top / "open/link", _file(top / "file")))
    return link, f"the link {link} belongs"


def link_in_their_folder(top: Path) -> tuple[Path, str]:
    """The file and its own folder are good; where the link to it stands is not."""
    link = _link(top / "theirs/link", _file(top / "good/file"))
    _theirs(top / "theirs")
    return link, f"the folder {top / 'theirs'} belongs"


def link_through_their_folder(top: Path) -> tuple[Path, str]:
    _file(top / "good/file")
    (top / "theirs").mkdir()
    _theirs(top / "theirs")
    return _link(top / "link", "theirs/../good/file"), f"the folder {top / 'theirs'} belongs"


def folder_by_a_link_of_theirs(top: Path) -> tuple[Path, str]:
    _file(top / "good/file")
    _theirs(link := _link(top / "link", "good"))
    return link / "file", f"the link {link} belongs"


def no_file(top: Path) -> tuple[Path, str]:
    return top, "not a regular file"


@pytest.mark.parametrize(
    "case",
    [
        their_file,
        written_by_all,
        their_folder,
        folder_of_a_group,
        their_link,
        link_in_their_folder,
        link_through_their_folder,
        folder_by_a_link_of_theirs,
        no_file,
    ],
)
def test_what_others_have_a_hand_in(
    open_folder: Path, case: Callable[[Path], tuple[Path, str]]
) -> None:
    path, why = case(open_folder)
    before = len(list(_OPEN.iterdir()))
    with pytest.raises(Refused) as refused, trusted(path):
        pass
    assert why in str(refused.value)
    assert len(list(_OPEN.iterdir())) == before, "a descriptor was left open"


def test_links_of_roots_are_followed_as_the_kernel_does(open_folder: Path) -> None:
    place = _file(open_folder / "a/b/file")
    _link(open_folder / "one", "a/b/../b")
    _link(open_folder / "two", open_folder / "one/file")
    with trusted(open_folder / "two") as found:
        assert os.fstat(found.file).st_ino == place.stat().st_ino
        assert os.fstat(found.folder).st_ino == place.parent.stat().st_ino
        assert found.path == place


def test_ways_that_lead_nowhere(open_folder: Path) -> None:
    for path in (
        open_folder / "none",
        _link(open_folder / "ring", "ring"),
        _file(open_folder / "file") / "below",
    ):
        with pytest.raises(OSError, match=r"No such|Too many levels|Not a directory"):  # noqa: SIM117
            with trusted(path):
                pass
