"""The netlink socket: whole dumps or an error, batches with an answer for every message."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from holdfast.errors import DriverError
from holdfast.host.netlink import attributes
from holdfast.host.netlink.messages import HEADER, Block, Dump, Run, runs

# Protocols and flags of a message, from linux/netlink.h.
ROUTE, NETFILTER = 0, 12
REQUEST, ACK, ROOT, MATCH = 0x1, 0x4, 0x100, 0x200
REPLACE, EXCL, CREATE, APPEND = 0x100, 0x200, 0x400, 0x800
_DUMP_INTERRUPTED = 0x10
_CAPPED, _ACK_TLVS = 0x100, 0x200

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_EXT_ACK_MESSAGE = 1

_SOL_NETLINK = 270
_CAP_ACK, _EXT_ACK, _GET_STRICT_CHK = 10, 11, 12
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33


# The kernel fills dump datagrams up to 32 KiB, whatever larger buffer is offered.
_RECEIVE = 1 << 16
# An error answer costs the kernel about 1 KiB of receive buffer, so this many messages at once
# can all fail without an answer being lost in the buffer below.
BATCH_MESSAGES = 1000
_RECEIVE_BUFFER = 8 << 20
_SEND_BUFFER = 4 << 20
_DUMP_TRIES = 8


class NetlinkError(NamedTuple):
    """What the kernel said of one message."""

    errno: int  # 0 where the kernel's answer was lost
    text: str

    def __str__(self) -> str:
        return self.text


class Request(NamedTuple):
    kind: int  # RTM_… or NFT_MSG_…
    flags: int  # besides REQUEST and ACK
    body: bytes


class _Batch(NamedTuple):
    data: bytes
    first: int  # sequence numbers
    last: int
    start: int  # index of the first message among all requests

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class _Working:
    """A call that goes on in a thread of its own; what it raises, `wait` raises."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._raised = error

    def wait(self) -> None:
        self._thread.join()
        if self._raised is not None:
            raise self._raised


class Transport(Protocol):
    """The part of a socket that is used here; tests put failures in its way."""

    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


def open_transport(protocol: int = ROUTE) -> Transport:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    sock.bind((0, 0))
    for option, forced, size in (
        (socket.SO_RCVBUF, _SO_RCVBUFFORCE, _RECEIVE_BUFFER),
        (socket.SO_SNDBUF, _SO_SNDBUFFORCE, _SEND_BUFFER),
    ):
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, size)
        except PermissionError:  # in a user namespace the system's limit holds
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    for feature in (_CAP_ACK, _EXT_ACK, _GET_STRICT_CHK):
        sock.setsockopt(_SOL_NETLINK, feature, 1)
    return sock


