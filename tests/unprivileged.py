"""Part of a test as another user, so that the system itself denies what it would deny them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def as_user(uid: int = NOBODY) -> Iterator[None]:
    before = os.geteuid()
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(before)
