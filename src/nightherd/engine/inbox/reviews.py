"""Reviews: the calls of one execution that people decide about.

Every decision is read from the inbox and is in the journal before the call runs. So a call that was approved runs at
most once, whoever is killed: on record as approved and without a result, its outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.limits.guard import Stop
from nightherd.model.change import Change
from nightherd.model.inbox.changes import AskPerson, WithdrawItem
from nightherd.model.inbox.item import (
    TITLE_LIMIT,
    Asked,
    InboxItem,
    InboxTexts,
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
    title_of,
)
from nightherd.model.jobs.job import ExitReason, Job, SuspendReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.jobs.repeat import interrupted_call
from nightherd.model.journal.event import SystemEvent, describe, payload_of
from nightherd.model.journal.system import Reviewed, Suspension
from nightherd.model.text import shorten

RELEASED_BEFORE = interrupted_call("the execution that was about to run it ended")
YES = (ItemStatus.APPROVED, ItemStatus.ANSWERED)
SHOWN_INPUT = 64 * 1024
"""Characters of a value of a call's input that an item shows; its hash is of all of it."""


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
        """Why the run ends: the job waits for a person, or does not obey one."""

    async def review(self, call: ProposedCall) -> Verdict:
        """Return what a person said about the call; `Wait` when nobody has yet."""
        hash = call_hash(call.tool, call.input, call.preview)
        if self._was_released(call):
            return Refuse(reason=RELEASED_BEFORE)
        item = self._item_about(call, hash) or self._unused_item(hash)
        if item is None:
            repeated = self._rejected_before(call, hash)
            if repeated is not None:
                return repeated
            return self._ask(call, hash)
        match item.status:
            case ItemStatus.PENDING:
                return self._wait(call, item)
            case ItemStatus.APPROVED if self._is_used(item):
                return Refuse(reason=RELEASED_BEFORE)
            case ItemStatus.APPROVED | ItemStatus.ANSWERED:
                return self._decided(call, item)
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
        at = self._context.clock.now()
        gone = [WithdrawItem(item_id=item.id, at=at) for item in self._withdrawn]
        if not self._asked:
            return gone
        ask = AskPerson(asked=tuple(self._asked), job_id=self._job.id, epoch=self._job.epoch)
        return [*gone, ask]

    def _item_about(self, call: ProposedCall, hash: str) -> InboxItem | None:
        """The newest item about exactly this call; one about another version of it does not count any more."""
        for attempt in range(1, 1_000):
            item = self._context.reader.find_item(
                item_id(call_key(self._job.id, call.tool_use_id, attempt))
            )
            if item is None:
                return None
            if item.hash == hash:
                return item
            if item.is_pending:
                self._withdrawn.append(item)
        return None

    def _unused_item(self, hash: str) -> InboxItem | None:
        """An item about the same call under another id that still waits, or was approved and never used.

        A runtime whose conversation was cut off before it had kept the call makes it again under a new id.
        """
        if self._job.epoch == 1:
            return None
        used = {line.item for line in self._known() if line.status in YES}
        for item in self._context.reader.items_of_job(self._job.id):
            is_open = item.is_pending or item.status in YES
            if item.hash == hash and is_open and item.id not in used:
                return item
        return None

    def _next_key(self, call: ProposedCall) -> str:
        """The key of the first item about the call that is not there yet."""
        attempt = 1
        while True:
            key = call_key(self._job.id, call.tool_use_id, attempt)
            if self._context.reader.find_item(item_id(key)) is None:
                return key
            attempt += 1

    def _ask(self, call: ProposedCall, hash: str) -> Verdict:
        at, key, terms = self._context.clock.now(), self._next_key(call), call.terms
        question = call.question
        item = InboxItem(
            id=item_id(key),
            kind=ItemKind.APPROVAL if question is None else ItemKind.QUESTION,
            status=ItemStatus.PENDING,
            created_at=at,
            subject=self._job.id,
            title=shorten(str(self._context.secrets.mask(title_of(call))), TITLE_LIMIT),
            dedupe_key=key,
            hash=hash,
            epoch=self._job.epoch,
            job_id=self._job.id,
            agent=self._job.agent,
            schedule=self._job.schedule,
            tool=call.tool,
            tool_use_id=call.tool_use_id,
            quorum=terms.quorum,
            expires_at=None if terms.expires is None else at + terms.expires,
            on_expiry=terms.on_expiry,
        )
        body: dict[str, object] = {"tool": call.tool, "input": _bounded(call.input)}
        if call.preview is not None:
            body["preview"] = call.preview
        if question is not None:
            body |= {"question": question.text, "options": list(question.options)}
        texts = InboxTexts(
            item_id=item.id,
            body=self._context.secrets.mask(body),
            terms={
                "approvers": list(terms.approvers),
                "remind_s": [one.total_seconds() for one in terms.remind],
            },
        )
        self._asked.append(Asked(item=item, texts=texts))
        return self._wait(call, item)

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

    def _decided(self, call: ProposedCall, item: InboxItem) -> Verdict:
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
        return Proceed(input=changed)

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
        same = [
            item
            for item in self._context.reader.items_of_job(self._job.id)
            if item.hash == hash and item.status in (ItemStatus.REJECTED, ItemStatus.EXPIRED)
        ]
        if not same:
            return None
        times = sum(line.hash == hash and line.status != "pending" for line in self._known())
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


def _bounded(input: object) -> object:
    """The input with long texts cut off: a person reads no more, and a row is no file."""
    if isinstance(input, str):
        return shorten(input, SHOWN_INPUT)
    if isinstance(input, dict):
        return {name: _bounded(value) for name, value in input.items()}
    if isinstance(input, list | tuple):
        return [_bounded(value) for value in input]
    return input
