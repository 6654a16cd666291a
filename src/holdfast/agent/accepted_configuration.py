"""What passes go by where the configuration that was read last turns out to be no good.

A file may be valid and yet be refused, or a fault of Holdfast's may end its pass. What was accepted
before it stays in force then, and drift from that is repaired; after a start, that is the last
good generation of the ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.agent.reconciler import Done
from holdfast.dataclass import dataclass
from holdfast.errors import HoldfastError, Refused
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router
from holdfast.runtime.log import Level, Line, fault


@dataclass(frozen=True, slots=True)
class Refusal:
    """Of a configuration that was read, and is not in force."""

    router: Router
    error: Refused
    parts: bool  # it is for those of other sources, not for the file
    fault: bool = False  # its pass ended of a fault: it will, until a byte of it changes

    def stands(self, router: Router) -> bool:
        """Until the file is read anew: tried again by itself, it would pass once somebody else has
        taken away what it would delete. Parts come and go by themselves."""
        if self.fault:
            return self.router.files == router.files
        return self.router is router and not self.parts

    def why(self) -> Line:
        # Its own file: that of a trial is another one than the daemon serves.
        what = "what other sources contribute" if self.parts else self.router.files[0].path
        said = f"{what} is not applied: {self.error}. What was before it stays in force"
        return Line(said, Level.ERROR)


@dataclass(slots=True)
class AcceptedConfiguration:
    """Belongs to the event loop."""

    last_good: Callable[[], Awaitable[Effective | None]]  # by the ledger
    router: Router | None = None  # the last one that a pass came to its end with
    stored: Effective | None = None  # what it is part of, where it is from the ledger
    _refused: Refusal | None = None  # what was read last

    def take(self, router: Router) -> None:
        self.router = router
        if self.stored is not None and self.stored.router is not router:
            self.stored = None

    async def carry_out(
        self,
        router: Router,
        attempt: Callable[[], Awaitable[Done]],
        fall_back: Callable[[Router, Refusal], Awaitable[None]],
        *,
        parts: Callable[[], bool],
        insists: bool,
    ) -> Done | None:
        """A pass of what was read; or, where that is refused or ends of a fault, one of what stays
        in force (None). Where nothing does, it raises, and the next pass tries again. parts:
        whether it differs from what stays in force by parts of other sources alone. insists:
        somebody asks for it, though it was refused before."""
        refused = self._refused
        if refused is not None and refused.stands(router) and not insists and self.router:
            await fall_back(self.router, refused)
            return None
        lasting = False
        try:
            done = await attempt()
        except Refused as error:
            refusal = error
        except HoldfastError:
            raise
        except Exception as error:
            if await self._held_instead_of(router) is None:
                raise
            # What only the machine may be to blame for is worth another try.
            lasting = not isinstance(error, OSError | MemoryError)
            refusal = Refused(fault("its pass failed", error))
        else:
            self._refused = None
            return done
        held = await self._held_instead_of(router)
        if held is None:
            raise refusal
        self._refused = Refusal(router, refusal, parts(), lasting)
        await fall_back(held, self._refused)
        return None

    async def _held_instead_of(self, router: Router) -> Router | None:
        """What stays in force. None: nothing ever was, or it is the very same."""
        if self.router is None:
            self.stored = await self.last_good()
            self.router = self.stored.router if self.stored is not None else None
        return self.router if self.router is not router else None
