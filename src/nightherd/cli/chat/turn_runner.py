"""TurnRunner: runs the turns of a conversation in this process, where no daemon does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from nightherd.daemon.record import find_daemon
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.operations.wait import wait_for_job
from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.conversation import ConversationId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import Event

LOOK_S = 0.1
RESTART_S = 5.0
"""How long a daemon that was there may be away before its work is done here: it is restarted, most probably."""
PAUSE_S = 1.0
"""After a turn that could not be run here."""


class TurnRunner:
    """Runs jobs of one agent, one at a time."""

    def __init__(
        self,
        state_dir: Path,
        agent: str,
        conversation: ConversationId,
        context: WorkerContext,
        rescue: Callable[[], Awaitable[object]],
        report: Callable[[str], None],
    ) -> None:
        self._state_dir = state_dir
        self._agent = agent
        self._conversation = conversation
        self._context = context
        self._rescue = rescue
        self._report = report
        self._stopper: Stopper | None = None
        self._seen_at: float | None = None
        """When a daemon was seen last."""
        self._is_leaving = False
        self._idle = anyio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Run what waits for a worker until cancelled."""
        while not self._is_leaving:
            job = self._find_work()
            if job is not None:
                await self._run(job)
            await anyio.sleep(LOOK_S)

    async def leave(self) -> None:
        """Give back what runs here: another worker continues it. A daemon's turn is not touched."""
        self._is_leaving = True
        if self._stopper is not None:
            self._stopper.hand_over()
        await self._idle.wait()

    def _find_work(self) -> Job | None:
        """The job of the turn, if it is for us."""
        now = anyio.current_time()
        if self._has_daemon():
            self._seen_at = now
            return None
        if self._seen_at is not None and now - self._seen_at < RESTART_S:
            return None
        reader = self._context.reader
        conversation = reader.find_conversation(self._conversation)
        if conversation is None or conversation.turn_job_id is None:
            return None
        job = reader.find_job(conversation.turn_job_id)
        if job is None or job.status not in (JobStatus.PENDING, JobStatus.RUNNING):
            return None
        return job

    def _has_daemon(self) -> bool:
        """Whether a daemon takes jobs of the agent."""
        record = find_daemon(self._state_dir)
        if record is None or record.is_draining:
            return False
        return record.agents is None or self._agent in record.agents

    async def _run(self, job: Job) -> None:
        """Run the job here, or follow it while another worker does, to its end."""
        self._stopper, self._idle = Stopper(), anyio.Event()
        try:
            agent = self._context.agents[self._agent]
            await wait_for_job(
                job.id,
                agent,
                self._context,
                on_event=_unseen,
                on_wait=_unsaid,
                stopper=self._stopper,
                rescue=self._rescue,
            )
        except NightherdError as error:
            self._report(f"{job.id}: {message_of(error)}")
            await anyio.sleep(PAUSE_S)
        finally:
            self._stopper = None
            self._idle.set()


def _unseen(event: Event) -> None:
    """Ignore the event: the conversation shows what is in the journal."""


def _unsaid(reason: str) -> None:
    """Ignore the reason: the conversation says why a turn waits."""
