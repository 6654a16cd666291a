"""Whether root may go by a configuration file: nobody else may be able to write it.

Whoever can write what root goes by can become root: it names programs, and files that are read.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from holdfast.config import regular_file, trusted_file
from holdfast.errors import ConfigError, Problem, Refused


def refuse_untrusted(path: Path, also: Collection[int] = ()) -> None:
    """Raises ConfigError. also: users who may write it, too."""
    # Where it is no file, the attempt to read it says so in better words.
    if os.geteuid() != 0 or regular_file.is_handed(path) or not path.is_file():
        return
    try:
        with trusted_file.trusted(path, also):
            return
    except Refused as refused:
        raise ConfigError([Problem(str(path), "", f"is not read by root: {refused}")]) from None
    except OSError:
        return  # as above: it may be gone by now


def refuse_untrusted_place(path: Path, also: Collection[int] = ()) -> None:
    """The same of a file that is about to be written there, as it will be found then. Raises
    Refused."""
    if os.geteuid() != 0:
        return
    try:
        if path.is_file():
            with trusted_file.trusted(path, also):
                return
        trusted_file.refuse_folder(path.parent, also)
    except Refused as refused:
        raise Refused(
            f"nothing was touched: {path} would not be read by root after that: {refused}"
        ) from None
    except OSError:
        return  # whoever writes it says so


def asking() -> tuple[int, ...]:
    """Who became root for this command, by sudo: what he may write, he may ask for himself."""
    user = os.environ.get("SUDO_UID", "")
    return (int(user),) if user.isdecimal() else ()
