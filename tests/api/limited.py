"""`holdfast` in a process that may have few descriptors: `python -m tests.api.limited ...`."""

from __future__ import annotations

import resource
import sys

from holdfast.__main__ import main

DESCRIPTORS = 1024

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    sys.exit(main())
