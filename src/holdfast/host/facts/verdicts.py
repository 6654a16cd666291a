"""What the health checks last found, from the file that the process that runs them keeps."""

from __future__ import annotations

import json

from holdfast.config import regular_file
from holdfast.host.facts import clock
from holdfast.paths import Paths
from holdfast.resources.facts import Verdict

FILE = "/run/holdfast/verdicts.json"


def read_verdicts(paths: Paths, troubles: list[str]) -> dict[str, Verdict]:
    """Those of an earlier boot are of no use."""
    path = paths.under(FILE)
    try:
        said = json.loads(regular_file.read(path))
        if said["boot_id"] != clock.boot_id():
            return {}
        return {
            str(name): Verdict(one["healthy"] is True, str(one["reason"]))
            for name, one in said["verdicts"].items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        troubles.append(f"{path} could not be read: {error.strerror}")
    except (ValueError, TypeError, KeyError, AttributeError):
        troubles.append(f"{path} is not a list of verdicts")
    return {}
