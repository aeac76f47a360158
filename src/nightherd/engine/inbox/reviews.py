"""Reviews: the calls of one execution that people decide about.

Every decision is read from the inbox and is in the journal before the call runs. So a call that was approved runs at
most once, whoever is killed: on record as approved and without a result, its outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.inbox.asked import asked_about
from nightherd.engine.jobs.oversight import is_cancel_requested
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.limits.guard import Stop
from nightherd.model.change import Change
from nightherd.model.children import TOOL as SPAWN
from nightherd.model.inbox.changes import AskPerson, WithdrawItem
from nightherd.model.inbox.item import (
    ABOUT_CALLS,
    Asked,
    InboxItem,
    ItemId,
    ItemKind,
    ItemStatus,
    call_hash,
    call_key,
    item_id,
)
from nightherd.model.inbox.review import (
    APPROVAL,
    MOST_REPEATS,
    QUESTION,
    REPEATED_REJECTIONS,
    Proceed,
    ProposedCall,
    Refuse,
    Replied,
    Verdict,
    Wait,
)
from nightherd.model.jobs.job import ExitReason, Job, SuspendReason
from nightherd.model.jobs.outcome import CANCELLED, Outcome
from nightherd.model.jobs.repeat import interrupted_call
from nightherd.model.journal.event import SystemEvent, describe, payload_of
from nightherd.model.journal.system import Reviewed, Suspension

RELEASED_BEFORE = interrupted_call("the execution that was about to run it ended")
YES = (ItemStatus.APPROVED, ItemStatus.ANSWERED)
NO = (ItemStatus.REJECTED, ItemStatus.EXPIRED)


class Reviews:
    """Asks people about calls of one job, and tells the runtime what they said."""

    def __init__(self, job: Job, recorder: Recorder, context: WorkerContext) -> None:
        self._job = job
        self._recorder = recorder
        self._context = context
        self._asked: list[Asked] = []
        self._withdrawn: list[InboxItem] = []
        self._lines: list[Reviewed] | None = None
        self.stop: Stop | None = None
        """Why the run ends: the job waits for a person, does not obey one, or is cancelled."""

    async def review(self, call: ProposedCall) -> Verdict:
        """Return what a person said about the call; `Wait` when nobody has yet."""
        if is_cancel_requested(self._job, self._context):
            # The call is on record since an earlier execution: nothing else looks before it runs.
            self.stop = self.stop or CANCELLED
            return Wait()
        hash = call_hash(call.tool, call.input, call.preview)
        if self._was_released(call):
            return self._released_before(call)
        if call.is_allowed:
            return await self._allowed(call, hash)
        item = self._item_about(call, hash) or self._unused_item(call, hash)
        if item is None:
            return self._rejected_before(call, hash) or self._ask(call, hash)
        match item.status:
            case ItemStatus.PENDING:
                return self._wait(call, item)
            case ItemStatus.APPROVED if self._is_used(item):
                return Refuse(reason=RELEASED_BEFORE)
            case ItemStatus.APPROVED if not self._is_on_record(item):
                # The journal that said whether the call has run is lost: an old answer is not enough.
                return self._ask(call, hash)
            case ItemStatus.APPROVED | ItemStatus.ANSWERED:
                return await self._decided(call, item)
            case _:
                return self._rejected(call, item)

    @property
    def is_waiting(self) -> bool:
        """Whether a call waits for a person: the runtime is about to end the run."""
        return isinstance(self.stop, Suspension)

    def waiting_calls(self) -> frozenset[str]:
        """Return the calls on record that a person is asked about and that have not begun."""
        lines = self._known()
        begun = {line.tool_use_id for line in lines if line.status == ItemStatus.APPROVED}
        return frozenset(line.tool_use_id for line in lines) - begun

    def closing(self) -> Sequence[Change]:
        """Return what belongs into the transaction that suspends the job: the items that it waits for."""
        at, job = self._context.clock.now(), self._job
        gone = [
            WithdrawItem(item_id=item.id, at=at, job_id=job.id, epoch=job.epoch)
            for item in self._withdrawn
        ]
        if not self._asked:
            return gone
        return [*gone, AskPerson(asked=tuple(self._asked), job_id=job.id, epoch=job.epoch)]

    def _item_about(self, call: ProposedCall, hash: str) -> InboxItem | None:
        """The newest item about the call if it is about exactly this one; an older version does not count any more."""
        newest, _ = self._attempts(call)
        if newest is None:
            return None
        if newest.hash == hash and newest.status in (ItemStatus.PENDING, *YES, *NO):
            return newest
        if newest.is_pending:
            self._withdrawn.append(newest)
        return None

    def _attempts(self, call: ProposedCall) -> tuple[InboxItem | None, str]:
        """The newest item about the call, and the key of the next."""
        newest, attempt = None, 1
        while True:
            key = call_key(self._job.id, call.tool_use_id, attempt)
            item = self._context.reader.find_item(item_id(key))
            if item is None:
                return newest, key
            newest, attempt = item, attempt + 1

    def _unused_item(self, call: ProposedCall, hash: str) -> InboxItem | None:
        """An item about the same call under another id that still waits, or was approved and never used.

        A runtime whose conversation was cut off before it had kept the call makes it again under a new id.
        """
        if self._job.epoch == 1:
            return None
        used = {line.item for line in self._known() if line.status in YES}
        items = self._context.reader.items_of_job(self._job.id)
        newest = {item.tool_use_id: item for item in items if item.kind in ABOUT_CALLS}
        for item in newest.values():
            is_open = item.is_pending or item.status in YES
            is_other = item.tool_use_id != call.tool_use_id
            if is_other and item.hash == hash and is_open and item.id not in used:
                return item
        return None

    async def _allowed(self, call: ProposedCall, hash: str) -> Verdict:
        """Decide about a call that a person was asked about and that the rules allow by now.

        A rejection still counts, and the call is on record before it runs, like every other that waited.
        """
        newest, _ = self._attempts(call)
        if newest is None or not self._is_on_record(newest):
            return Proceed()
        if newest.status in NO:
            return self._rejected(call, newest)
        if newest.status in YES and newest.hash == hash:
            return await self._decided(call, newest)
        self._record(call, newest, ItemStatus.APPROVED, "allowed by the rules of the agent")
        await self._recorder.sync(self._context.sync)
        return Proceed()

    def _ask(self, call: ProposedCall, hash: str) -> Verdict:
        _, key = self._attempts(call)
        at, secrets = self._context.clock.now(), self._context.secrets
        asked = asked_about(call, job=self._job, key=key, hash=hash, at=at, secrets=secrets)
        self._asked.append(asked)
        return self._wait(call, asked.item)

    def _wait(self, call: ProposedCall, item: InboxItem) -> Verdict:
        is_question = item.kind is ItemKind.QUESTION
        what = "an answer to" if is_question else "approval of"
        message = f"waits for {what} {item.title}"
        self._record(call, item, ItemStatus.PENDING, message)
        self.stop = Suspension(
            reason=SuspendReason.APPROVAL,
            code=QUESTION if is_question else APPROVAL,
            message=message,
        )
        return Wait()

    async def _decided(self, call: ProposedCall, item: InboxItem) -> Verdict:
        texts = self._context.reader.find_item_texts(item.id)
        changed = texts.input if texts is not None else None
        by = f"{item.decided_by} ({item.decided_via})"
        if item.kind is ItemKind.QUESTION:
            self._record(call, item, item.status, f"answered by {by}")
            return Replied(text=(texts.reply if texts is not None else None) or "")
        self._record(
            call,
            item,
            item.status,
            f"approved by {by}",
            input=dict(changed) if changed is not None else None,
        )
        # A power cut must not let it run twice either.
        await self._recorder.sync(self._context.sync)
        return Proceed(input=changed)

    def _released_before(self, call: ProposedCall) -> Verdict:
        """A call that may have run is not run again; but a call that makes a child has one child, however often made."""
        if call.tool != SPAWN:
            return Refuse(reason=RELEASED_BEFORE)
        items = [line.item for line in self._known() if line.tool_use_id == call.tool_use_id]
        texts = self._context.reader.find_item_texts(ItemId(items[-1]))
        return Proceed(input=texts.input if texts is not None else None)

    def _rejected(self, call: ProposedCall, item: InboxItem) -> Refuse:
        texts = self._context.reader.find_item_texts(item.id)
        reason = texts.reply if texts is not None else None
        if item.status is ItemStatus.EXPIRED:
            said = "nobody answered in time, so it was not run"
        else:
            said = f"rejected by {item.decided_by}" + (f": {reason}" if reason else "")
        self._record(call, item, item.status, said)
        return Refuse(reason=said)

    def _rejected_before(self, call: ProposedCall, hash: str) -> Refuse | None:
        """A call that a person rejected is not asked about again in the same job; the job ends when that goes on."""
        items = self._context.reader.items_of_job(self._job.id)
        same = [item for item in items if item.hash == hash and item.status in NO]
        if not same:
            return None
        times = sum(line.hash == hash and line.status in NO for line in self._known())
        if times > MOST_REPEATS:
            message = f"the agent made a rejected call {times} times: {same[0].title}"
            self.stop = Outcome(
                exit_reason=ExitReason.ERROR, error=message, error_code=REPEATED_REJECTIONS
            )
        return self._rejected(call, same[-1])

    def _was_released(self, call: ProposedCall) -> bool:
        return any(
            line.tool_use_id == call.tool_use_id and line.status == ItemStatus.APPROVED
            for line in self._known()
        )

    def _is_used(self, item: InboxItem) -> bool:
        """Whether the approval has let a call run, under whichever id."""
        return any(
            line.item == item.id and line.status == ItemStatus.APPROVED for line in self._known()
        )

    def _is_on_record(self, item: InboxItem) -> bool:
        """Whether the journal says that this was asked: it does before the item is there."""
        return any(line.item == item.id for line in self._known())

    def _known(self) -> list[Reviewed]:
        """What the journal says about reviews of this job; read once, and only where something is reviewed."""
        if self._lines is None:
            self._lines = []
            if self._job.epoch > 1:
                for event in self._context.journals.read(self._job.id, load_blobs=False):
                    if isinstance(event, SystemEvent):
                        payload = payload_of(event)
                        if isinstance(payload, Reviewed):
                            self._lines.append(payload)
        return self._lines

    def _record(
        self,
        call: ProposedCall,
        item: InboxItem,
        status: ItemStatus,
        text: str,
        *,
        input: dict[str, object] | None = None,
    ) -> None:
        known = self._known()
        line = Reviewed(
            tool_use_id=call.tool_use_id,
            item=item.id,
            status=status.value,
            hash=call_hash(call.tool, call.input, call.preview),
            by=item.decided_by,
            via=item.decided_via,
            input=input,
        )
        self._recorder.record(describe(line, text))
        known.append(line)
