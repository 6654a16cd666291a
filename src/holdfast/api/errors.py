"""Errors on the wire: each of Holdfast's becomes a gRPC code and comes back as the same error."""

from __future__ import annotations

import grpc

from holdfast import errors
from holdfast.api import holdfast_pb2 as pb
from holdfast.api import limits
from holdfast.api.conditions import Busy, CallRefused, Denied, Unauthenticated
from holdfast.errors import ConfigError, DriverError, HoldfastError, LedgerError, Refused

DETAIL = "holdfast-error-bin"

_NOT_ALLOWED: dict[type[HoldfastError], grpc.StatusCode] = {
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Denied: grpc.StatusCode.PERMISSION_DENIED,
}
_CODES: dict[type[HoldfastError], grpc.StatusCode] = {
    ConfigError: grpc.StatusCode.INVALID_ARGUMENT,
    Refused: grpc.StatusCode.FAILED_PRECONDITION,
    LedgerError: grpc.StatusCode.UNAVAILABLE,
    DriverError: grpc.StatusCode.INTERNAL,
}
# The first line is enough for whoever reads no details; gRPC sends it percent-encoded.
_SUMMARY = 500


def code_of(error: HoldfastError) -> grpc.StatusCode:
    if isinstance(error, Busy):
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, CallRefused):
        return grpc.StatusCode[error.code]
    for kind, code in (*_NOT_ALLOWED.items(), *_CODES.items()):
        if isinstance(error, kind):
            return code
    return grpc.StatusCode.ABORTED


def summary(error: HoldfastError) -> str:
    return str(error).partition("\n")[0][:_SUMMARY]


def to_wire(error: HoldfastError) -> pb.Error:
    kind = next((k.__name__ for k in _CODES if isinstance(error, k)), HoldfastError.__name__)
    said = "" if isinstance(error, ConfigError) else str(error)
    if len(said.encode()) > limits.MAX_ERROR_BYTES:
        said = said.encode()[: limits.MAX_ERROR_BYTES].decode(errors="ignore") + " …"
    wire = pb.Error(kind=kind, message=said, exit_code=error.exit_code)
    if isinstance(error, ConfigError):
        for number, problem in enumerate(error.problems):
            one = pb.Problem(place=problem.place, path=problem.path, message=problem.message)
            if wire.ByteSize() + one.ByteSize() > limits.MAX_ERROR_BYTES:
                wire.more_problems = len(error.problems) - number
                break
            wire.problems.append(one)
    return wire


def from_wire(wire: pb.Error) -> HoldfastError:
    if wire.kind == ConfigError.__name__:
        problems = [errors.Problem(p.place, p.path, p.message) for p in wire.problems]
        if wire.more_problems:
            problems.append(errors.Problem("", "", f"… and {wire.more_problems} more"))
        return ConfigError(problems)
    for kind in (Refused, LedgerError, DriverError):
        if wire.kind == kind.__name__:
            return kind(wire.message)
    error = HoldfastError(wire.message)
    error.exit_code = wire.exit_code or HoldfastError.exit_code
    return error
