"""TurnFollower: reads the journal of one turn's job, and says in the conversation what it says, each thing once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

import anyio

from nightherd.engine.chat.answer_parts import preview
from nightherd.engine.chat.attachments import remove_files
from nightherd.engine.chat.context import ChatContext, Signal
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.outbox import Outbox
from nightherd.engine.chat.start_turns import QUEUE
from nightherd.engine.chat.turn_outputs import TurnOutputs
from nightherd.engine.chat.turn_posts import TurnPosts
from nightherd.engine.chat.turn_texts import (
    CANCELLED,
    DONE,
    NO_ANSWER,
    behind_text,
    failure_text,
    summary_text,
    wait_text,
)
from nightherd.errors import NightherdError
from nightherd.model.change import Refused
from nightherd.model.chat.changes import FinishTurn, NoteTurn
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.message import ChatMessageId, ChatTurn, TurnStatus
from nightherd.model.chat.post import PostKind, QueuedPost, post_id
from nightherd.model.chat.settings import LogLevel as Detail
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.lost import ObservedJob, lost_text
from nightherd.model.journal.event import SystemEvent, messages_joined
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Tail, TextTail
from nightherd.views.jobs.jobs import observe_job

SHORTEST_WAIT_S = 0.01
LONGEST_WAIT_S = 0.015
WAIT_GROWTH = 1.1
"""Between two looks at the journal of a job that runs."""
ROW_S = 1.0
"""The longest time between two looks at the job's row; every change of it wakes the follower too."""
QUIET_S = 30.0
"""The same while the job waits for a person or a time."""
BEHIND_AFTER_S = 3.0
"""How long a job waits for another one before that is said."""
PROGRESS_AFTER_S = 1.0
"""How long a tool runs before that is shown."""
LOST_S = 2.0
"""How often it is looked whether a running job still has its worker."""
NEXT = "What waited is answered now."
JOINED = "I take what waited into account."
NOTHING_WAITS = "Nothing waits any more."
STATUS_OF = {
    JobStatus.COMPLETED: TurnStatus.ANSWERED,
    JobStatus.FAILED: TurnStatus.FAILED,
    JobStatus.CANCELLED: TurnStatus.CANCELLED,
}


