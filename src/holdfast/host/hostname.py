"""The driver of the host's name: the running one and /etc/hostname."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence

from holdfast.engine.artifact import Artifact
from holdfast.engine.driver import Result, Scope
from holdfast.engine.kinds.hostname import HOSTNAME, PLACE, hostname
from holdfast.engine.observed import Observed, Sighting
from holdfast.engine.plan import Operation, Verb
from holdfast.errors import DriverError
from holdfast.host import rooted, steps
from holdfast.host.contents import InFiles
from holdfast.host.steps import words


class HostnameDriver(InFiles):
    def observe(self, scope: Scope) -> Observed:
        if not any(key.kind == HOSTNAME.name for key in (*scope.keys, *scope.claims)):
            return Observed()
        try:
            seen = hostname(self._seen())
        except OSError as error:
            raise DriverError(f"{PLACE}: could not be read: {words(error)}") from error
        return Observed(sightings={seen.key: (Sighting(seen),)})

    def apply(
        self, operations: Sequence[Operation], progress: Callable[[int], None]
    ) -> list[Result]:
        return steps.carry_out(operations, progress, self._step)

    def _seen(self) -> str:
        """The name, in a form that equals no name where the next boot would bring another."""
        # Either may hold any bytes, and is shown to people.
        running = os.fsencode(socket.gethostname()).decode(errors="backslashreplace")
        stored = self._stored()
        if stored == running:
            return running
        return f"{running} ({PLACE}: {stored})" if stored else f"{running} (no name in {PLACE})"

    def _stored(self) -> str:
        try:
            with rooted.parent(self._root, PLACE) as (folder, name):
                text = rooted.read(folder, name).decode(errors="backslashreplace")
        except FileNotFoundError:
            return ""
        # hostname(5): the first line that is neither empty nor a comment
        lines = (line.strip() for line in text.splitlines())
        return next((line for line in lines if line and not line.startswith("#")), "")

    def _step(self, operation: Operation, subject: Artifact) -> None:
        if operation.verb is not Verb.UPDATE:
            raise ValueError(f"the host name cannot be the subject of {operation.verb}")
        wanted = str(subject.fields["hostname"])
        # The kernel first: it refuses what is too long before the file has it.
        tried = f"setting the running name to {wanted!r}"
        try:
            socket.sethostname(wanted)
            tried = f"the running name is set; writing {PLACE}"
            self._store(wanted)
        except (OSError, ValueError) as error:
            raise ValueError(f"{tried}: {words(error)}") from error

    def _store(self, wanted: str) -> None:
        with rooted.parent(self._root, PLACE, create=True) as (folder, name):
            rooted.sweep(folder, name)
            seen = rooted.look(folder, name)
            if seen is not None and seen.type != "file":
                raise ValueError(f"it is a {seen.type}, which is not replaced")
            mode = seen.mode if seen else 0o644
            rooted.replace(folder, name, f"{wanted}\n".encode(), mode, seen)
