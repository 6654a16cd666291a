"""What a machine is asked to do before and after it is booted anew. Run by test_boot.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.host.services.service_passes import ServicePasses, unit, until
from tests.host.services.test_systemd import main_pid, show

_REBOOT = 133


def main() -> int:
    machine = ServicePasses(Path("/"))
    wanted = unit("one", folders=("/run/holdfast/one",))
    if os.environ["HOLDFAST_BOOT"] == "1":
        machine.apply(wanted)
        return _REBOOT
    # Nothing of ours has run since the boot.
    until(lambda: show("ActiveState") == "active", "the unit is up")
    assert main_pid() != 0
    assert Path("/run/holdfast/one").is_dir()
    assert machine.changes(wanted) == []
    machine.apply()
    print("restored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