class TurnFollower:
    """Follows one turn to its end."""

    def __init__(
        self, turn: ChatTurn, conversation: Conversation, context: ChatContext, outbox: Outbox
    ) -> None:
        self.job_id: JobId = turn.job_id
        self.changed = anyio.Event()
        """Set when the job's row may have changed."""
        self.is_running = anyio.Event()
        """Set while the job runs; another one each time it has stopped."""
        self.joined: list[ChatMessageId] = []
        """Messages that the agent was told while it was at work."""
        self.has_joined = Signal()
        """Set when there is another one."""
        self._turn = turn
        self._context = context
        self._outbox = outbox
        self._outputs = TurnOutputs(context.settings.output, turn.seq)
        self._posts = TurnPosts(turn, conversation, context)
        self._noticed = turn.notice
        self._is_over = False
        self._progress, self._progress_due = "", 0.0
        self._began = self._looked_after = anyio.current_time()

    async def run(self) -> None:
        """Follow the turn until it is over, or another process has ended it."""
        journals = self._context.fleet.journals
        self._posts.find_posts()
        with (
            closing(journals.follower(self.job_id, after=0, load_blobs=True)) as tail,
            closing(journals.text_follower(self.job_id)) as text,
        ):
            await self._follow(tail, text)

    async def _follow(self, tail: Tail, text: TextTail) -> None:
        wait, looked_at = SHORTEST_WAIT_S, anyio.current_time()
        job = self._read()
        while True:
            has_news = has_ended = False
            # The row says that the job is over after its journal does: this look sees everything.
            while events := tail.poll():
                has_news = True
                for event in events:
                    self._outputs.take(event)
                    if joined := messages_joined(event):
                        self.joined += map(ChatMessageId, joined)
                        self.has_joined.set()
                        await self._say_joined()
                    has_ended = (
                        isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
                    )
            if job is None or job.is_terminal:
                await self._finish(job)
                return
            deltas = text.poll()
            self._outputs.stream(deltas)
            if has_news or deltas or self._outputs.progress:
                await self._show()
            await self._say_why_it_waits(job)
            if self._is_over:
                return
            wait = (
                SHORTEST_WAIT_S if has_news or deltas else min(wait * WAIT_GROWTH, LONGEST_WAIT_S)
            )
            is_woken = await self._wait(self._pause(job, wait))
            if is_woken or has_ended or anyio.current_time() - looked_at >= ROW_S:
                job, looked_at = self._read(), anyio.current_time()

    def _pause(self, job: Job, wait: float) -> float:
        """How long nothing can be missed: `wait` where the journal may grow at any moment."""
        if job.status is JobStatus.SUSPENDED:
            return QUIET_S
        is_new = anyio.current_time() - self._began < BEHIND_AFTER_S
        return wait if job.status is JobStatus.RUNNING or is_new else ROW_S

    def _read(self) -> Job | None:
        self.changed = anyio.Event()
        job = self._context.fleet.reader.find_job(self.job_id)
        if job is not None and job.status is JobStatus.RUNNING:
            self.is_running.set()
        elif self.is_running.is_set():
            self.is_running = anyio.Event()
        return job

    async def _wait(self, seconds: float) -> bool:
        """Wait until the row may have changed, or the time has passed; returns whether it may."""
        with anyio.move_on_after(seconds):
            await self.changed.wait()
        return self.changed.is_set()

    async def _show(self) -> None:
        """Post what is ready, then show what comes in."""
        ready = self._outputs.take_ready()
        if ready:
            await self._note(await self._posts.of(ready), seq=ready[-1].seq)
        text = self._outputs.live_text or self._shown_progress()
        if self._is_over or not text.strip() or not self._posts.shows(text):
            return
        shown = preview(self._context.settings.platform, text)
        if self._posts.live is None:
            await self._note((self._posts.begin_live(shown),))
        else:
            self._outbox.show(self._posts.live, shown)

    def _shown_progress(self) -> str:
        """The tool that runs, once it has been running for a while: most are quicker than a message about them."""
        now, progress = anyio.current_time(), self._outputs.progress
        if progress != self._progress:
            self._progress, self._progress_due = progress, now + PROGRESS_AFTER_S
        return progress if progress and now >= self._progress_due else ""

    async def _note(
        self, posts: Sequence[QueuedPost], *, seq: int | None = None, notice: str | None = None
    ) -> None:
        context = self._context
        change = NoteTurn(job_id=self.job_id, posts=tuple(posts), seq=seq, notice=notice)
        context.probe("chat.before_note")
        (answer,) = await context.fleet.state.apply([change])
        context.probe("chat.after_note")
        if isinstance(answer, Refused):
            turn = context.fleet.reader.find_chat_turn(self.job_id)
            self._is_over = turn is None or not turn.is_open
        if posts:
            context.signals.posts.set()

    async def _say_why_it_waits(self, job: Job) -> None:
        """Say once why the turn waits: for a person, for a time, or for another job."""
        if job.status is JobStatus.SUSPENDED:
            key = f"suspended {job.epoch}"
            if key != self._noticed:
                await self._notice(key, wait_text(job, self._outputs.wait_message))
        elif job.status is JobStatus.PENDING:
            key = f"queued {job.epoch}"
            waited = anyio.current_time() - self._began
            if key == self._noticed or waited < BEHIND_AFTER_S:
                return
            ahead = self._context.fleet.reader.jobs_ahead(job, 1)
            if ahead:
                await self._notice(key, behind_text(ahead[0]))
        elif job.status is JobStatus.RUNNING:
            await self._look_after(job)

    async def _look_after(self, job: Job) -> None:
        """Have a job rescued whose worker is gone; say so where nobody can do that now."""
        now = anyio.current_time()
        key = f"lost {job.epoch}"
        if now - self._looked_after < LOST_S or key == self._noticed:
            return
        self._looked_after = now
        if not self._is_lost(job):
            return
        with suppress(NightherdError):  # workers report what is wrong
            await self._context.rescue()
        current = self._read()
        if current is not None and current.epoch == job.epoch and self._is_lost(current):
            await self._notice(key, f"My worker is gone: {lost_text(self._observed(current))}.")

    def _is_lost(self, job: Job) -> bool:
        return self._observed(job).lost is not None

    def _observed(self, job: Job) -> ObservedJob:
        context = self._context
        now = context.fleet.clock.now()
        return observe_job(context.fleet.reader, job, context.is_at_work, now)

    async def _notice(self, key: str, text: str) -> None:
        self._noticed = key
        name = key.replace(" ", "-")
        await self._note((self._posts.notice(name, self._masked(text)),), notice=key)

    async def _finish(self, job: Job | None) -> None:
        """Say how it ended, and free the conversation: both at once."""
        context = self._context
        turn = context.fleet.reader.find_chat_turn(self.job_id)
        if turn is None or not turn.is_open:
            return
        status = TurnStatus.FAILED if job is None else STATUS_OF[job.status]
        is_whole = status is TurnStatus.ANSWERED
        rest = await self._posts.of(self._outputs.take_rest(is_whole=is_whole))
        # After an answer, a live post is closed only if somebody can have seen it; else it has to say how the turn ended.
        with_live = self._posts.unneeded(QUEUE)
        posts = [*rest, *self._closing(job, status)]
        is_said = is_whole and self._outputs.has_answer
        waiting = context.fleet.reader.waiting_chat_messages(turn.conversation_id, 1)
        posts += self._posts.edit(QUEUE, NEXT if waiting else NOTHING_WAITS)
        change = FinishTurn(
            job_id=self.job_id,
            status=status,
            at=context.fleet.clock.now(),
            posts=tuple(posts),
            drops=with_live if is_said else self._posts.unneeded(QUEUE),
        )
        asked = context.fleet.reader.chat_messages_of_job(self.job_id)
        await remove_files(asked, context)
        context.probe("chat.before_finish")
        # Refused when another process has ended the turn: what it said stands.
        await context.fleet.state.apply([change])
        context.probe("chat.after_finish")
        write_log(
            context,
            "turn_ended",
            detail=Detail.STANDARD,
            job=self.job_id,
            status=status.value,
            conversation=turn.conversation_id,
        )
        context.signals.posts.set()

    async def _say_joined(self) -> None:
        """Say that nothing waits any more: the agent was told it."""
        reader = self._context.fleet.reader
        texts = reader.find_post_texts(post_id(self.job_id, QUEUE))
        waiting = reader.waiting_chat_messages(self._turn.conversation_id, 1)
        if not waiting and texts is not None and texts.text != JOINED:
            await self._note(self._posts.edit(QUEUE, JOINED))

    def _closing(self, job: Job | None, status: TurnStatus) -> Iterator[QueuedPost]:
        """What is said at the end, besides the answer."""
        output = self._context.settings.output
        match status:
            case TurnStatus.CANCELLED:
                yield self._posts.notice("end", CANCELLED)
            case TurnStatus.FAILED:
                text = failure_text(job) if job is not None and output.errors else NO_ANSWER
                yield self._posts.notice("end", self._masked(text), PostKind.ERROR)
            case _ if not self._outputs.has_answer:
                yield self._posts.notice("end", self._masked(self._result()), PostKind.ANSWER)
            case _ if self._posts.live is not None:
                yield self._posts.notice("end", DONE, PostKind.ANSWER)
            case _:
                pass
        if output.result_summary and job is not None:
            yield self._posts.notice("summary", summary_text(job), PostKind.SUMMARY)

    def _result(self) -> str:
        """What the job came to, where no answer says it."""
        texts = self._context.fleet.reader.find_texts(self.job_id)
        result = None if texts is None else texts.summary or texts.output_text
        return result or DONE

    def _masked(self, text: str) -> str:
        return str(self._context.fleet.secrets.mask(text))
