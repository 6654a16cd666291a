"""Programs that drivers run to their end, without a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from holdfast.errors import DriverError

# Where programs of the system stand; the caller's PATH is not trusted.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 60.0


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
) -> Ended:
    """Runs a program with `given` on its standard input. Never raises for what it answered."""
    import subprocess  # as above

    name = PurePath(argv[0]).name
    data = given.encode() if isinstance(given, str) else given
    try:
        done = subprocess.run(  # noqa: S603 (no shell, absolute path)
            list(argv),
            input=data,
            capture_output=True,
            timeout=timeout,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", **(environment or {})},
        )
    except subprocess.TimeoutExpired:
        raise DriverError(f"{name} did not answer within {timeout:g} s") from None
    except OSError as error:
        raise DriverError(f"{name} could not be run: {error.strerror}") from error
    return Ended(
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )
