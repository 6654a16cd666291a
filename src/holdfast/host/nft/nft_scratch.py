"""What a declared table reads like, found out where no packet and no other program ever is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from holdfast.engine.artifact import Artifact
from holdfast.errors import DriverError
from holdfast.host.nft import nft_contents, nft_ruleset, nft_script
from holdfast.host.nft.nft_contents import Contents
from holdfast.host.nft.nft_ruleset import Ruleset

_CLONE_NEWNET = 0x40000000

T = TypeVar("T")


def contents(
    artifact: Artifact, load: Callable[[str], str], save: Callable[[], str] | None = None
) -> Contents:
    """load: carries out a transaction; answers with what was complained of, or nothing. save: the
    ruleset as text, to be loaded again. nft leaves out of that what it can conclude (`meta nfproto
    ipv4` in front of `ip saddr`), and puts it in at another place of the rule when it reads it: the
    same rule, made of other bytes.
    """

    def look() -> Contents:
        ruleset = Ruleset(nft_ruleset.connect())
        try:
            if save is not None:
                text = save()
                _load("flush ruleset\n", load)
                _load(text, load)
            _, (table,), _ = ruleset.read(lambda _table: False)
            return nft_contents.read(ruleset, table)
        finally:
            ruleset.close()

    return within(artifact, load, look)


def within(artifact: Artifact, load: Callable[[str], str], look: Callable[[], T]) -> T:
    """What is seen where nothing but that table is.

    It is made in a network namespace of its own. A single thread enters it and takes it along when
    it ends; the other threads stay where they are.
    """
    from concurrent.futures import ThreadPoolExecutor  # most passes need none of it

    script = nft_script.create(artifact)

    def work() -> T:
        _leave_the_network()
        _load(script, load)
        return look()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def _load(script: str, load: Callable[[str], str]) -> None:
    said = load(script)
    if said:
        raise DriverError(said)


def _leave_the_network() -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise DriverError(f"cannot make a network namespace: {os.strerror(code)}", code)
