"""A caller on D-Bus: method calls and their answers, and signals that were asked for.

systemd is asked over the system bus, or where no bus runs over its own socket, as `systemctl`
does for root; the second has neither a `Hello` nor match rules.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.dataclass import dataclass
from holdfast.errors import DriverError
from holdfast.host.services.dbus_codec import Reader, Writer, types

SYSTEM_BUS = "/run/dbus/system_bus_socket"
SYSTEMD = "/run/systemd/private"
_CALL, _RETURN, _ERROR, _SIGNAL = 1, 2, 3, 4
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY, _DESTINATION, _SIGNATURE = 1, 2, 3, 4, 5, 6, 8
_FIELD_TYPES = {_PATH: "o", _SIGNATURE: "g", _REPLY: "u"}
_BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_HEAD = 16  # the part of a message that says how long the rest is
_LONGEST = 1 << 27
TIMEOUT_S = 30.0


class DBusError(DriverError):
    """The other side's refusal: its name for it and its words."""

    def __init__(self, name: str, words: str) -> None:
        self.name = name
        super().__init__(words or name)


@dataclass(frozen=True, slots=True)
class Message:
    type: int
    fields: dict[int, Any]
    body: tuple[Any, ...]

    @property
    def member(self) -> str:
        return str(self.fields.get(_MEMBER, ""))

    @property
    def path(self) -> str:
        return str(self.fields.get(_PATH, ""))


class Bus:
    def __init__(self, connection: socket.socket, *, direct: bool) -> None:
        self._socket = connection
        self._serial = 0
        self._signals: deque[Message] = deque()
        self._direct = direct
        self._read = b""
        self._authenticate()
        if not direct:
            self.call(*_BUS, "Hello")

    @classmethod
    def open(cls) -> Bus:
        tried = []
        for address, direct in ((SYSTEM_BUS, False), (SYSTEMD, True)):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(TIMEOUT_S)
            try:
                connection.connect(address)
                return cls(connection, direct=direct)
            except OSError as error:
                connection.close()
                tried.append(f"{address}: {error.strerror or error}")
            except BaseException:
                connection.close()
                raise
        raise DriverError(f"systemd cannot be asked: {'; '.join(tried)}")

    def fileno(self) -> int:
        """To wait on for signals, and for nothing else meanwhile."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def listen(self, rule: str) -> None:
        """Signals that match come in from now on."""
        if not self._direct:
            self.call(*_BUS, "AddMatch", "s", rule)

    def call(
        self, to: str, path: str, interface: str, member: str, signature: str = "", *values: Any
    ) -> tuple[Any, ...]:
        serial = self._send(to, path, interface, member, signature, values)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            message = self._receive(deadline, f"{member} to {to}")
            if message.type == _SIGNAL:
                self._signals.append(message)
            elif message.fields.get(_REPLY) == serial:
                if message.type == _ERROR:
                    words = str(message.body[0]) if message.body else ""
                    raise DBusError(str(message.fields.get(_ERROR_NAME, "")), words)
                return message.body

    def wait(self, wanted: Callable[[Message], bool], timeout: float, what: str) -> Message:
        """The next signal of this sort, also one that came in meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            while self._signals:
                message = self._signals.popleft()
                if wanted(message):
                    return message
            message = self._receive(deadline, what)
            if message.type == _SIGNAL:
                self._signals.append(message)

    def arrived(self) -> list[Message]:
        """The signals that came in meanwhile, without waiting for more. DriverError where the
        connection is over."""
        self._socket.setblocking(False)
        try:
            while more := self._socket.recv(1 << 16):
                self._read += more
            raise DriverError("the connection to D-Bus was closed")
        except BlockingIOError:
            pass
        except OSError as error:
            raise DriverError(f"the connection to D-Bus: {error}") from error
        while self._holds_one():
            message = self._receive(0, "a signal")
            if message.type == _SIGNAL:
                self._signals.append(message)
        found = list(self._signals)
        self._signals.clear()
        return found

    def _holds_one(self) -> bool:
        """Is a whole message read already?"""
        if len(self._read) < _HEAD:
            return False
        length, _serial, fields = struct.unpack_from("<III", self._read, 4)
        whole: int = _HEAD + -(-fields // 8) * 8 + length
        return len(self._read) >= whole

    def _authenticate(self) -> None:
        """The kernel vouches for who we are; EXTERNAL only names it.

        All in one: systemd 252 leaves a message alone that it reads together with the BEGIN.
        """
        identity = str(os.geteuid()).encode().hex()
        self._socket.sendall(f"\0AUTH EXTERNAL {identity}\r\nBEGIN\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n"):
            more = self._socket.recv(1)
            if not more or len(answer) > 512:
                break
            answer += more
        if not answer.startswith(b"OK "):
            raise DriverError(f"D-Bus does not let us in: {answer.decode(errors='replace')!r}")

    def _send(
        self,
        to: str,
        path: str,
        interface: str,
        member: str,
        signature: str,
        values: tuple[Any, ...],
    ) -> int:
        body = Writer()
        for kind, value in zip(types(signature), values, strict=True):
            body.write(kind, value)
        fields = {_PATH: path, _INTERFACE: interface, _MEMBER: member, _DESTINATION: to}
        if signature:
            fields[_SIGNATURE] = signature
        self._serial += 1
        head = Writer()
        head.data += struct.pack("<cBBBII", b"l", _CALL, 0, 1, len(body.data), self._serial)
        head.write("a(yv)", [(n, (_FIELD_TYPES.get(n, "s"), v)) for n, v in fields.items()])
        head.pad(8)
        try:
            self._socket.sendall(bytes(head.data + body.data))
        except OSError as error:
            raise DriverError(f"{member} to {to} could not be sent: {error}") from error
        return self._serial

    def _receive(self, deadline: float, what: str) -> Message:
        head = self._exactly(_HEAD, deadline, what)
        if head[:1] != b"l":
            raise DriverError(f"{what}: an answer in another byte order than ours")
        length, _serial, fields = struct.unpack_from("<III", head, 4)
        if length > _LONGEST or fields > _LONGEST:
            raise DriverError(f"{what}: an answer of {length} bytes is not one")
        rest = self._exactly(-(-fields // 8) * 8 + length, deadline, what)
        try:
            found = dict(Reader(head + rest, 12).read("a(yv)"))
            reader = Reader(rest[len(rest) - length :])
            body = tuple(reader.read(kind) for kind in types(str(found.get(_SIGNATURE, ""))))
        except (ValueError, struct.error, LookupError) as error:
            raise DriverError(f"{what}: the answer cannot be read: {error}") from error
        return Message(head[1], found, body)

    def _exactly(self, count: int, deadline: float, what: str) -> bytes:
        while len(self._read) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DriverError(f"{what}: no answer in time")
            self._socket.settimeout(left)
            try:
                more = self._socket.recv(1 << 16)
            except TimeoutError:
                raise DriverError(f"{what}: no answer in time") from None
            except OSError as error:
                raise DriverError(f"{what}: {error}") from error
            if not more:
                raise DriverError(f"{what}: the connection was closed")
            self._read += more
        found, self._read = self._read[:count], self._read[count:]
        return found