class NetlinkSocket:
    def __init__(self, connect: Callable[[], Transport] = open_transport) -> None:
        self._connect = connect
        self._transport = connect()
        self._sequence = 0

    @property
    def port(self) -> int:
        """By which the kernel names the writer of what is changed here, when it tells everybody.
        Another one once an answer was lost; 0 where there is none just now."""
        told = getattr(self._transport, "getsockname", None)  # not of what tests put in its place
        try:
            return int(told()[0]) if told is not None else 0
        except OSError:  # closed a moment ago
            return 0

    def close(self) -> None:
        self._transport.close()

    def dump(self, kind: int, header: bytes, what: str) -> list[bytes]:
        """The bodies (what follows the netlink header) of every object a dump request answers."""
        return self.dump_runs(kind, header, what).bodies()

    def dump_runs(self, kind: int, header: bytes, what: str) -> Dump:
        """As `dump`, for very many objects.

        A dump that the kernel marks as interrupted by a change, or of which datagrams were lost,
        is taken again from the start; nothing partial is ever returned.
        """
        problem = ""
        for _ in range(_DUMP_TRIES):
            try:
                found = self._dump_once(kind, header, what)
            except (OSError, struct.error) as error:
                # Whatever went wrong, the rest of the answer is not to be taken for the next one.
                self._reopen()
                if isinstance(error, struct.error):
                    problem = "answers were cut short"
                elif error.errno == errno.ENOBUFS:
                    problem = "answers were lost (ENOBUFS)"
                else:
                    said = error.strerror
                    raise DriverError(f"cannot read {what}: {said}", error.errno or 0) from error
                continue
            if found is not None:
                return found
            problem = "the kernel's tables changed while they were read"
        raise DriverError(f"cannot read {what}: {problem}, {_DUMP_TRIES} times in a row")

    def _dump_once(self, kind: int, header: bytes, what: str) -> Dump | None:
        """None: interrupted. The answer is drained to its end all the same. struct.error: cut."""
        self._sequence += 1
        flags = REQUEST | ROOT | MATCH
        self._transport.send(HEADER.pack(16 + len(header), kind, flags, self._sequence, 0) + header)
        found: list[Run] = []
        interrupted = 0
        while True:
            data = self._transport.recv(_RECEIVE)
            for run in runs(data):
                interrupted |= run.flags
                if run.kind == _NLMSG_DONE:
                    code = 0
                    if run.length >= 20:
                        (code,) = struct.unpack_from("=i", data, run.start + 16)
                    if code < 0:
                        # The ext-ack attributes follow the code.
                        said = _error_text(-code, data[run.start + 20 : run.start + run.length])
                        raise DriverError(f"cannot read {what}: {said}", -code)
                    return None if interrupted & _DUMP_INTERRUPTED else Dump(found)
                if run.kind == _NLMSG_ERROR:
                    error = _read_error(data, run.start, run.length, run.flags)
                    if error is not None:
                        raise DriverError(f"cannot read {what}: {error.text}", error.errno)
                else:
                    found.append(run)

    def get(self, request: Request) -> bytes | NetlinkError:
        """One object asked for by a request that is answered with a single message."""
        self._sequence += 1
        message = HEADER.pack(
            16 + len(request.body), request.kind, REQUEST | request.flags, self._sequence, 0
        )
        try:
            self._transport.send(message + request.body)
            return self._answer(self._sequence)
        except (OSError, struct.error) as error:
            self._reopen()
            return NetlinkError(0, _lost(error))

    def _answer(self, sequence: int) -> bytes | NetlinkError:
        while True:
            data = self._transport.recv(_RECEIVE)
            length, answer, flags, answered, _ = HEADER.unpack_from(data, 0)
            if answered != sequence:
                continue
            if answer == _NLMSG_ERROR:
                found = _read_error(data, 0, length, flags)
                return found if found is not None else b""
            if length > len(data):
                raise struct.error
            return data[16:length]

    def transact(
        self,
        requests: Iterable[Request],
        progress: Callable[[int], None] = lambda _done: None,
    ) -> dict[int, NetlinkError]:
        """Carry out requests in order; answers the index and error of each one that failed.

        Only the last message of a batch asks for an acknowledgement; the kernel answers errors
        unasked. A failed message does not stop those after it. While the kernel works on a batch,
        the next one is made: requests may be a generator, and cost little time of their own then.
        """
        failed: dict[int, NetlinkError] = {}
        source = iter(requests)
        batch = self._encode(source, 0)
        while batch is not None:
            if batch.size < BATCH_MESSAGES:
                self._exchange(batch, failed)
                following = None
            else:
                working = _Working(partial(self._exchange, batch, failed))
                following = self._encode(source, batch.start + batch.size)
                working.wait()
            progress(batch.size)
            batch = following
        return failed

    def transact_blocks(
        self,
        blocks: Iterable[Block],
        progress: Callable[[int], None] = lambda _done: None,
    ) -> dict[int, NetlinkError]:
        """As `transact`, for blocks of at most BATCH_MESSAGES requests. Making one costs so little
        that it is not worth a thread."""
        failed: dict[int, NetlinkError] = {}
        start = 0
        for block in blocks:
            first = self._sequence + 1
            self._sequence += block.count
            batch = _Batch(block.number(first, ACK), first, self._sequence, start)
            self._exchange(batch, failed)
            start += batch.size
            progress(batch.size)
        return failed

    def _encode(self, source: Iterator[Request], start: int) -> _Batch | None:
        """The next messages as one datagram; None where there are no more."""
        pack = HEADER.pack
        first = sequence = self._sequence + 1
        parts: list[bytes] = []
        kind = flags = 0
        body = b""
        for sequence, (kind, flags, body) in enumerate(islice(source, BATCH_MESSAGES), first):
            parts.append(pack(16 + len(body), kind, REQUEST | flags, sequence, 0))
            parts.append(body)
            if len(body) & 3:
                parts.append(b"\0" * (-len(body) % 4))
        if not parts:
            return None
        self._sequence = sequence
        at = -3 if len(body) & 3 else -2
        parts[at] = pack(16 + len(body), kind, REQUEST | ACK | flags, sequence, 0)
        return _Batch(b"".join(parts), first, sequence, start)

    def _exchange(self, batch: _Batch, failed: dict[int, NetlinkError]) -> None:
        try:
            self._transport.send(batch.data)
            self._read_answers(batch, failed)
        except (OSError, struct.error) as error:
            for index in range(batch.start, batch.start + batch.size):
                failed.setdefault(index, NetlinkError(0, _lost(error)))
            self._reopen()

    def _read_answers(self, batch: _Batch, failed: dict[int, NetlinkError]) -> None:
        while True:
            data = self._transport.recv(_RECEIVE)
            offset, end = 0, len(data)
            while offset < end:
                length, answer, flags, sequence, _ = HEADER.unpack_from(data, offset)
                if answer == _NLMSG_ERROR and batch.first <= sequence <= batch.last:
                    found = _read_error(data, offset, length, flags)
                    if found is not None:
                        failed[batch.start + sequence - batch.first] = found
                    if sequence == batch.last:
                        return
                offset += (length + 3) & ~3

    def _reopen(self) -> None:
        """A fresh socket: what may still be in flight on the old one is not ours to read."""
        self._transport.close()
        self._transport = self._connect()


def _lost(error: OSError | struct.error) -> str:
    if isinstance(error, struct.error):
        return "the kernel's answer was cut short"
    return f"the kernel's answer was lost ({errno.errorcode.get(error.errno or 0, error)})"


def _read_error(data: bytes, offset: int, length: int, flags: int) -> NetlinkError | None:
    """The error of an NLMSG_ERROR message; None for an acknowledgement."""
    (code,) = struct.unpack_from("=i", data, offset + 16)
    if code == 0:
        return None
    extra = b""
    if flags & _ACK_TLVS:
        quoted = 16 if flags & _CAPPED else struct.unpack_from("=I", data, offset + 20)[0]
        extra = data[offset + 20 + ((quoted + 3) & ~3) : offset + length]
    return NetlinkError(-code, _error_text(-code, extra))


def _error_text(code: int, extra: bytes) -> str:
    said = attributes.parse(extra).get(_EXT_ACK_MESSAGE)
    name = errno.errorcode.get(code, str(code))
    text = f"{os.strerror(code)} ({name})"
    return f"{text}: {attributes.to_text(said)}" if said else text
