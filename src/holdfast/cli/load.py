"""The configuration as the commands need it."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.agent import load as loading
from holdfast.agent.load import Loaded
from holdfast.cli.terminal import Style, say
from holdfast.paths import Paths


def load(paths: Paths, file: Path | None, *, facts: bool = True) -> Loaded:
    """Raises ConfigError with every problem; says warnings on stderr."""
    style = Style.of(sys.stderr)

    def warn(text: str) -> None:
        say([f"{style('warning:', 'yellow')} {text}"], sys.stderr)

    return loading.load(paths, file, warn, facts=facts)
