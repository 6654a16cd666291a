"""`holdfast-record`: an executor that writes down what it is asked to do, and does nothing else.

To try policies and approvals with, and to start an executor of your own from. Its setting stands
under `env` of the Plugin resource:

    RECORD  a file, a line of JSON for each action; it must be writable for nobody, as whom
            executors run: `install -m 0600 -o nobody /dev/null /var/lib/holdfast-record`
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.plugin import Action, Done, Failed, execute


def main() -> None:
    execute(record)


def record(action: Action) -> Done:
    place = os.environ.get("RECORD", "")
    if not place:
        raise Failed("RECORD is not set: name a file under `env` of the Plugin")
    said = f"{action.action} {action.target.get('address', '')}".strip()
    if action.dry_run:
        return Done("succeeded", f"would {said}")
    try:
        with Path(place).open("r+", encoding="utf-8") as stream:
            # Two runs at once must not both find that it was not done yet.
            fcntl.flock(stream, fcntl.LOCK_EX)
            whole, _, torn = stream.read().rpartition("\n")
            done = {entry["key"]: entry for entry in map(json.loads, whole.splitlines())}
            if action.key in done:
                return _done(said, done[action.key])
            entry = {
                "key": action.key,
                "number": len(done) + 1,
                "action": action.action,
                "target": dict(action.target),
                "observed": dict(action.observed),
            }
            if torn:  # a crash cut it short, so that it never was an answer
                stream.seek(len(whole) + bool(whole))
                stream.truncate()
            stream.write(json.dumps(entry) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise Failed(f"{place}: {error.strerror or error}") from None
    return _done(said, entry)


def _done(said: str, entry: Mapping[str, Any]) -> Done:
    observed = {"number": entry["number"]}
    return Done("succeeded", f"recorded: {said}", observed, undo_available=True)


if __name__ == "__main__":
    main()
