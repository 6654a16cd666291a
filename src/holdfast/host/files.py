"""The driver of whole files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact, Key
from holdfast.engine.driver import Result
from holdfast.engine.kinds.file import FILE, digest
from holdfast.engine.observed import Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import contents, process, rooted, steps
from holdfast.host.contents import InFiles

# By what a file is declared with: what stands before each of its lines in a configuration.
_DNSMASQ = {
    "dnsmasq": "",
    "dnsmasq hosts": "dhcp-host=",
    "dnsmasq options": "dhcp-option=",
}


class FileDriver(InFiles):
    kind = FILE

    def look(self, key: Key) -> Sighting | None:
        seen = contents.at(self._root, key.name)
        return _sighting(key, seen) if seen is not None else None

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _step(self, operation: Operation, subject: Artifact) -> None:
        observed = operation.observed if isinstance(operation.observed, Artifact) else None
        match operation.verb:
            case Verb.CREATE:
                self._create(subject)
            case Verb.UPDATE | Verb.REPLACE:
                self._replace(subject, observed)
            case Verb.DELETE:
                self._delete(observed or subject)
            case _:
                raise ValueError(f"a file cannot be the subject of {operation.verb}")

    def _create(self, desired: Artifact) -> None:
        content, mode = _content(desired), _mode(desired)
        with rooted.parent(self._root, desired.key.name, create=True) as (folder, name):
            rooted.sweep(folder, name)
            rooted.create(folder, name, content, mode)

    def _replace(self, desired: Artifact, observed: Artifact | None) -> None:
        content, mode = _content(desired), _mode(desired)
        if observed is None:
            raise ValueError("the plan does not say what it replaces")
        with rooted.parent(self._root, desired.key.name) as (folder, name):
            rooted.sweep(folder, name)
            seen = rooted.look(folder, name)
            if seen is None:
                raise ValueError("it is gone since the plan was made")
            _still(seen, observed)
            rooted.replace(folder, name, content, mode, seen)

    def _delete(self, expected: Artifact) -> None:
        try:
            with rooted.parent(self._root, expected.key.name) as (folder, name):
                rooted.sweep(folder, name)
                seen = rooted.look(folder, name)
                if seen is not None:
                    _still(seen, expected)
                    rooted.remove(folder, name)
        except FileNotFoundError:
            return


def _sighting(key: Key, seen: rooted.Seen) -> Sighting:
    artifact = Artifact(key, {"sha256": seen.sha256, "mode": f"{seen.mode:04o}"})
    holder = f"user {seen.uid}" if seen.type == "file" else f"{seen.type} of user {seen.uid}"
    return Sighting(artifact, holder=holder, nonce=seen.sha256)


def _still(seen: rooted.Seen, expected: Artifact) -> None:
    """Read again just before: what somebody wrote since the plan is theirs."""
    if seen.type != "file":
        raise ValueError(f"it is a {seen.type} now")
    if seen.sha256 != expected.fields.get("sha256"):
        raise ValueError(
            f"its content changed since the plan was made (sha256 {seen.sha256[:16]}…,"
            f" planned for {str(expected.fields.get('sha256'))[:16]}…)"
        )


def _content(desired: Artifact) -> bytes:
    # Fields travel in a plan file, the content does not: an empty payload must not empty a file.
    if digest(desired.payload, _mode(desired)) != desired.fields.get("sha256"):
        raise ValueError("the plan does not carry the content it declares")
    if desired.fields.get("check"):
        check_content(str(desired.fields["check"]), desired.payload)
    return desired.payload


def _mode(desired: Artifact) -> int:
    return int(str(desired.fields["mode"]), 8)


def check_content(wanted: str, content: bytes) -> None:
    """Ask a program whether it would take a file, before it is put in its place. Raises ValueError
    with the program's own words where it would not."""
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
