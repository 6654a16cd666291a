"""The rounds of the loop: each leads to a pass, or to a word on why there was none."""

from __future__ import annotations

from enum import StrEnum

from holdfast.agent.accepted_configuration import Refusal
from holdfast.agent.configuration_in_force import ConfigurationInForce
from holdfast.agent.declare_requests import DeclareRequest, DeclareRequests
from holdfast.agent.full_pass import FullPass
from holdfast.agent.ledger_outage import despite_ledger
from holdfast.agent.pass_schedule import Reason
from holdfast.agent.pass_timer import PassTimer
from holdfast.agent.passes import Passes
from holdfast.agent.reconciler import Done
from holdfast.agent.services.pass_requests import PassRequest, PassRequests, WaitingRequest
from holdfast.agent.status_publisher import StatusPublisher
from holdfast.dataclass import dataclass, field, replace
from holdfast.errors import HoldfastError, Refused
from holdfast.resources.router import Router
from holdfast.runtime.confirm.trial import OtherInForce
from holdfast.runtime.log import Level, Line, fault
from holdfast.state.faults import UnusableError

# What a command opened or ended a moment ago is looked at anew.
_NEWS_S = 0.1


class _Cause(StrEnum):
    OTHER_IN_FORCE = "another configuration in force"


@dataclass(slots=True)
class Rounds:
    """On the event loop."""

    passes: Passes
    in_force: ConfigurationInForce = field(init=False)
    timer: PassTimer = field(init=False)
    publisher: StatusPublisher = field(init=False)
    waiting: WaitingRequest = field(default_factory=WaitingRequest)
    declares: DeclareRequests = field(default_factory=DeclareRequests)

    def __post_init__(self) -> None:
        self.in_force, self.timer = self.passes.in_force, self.passes.timer
        self.publisher = self.passes.publisher

    def declare(self, request: DeclareRequest) -> None:
        """In the next round, with whatever else is declared by then."""
        self.declares.add(request)
        self.timer.schedule.tell_of_increments()

    def ask(self, request: PassRequest) -> None:
        """For a pass as soon as may be, by what the file says then."""
        self.waiting.add(request)
        self.in_force.reload.now("the command line")

    async def next(self) -> Reason:
        return await self.timer.next(self.in_force.read.next_change)

    async def run(self, reason: Reason) -> None:
        """Whatever goes wrong in it, there will be another one."""
        requests, go_on = PassRequests(), self.passes.go_on_without_ledger
        try:
            declared = self.declares and self.in_force.read.effective is not None
            if declared and await despite_ledger(self._declare, go_on):
                reason = replace(reason, causes=("increments",), full=True)
            partial = not reason.full and not self.in_force.reload.due
            if partial and await despite_ledger(lambda: self.passes.partial(reason), go_on):
                return
            requests = self.waiting.take()
            self.timer.begin_full()
            await despite_ledger(lambda: self._full(reason, requests), go_on)
        except OtherInForce as news:
            self._look_anew(reason, requests, news)
        except HoldfastError as error:
            requests.fail(error)
            self.declares.failed(error)
            self.timer.failed(again=not isinstance(error, Refused))
            trouble = f"the pass was not carried out: {error}"
            self.publisher.publish_trouble(Line(trouble, Level.ERROR))
        except Exception as error:
            requests.fail(error)
            self.declares.failed(error)
            self.timer.failed(again=True)
            self.publisher.publish_trouble(fault("the pass failed", error))

    async def _declare(self) -> bool:
        """Whether a full pass is to follow."""
        requests = self.declares.take()
        try:
            answers, full = await self.passes.declare([request.batch for request in requests])
        except UnusableError:
            self.declares.put_back(requests)
            raise
        except BaseException as error:
            for request in requests:
                request.fail(error if isinstance(error, HoldfastError) else Refused(str(error)))
            raise
        self.declares.stored(requests, answers)
        left = self.publisher.status.plan
        if not full and left is not None:
            self.declares.passed(left)
        return full or left is None

    def _look_anew(self, reason: Reason, requests: PassRequests, news: OtherInForce) -> None:
        requests.fail(Refused(str(news)))
        self.in_force.reload.mark()
        self.timer.schedule.tell(_Cause.OTHER_IN_FORCE, _NEWS_S)
        if _Cause.OTHER_IN_FORCE in reason.causes:  # it is no matter of a moment
            self.publisher.publish_trouble(f"nothing is done meanwhile: {news}")

    async def _full(self, reason: Reason, requests: PassRequests) -> None:
        watches = self.passes.watches
        if watches.watch is None:
            reason.gathered.lost = True  # nobody listened until now
            await watches.begin()
        requests = await self._load(requests)
        router, read = self.in_force.router, self.in_force.read
        if router is None:
            trouble = f"{self.in_force.reload.file} was never valid: nothing is done"
            requests.fail(read.error or Refused(trouble))
            self.publisher.publish(self.publisher.status, (*await watches.begin(), trouble))
            return
        # Told before the pass: one that was refused for the age of a file may end when the file is
        # old enough, and nothing else would have it read again.
        again_in = read.delay()

        async def fall_back(held: Router, refusal: Refusal) -> None:
            self.in_force.reload.later(again_in)
            await self._pass_of_what_is_held(held, refusal, reason, requests)

        done = await self.in_force.accepted.carry_out(
            router,
            lambda: self._pass_of_what_was_read(router, reason, requests),
            fall_back,
            parts=lambda: read.same_startup(self.passes.held),
            insists=bool(requests.questions),
        )
        if read.error is not None:
            requests.fail(read.error)  # what they asked for is what the file says now
        elif done is not None:
            requests.settle(done)
        if done is not None:
            self.declares.passed(done.report.after, done.report.failures)
        else:
            self.declares.failed(Refused("it is stored, and what is declared was refused"))

    async def _load(self, requests: PassRequests) -> PassRequests:
        """Answers who is to be answered by this pass: who asks for a file that is still being read
        waits for the next."""
        read = await self.in_force.load(asked=bool(requests.questions))
        self.passes.reconciler.unloaded = read.unloaded
        if not read.unready:
            return requests
        self.waiting.put_back(requests)
        return PassRequests()

    async def _pass_of_what_was_read(
        self, router: Router, reason: Reason, requests: PassRequests
    ) -> Done:
        self.passes.background.follow(self.in_force.read, self.in_force.accepted.router)
        return await FullPass(self.passes, router, reason, requests).run()

    async def _pass_of_what_is_held(
        self, held: Router, refusal: Refusal, reason: Reason, requests: PassRequests
    ) -> None:
        """What was read is refused."""
        requests.fail(refusal.error)
        self.passes.background.facts.want(self.in_force.router, held)
        await FullPass(self.passes, held, reason, PassRequests(), refusal.why()).run()
