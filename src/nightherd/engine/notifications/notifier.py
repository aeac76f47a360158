"""The notifier: follows the ledger, queues digests and delivers, beside the jobs and never in their way."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from nightherd.engine.notifications.context import NotifyContext
from nightherd.engine.notifications.deliver import deliver
from nightherd.engine.notifications.digests import queue_digests
from nightherd.engine.notifications.follow import Follower
from nightherd.errors import message_of, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.retry import Backoff
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.notifications.routing import devices_of, with_bots
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.secrets import Secrets

INTERVAL_S = 1.0
IDLE_S = 60.0
"""The same for a fleet without targets and without a dashboard."""
AT_ONCE = 4
"""Messages that are on their way at the same time, one for each target."""
LAST_PATIENCE_S = 10.0
"""How long a process that leaves waits for what is due now."""


class Notifier:
    """One process's notifier. Nothing it meets ends it: what fails now may work later."""

    def __init__(
        self, fleet: Fleet, context: NotifyContext, *, interval_s: float = INTERVAL_S
    ) -> None:
        self._fleet = fleet
        self._context = context
        self._follower = Follower(fleet, context)
        self._targets = with_bots(fleet)
        self._devices: Mapping[str, NotifyTarget] = {}
        self._is_declared = False
        self._is_leaving = False
        self._active: set[str] = set()
        self._limit = anyio.CapacityLimiter(AT_ONCE)
        self._backoff, self._delivering = Backoff(), Backoff()
        self._interval_s = interval_s
        self._changed = anyio.Event()

    def adopt(self, fleet: Fleet, environment: Mapping[str, str], secrets: Secrets) -> None:
        """From now on the targets are those of this fleet."""
        self._context = replace(self._context, environment=environment, secrets=secrets)
        self._follower.context = self._context
        self._fleet, self._targets, self._is_declared = fleet, with_bots(fleet), False
        self._changed.set()

    async def run(self) -> None:
        """Work until `leave` is called; then queue what has happened, and finish what is due within a short time."""
        async with anyio.create_task_group() as tasks:
            while not self._is_leaving:
                self._changed = anyio.Event()
                with anyio.move_on_after(await self._round(tasks)):
                    await self._changed.wait()
            tasks.cancel_scope.deadline = anyio.current_time() + LAST_PATIENCE_S
            await self._round(tasks)

    def leave(self) -> None:
        """Make `run` end soon."""
        self._is_leaving = True
        self._changed.set()

    async def _round(self, tasks: TaskGroup) -> float:
        """Look once; return how long to wait before the next look."""
        try:
            await self.look()
            for target in self.due():
                self._active.add(target.id)
                tasks.start_soon(self._deliver, target)
        except Exception as error:  # noqa: BLE001 (an edge: jobs go on, and the next round may work)
            return self._failed(error, self._backoff)
        self._backoff.reset()
        # A device may be subscribed at any time; targets change only with the fleet.
        return self._interval_s if self._targets or self._fleet.web.enabled else IDLE_S

    async def look(self) -> None:
        """Take in what is new."""
        fleet, reader = self._fleet, self._context.reader
        self._devices = (
            devices_of(fleet, reader.active_push_subscriptions()) if fleet.web.enabled else {}
        )
        self._follower.tell(self._devices)
        if not self._is_declared and (
            self._targets or self._devices or reader.notified_change() is not None
        ):
            await self._follower.declare(fleet)
            self._is_declared = fleet is self._fleet
        if self._targets or self._devices:
            await self._follower.follow()
            await queue_digests(fleet, self._context)

    def due(self) -> list[NotifyTarget]:
        """Return the targets for which something is due and nothing is on its way from here."""
        targets = {**self._targets, **self._devices}
        if not targets:
            return []
        due = self._context.reader.due_notify_targets(self._context.clock.now())
        return [targets[name] for name in due if name in targets and name not in self._active]

    async def _deliver(self, target: NotifyTarget) -> None:
        try:
            async with self._limit:
                await deliver(target, self._fleet, self._context)
            self._delivering.reset()
        except Exception as error:  # noqa: BLE001 (an edge: one target's trouble is not another's)
            await anyio.sleep(self._failed(error, self._delivering))
        finally:
            self._active.discard(target.id)

    def _failed(self, error: Exception, backoff: Backoff) -> float:
        """Say what failed, once in a row; how long to wait before the next try."""
        message = message_of(unwrapped(error))
        pause_s, is_new = backoff.fail(message)
        if is_new:
            line = LogLine(
                at=self._context.clock.now(),
                level=LogLevel.WARNING,
                event="notification.trouble",
                message=f"notifications are not sent: {message}",
            )
            self._context.log.write(line)
        return max(pause_s, self._interval_s)
