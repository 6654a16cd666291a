"""What files, blocks and WireGuard links of ours hold now, for whoever has to bring it back."""

from __future__ import annotations

import hashlib

from holdfast.engine.artifact import Artifact
from holdfast.engine.kinds import dropin
from holdfast.engine.kinds.file import digest
from holdfast.errors import DriverError
from holdfast.host import blocks, rooted
from holdfast.host.netlink.socket import NetlinkSocket
from holdfast.paths import Paths


def read(paths: Paths, seen: Artifact) -> bytes:
    """OSError or ValueError where it is no longer what was seen. Secrets are in it."""
    key = seen.key
    if key.kind == "wireguard":
        return _keys(seen)
    if key.kind == "block":
        path, name = blocks.parts(key)
        with rooted.parent(paths.root, path) as (folder, file):
            content = blocks.block(rooted.read(folder, file), name)
        found = hashlib.sha256(content).hexdigest()
    else:
        place = dropin.parts(key)[0] if key.kind == "dropin" else key.name
        with rooted.parent(paths.root, place) as (folder, file):
            content = rooted.read(folder, file)
        mode = int(str(seen.fields.get("mode", "0644")), 8)
        found = digest(content, mode)
    if found != seen.fields["sha256"]:
        raise ValueError("it changed while it was being read")
    return content


def _keys(seen: Artifact) -> bytes:
    from holdfast.host.wireguard import WireGuardDriver  # few hosts have any

    sock = NetlinkSocket()
    driver = WireGuardDriver(sock, "")
    try:
        return driver.payload(seen)
    except DriverError as error:
        raise ValueError(str(error)) from error
    finally:
        driver.close()
        sock.close()
