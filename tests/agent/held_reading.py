"""`holdfast` whose reading of the file takes for as long as the file HOLDFAST_HELD exists."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.__main__ import main
from holdfast.runtime import startup

_HELD = Path(os.environ["HOLDFAST_HELD"])
_load = vars(startup)["load_router"]


def _load_slowly(*given: Any, **more: Any) -> Any:
    router = _load(*given, **more)
    while _HELD.exists():
        time.sleep(0.1)
    return router


if __name__ == "__main__":
    vars(startup)["load_router"] = _load_slowly
    sys.exit(main())
