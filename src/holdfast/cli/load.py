"""The configuration as the commands need it."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.cli.terminal import Style, say
from holdfast.paths import Paths
from holdfast.runtime import load as loading
from holdfast.runtime import needed_programs
from holdfast.runtime.load import Loaded


def load(paths: Paths, file: Path | None, *, facts: bool = True, programs: bool = False) -> Loaded:
    """Raises ConfigError with every problem; says warnings on stderr. programs: those that it needs
    have to be here, too."""
    loaded = loading.load(paths, file, warn, facts=facts)
    if programs:
        needed_programs.check(paths, loaded, warn)
    return loaded


def warn(text: str) -> None:
    say([f"{Style.of(sys.stderr)('warning:', 'yellow')} {text}"], sys.stderr)
