"""Where the console is, and the key to it.

Every user of the machine can connect to a port, and what the console shows is for those who may
open the socket for reading. So it asks for a key, which that socket tells.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.dataclass import dataclass
from holdfast.host import rooted
from holdfast.paths import Paths
from holdfast.web.address import Listen

# Kept over restarts of the daemon, so that open pages go on, and gone with a boot.
PLACE = "/run/holdfast/console.key"
_MODE = 0o600
_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(slots=True)
class Console:
    listen: Listen
    key: str
    problem: str = ""  # why nobody answers there

    @property
    def address(self) -> str:
        """With the key: it opens all pages."""
        return f"http://{self.listen.shown}/?key={self.key}"

    @property
    def cookie(self) -> str:
        """Browsers take the cookies of an address for all of its ports."""
        return f"holdfast-{self.listen.port}"

    def opens(self, key: str) -> bool:
        return hmac.compare_digest(key.encode(), self.key.encode())


def console(paths: Paths, listen: Listen) -> Console:
    key = _kept(paths.under(PLACE))
    if not key:
        key = secrets.token_urlsafe(32)
        # One that cannot be kept is good until the daemon ends.
        with suppress(OSError), rooted.parent(paths.root, PLACE, create=True) as (folder, name):
            rooted.replace(folder, name, f"{key}\n".encode(), _MODE, None)
    return Console(listen, key)


def _kept(place: Path) -> str:
    """What a daemon before this one left there, for itself alone; empty where it left nothing."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        alone = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == _MODE
        if not (alone and stat.S_ISREG(found.st_mode)):
            return ""
        key = file.read(64).decode(errors="replace").removesuffix("\n")
    return key if _KEY.fullmatch(key) else ""
