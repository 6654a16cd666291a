"""Programs asked whether they would take a file, before it is put in its place."""

from __future__ import annotations

from holdfast.errors import DriverError
from holdfast.host import process

# By what a file is declared with: what stands before each of its lines in a configuration.
_DNSMASQ = {
    "dnsmasq": "",
    "dnsmasq hosts": "dhcp-host=",
    "dnsmasq options": "dhcp-option=",
}


def check(wanted: str, content: bytes) -> None:
    """Raises ValueError with the program's own words where it would not."""
    try:
        argv = (process.find("dnsmasq", "dnsmasq-base"), "--test", "--conf-file=-")
        ended = process.run(argv, given=_configuration(_DNSMASQ[wanted], content))
    except DriverError as error:
        raise ValueError(f"it could not be checked: {error}") from error
    if ended.status:
        raise ValueError(f"dnsmasq would not take it: {ended.said}")


def _configuration(word: str, content: bytes) -> bytes:
    if not word:
        return content
    lines = content.splitlines(keepends=True)
    return b"".join(line if line.startswith(b"#") else word.encode() + line for line in lines)
