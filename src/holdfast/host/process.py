"""Programs that drivers run to their end, without a shell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError

# Where programs of the system stand; the caller's PATH is not trusted.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 60.0
# Longer than what it did takes to be heard, and too short for its number to come round.
_LATELY_S = 10.0
_lately: dict[int, float] = {}


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What it complained of, for an error text: the last lines, not a book."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return "; ".join(lines[-4:]) or f"exit status {self.status}"


def find(program: str, package: str) -> str:
    """The absolute path of a program, or an error that says which Debian package has it."""
    import shutil  # with all its compressors, which a pass that runs nothing need not load

    found = shutil.which(program, path=PATH)
    if found is None:
        raise DriverError(f"{program} is not installed: install the Debian package {package}")
    return found


def run(
    argv: Sequence[str],
    *,
    given: str | bytes = b"",
    timeout: float = _TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    name: str = "",
) -> Ended:
    """Runs a program with `given` on its standard input. Never raises for what it answered.

    keep: descriptors it is given. name: of the program for people, where its path is none."""
    import subprocess  # as above

    name = name or PurePath(argv[0]).name
    data = given.encode() if isinstance(given, str) else given
    try:
        with subprocess.Popen(  # noqa: S603 (no shell, absolute path)
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", **(environment or {})},
            pass_fds=keep,
        ) as child:
            _note(child.pid)
            try:
                out, err = child.communicate(data, timeout)
            except BaseException:
                child.kill()
                raise
            finally:
                _note(child.pid)
    except subprocess.TimeoutExpired:
        raise DriverError(f"{name} did not answer within {timeout:g} s") from None
    except OSError as error:
        raise DriverError(f"{name} could not be run: {error.strerror}") from error
    return Ended(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def ran_lately(pid: int) -> bool:
    """Was it a program that was run here? The kernel names the process that a change is of, when
    it tells everybody, and that may be heard when the program has ended."""
    last = _lately.get(pid)
    return last is not None and time.monotonic() - last < _LATELY_S


def _note(pid: int) -> None:
    now = time.monotonic()
    for one, last in list(_lately.items()):
        if now - last >= _LATELY_S:
            _lately.pop(one, None)
    _lately[pid] = now
