"""Where the kernel has no more room to tell of changes, the router is kept all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.safety.router_scene import document

ADDRESS = "{interface: wan, address: 192.0.2.1/24}"
# In a user namespace of its own, whose limits are nobody else's.
SCENE = """
set -eu
ip link add wan0 type veth peer name far0
echo 0 > /proc/sys/user/max_inotify_instances
until_true() {
    for _ in $(seq 600); do if "$@"; then return; fi; sleep 0.1; done
    cat serve.log
    exit 1
}
there() { ip addr show dev wan0 | grep -q 192.0.2.1/24; }
heard() { [ "$(grep -c "$1" serve.log)" -ge "$2" ]; }
no_more_than() { [ "$(descriptors)" -le "$1" ]; }
descriptors() { ls /proc/$daemon/fd | wc -l; }
"$@" --listen none 2> serve.log & daemon=$!
trap 'kill -9 $daemon' EXIT
until_true there
until_true heard 'nothing outside is watched: cannot watch files' 1
again() { for round in "$@"; do kill -HUP $daemon; until_true heard '2 resources' $round; done; }
again 2 3
before=$(descriptors)
again 4 5 6 7 8 9 10 11
until_true no_more_than $((before + 4))  # some are opened late, or for a moment
echo 128 > /proc/sys/user/max_inotify_instances
kill -HUP $daemon
until_true heard '2 resources' 12
ip addr del 192.0.2.1/24 dev wan0
until_true heard 'repaired address' 1
"""


def test_no_room_to_watch_files(root: Path) -> None:
    root.mkdir()
    file = root / "router.yaml"
    file.write_text(document({"Interface/wan": "{ifname: wan0}", "IPv4StaticAddress/wan": ADDRESS}))
    serve = [sys.executable, "-m", "holdfast", "--root", str(root), "serve", str(file)]
    done = subprocess.run(
        ["unshare", "-Urn", "sh", "-c", SCENE, "sh", *serve],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
