"""What can come between a caller and the daemon, free of gRPC: commands catch it without."""

from __future__ import annotations

from holdfast.errors import HoldfastError, Refused


class Busy(HoldfastError):  # noqa: N818 - a state of the daemon, not an error of anybody's
    """More than the daemon takes on at once."""


class Gone(HoldfastError):  # noqa: N818
    """The daemon ended in the middle of a call."""


class Silent(HoldfastError):  # noqa: N818
    """Somebody listens, and does not answer in time."""


class Unauthenticated(Refused):
    """The call has a token that nobody has."""


class Denied(Refused):
    """Whoever calls is known, and may not do this."""


class CallRefused(HoldfastError):  # noqa: N818
    """A call of routing control is answered with a code that its interface promises."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code  # the name of a gRPC code: NOT_FOUND
        super().__init__(message)
