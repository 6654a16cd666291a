"""Which configuration passes go by: what was read last, and what was accepted before it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.agent import log_lines
from holdfast.agent.accepted_configuration import AcceptedConfiguration
from holdfast.agent.configuration import Configuration, Read
from holdfast.agent.file_reload import FileReload
from holdfast.agent.pass_thread import PassThread
from holdfast.dataclass import dataclass, field, replace
from holdfast.resources.dynamic.effective import Effective
from holdfast.resources.router import Router


@dataclass(slots=True)
class ConfigurationInForce:
    """On the event loop."""

    configuration: Configuration
    reload: FileReload
    thread: PassThread
    say: Callable[[str], None]
    accepted: AcceptedConfiguration = field(init=False)
    read: Read = field(default_factory=lambda: Read(None))  # the last time
    router: Router | None = None  # the last valid one that was read

    def __post_init__(self) -> None:
        last_good = self.configuration.last_good
        self.accepted = AcceptedConfiguration(lambda: self.thread.work(last_good))

    def take(self, effective: Effective | None) -> None:
        """What sources declare by increments changed."""
        if effective is not None and effective is not self.read.effective:
            self.read = replace(self.read, effective=effective)
            self.router = effective.router

    async def load(self, *, asked: bool) -> Read:
        """An invalid file leaves the last good one in force. Parts of other sources come and go
        beside it. asked: somebody wants the file taken as it is."""
        stale, read_file = self.reload.take(), self.configuration.read
        try:
            read = await self.thread.work(lambda: read_file(again=stale, asked=asked))
        except BaseException:
            if stale:
                self.reload.mark()
            raise
        self.read = read
        self.reload.later(read.again_in)
        for line in (*read.said, *map(log_lines.line, read.events)):
            self.say(line)
        if read.router is not None:
            self.router = read.router
        return read
