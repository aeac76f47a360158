"""RunItems: what people are asked because of runs that were started in conversations, at any level below those runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.runs import is_started_by
from nightherd.model.chat.conversation import Conversation, ConversationId
from nightherd.model.chat.item_post import HEADINGS
from nightherd.model.inbox.item import InboxItem, InboxQuery, ItemId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import StateReader

PAGE = 200


class AskedByRun(msgspec.Struct, frozen=True, kw_only=True):
    """An item that waits, and where its run was started."""

    item: InboxItem
    conversation: Conversation
    run_id: RunId
    """The run that the person started; the item may be of a run or a job below it."""


class RunItems:
    """The items of one bot's runs. The run above an item never changes, so it is looked up once."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._roots: dict[ItemId, RunId | None] = {}

    def pending(self) -> Iterator[AskedByRun]:
        """Yield what people are asked now, in the order of asking. Whoever starts a run sees what its sub-workflows ask."""
        reader, known, self._roots = self._context.fleet.reader, self._roots, {}
        for item in _pending_items(reader):
            root = known[item.id] if item.id in known else self._root(item)
            self._roots[item.id] = root
            run = None if root is None else reader.find_run(root)
            if run is None or run.is_terminal or not _is_asked(item, reader):
                continue
            conversation = reader.find_conversation(ConversationId(run.trigger_id))
            if conversation is not None:
                yield AskedByRun(item=item, conversation=conversation, run_id=run.id)

    def _root(self, item: InboxItem) -> RunId | None:
        """The run that a person started in a conversation of the bot, if the item is of that run or below it."""
        reader = self._context.fleet.reader
        run = _run_of(item, reader)
        first = None if run is None else reader.find_run(run.root)
        return first.id if first is not None and is_started_by(first, self._context) else None


def _pending_items(reader: StateReader) -> Sequence[InboxItem]:
    """Everything in the inbox that chat shows and that waits, in the order of asking."""
    found: list[InboxItem] = []
    before: int | None = None
    while page := reader.list_items(InboxQuery(before=before, limit=PAGE)):
        found += page
        before = page[-1].number
        if len(page) < PAGE:
            break
    return [item for item in reversed(found) if item.kind in HEADINGS]


def _run_of(item: InboxItem, reader: StateReader) -> WorkflowRun | None:
    """The run that asks: the item's own, or the one that its job, or a job above that, is a phase of."""
    id = item.workflow_run_id
    job = None if id is not None or item.job_id is None else reader.find_job(item.job_id)
    while job is not None and job.workflow_run_id is None:
        job = None if job.parent_job_id is None else reader.find_job(job.parent_job_id)
    id = id if job is None else job.workflow_run_id
    return None if id is None else reader.find_run(RunId(id))


def _is_asked(item: InboxItem, reader: StateReader) -> bool:
    """Whether a person is waited for: a gate is, and a job that has stopped for it."""
    job = None if item.job_id is None else reader.find_job(item.job_id)
    return item.job_id is None or (job is not None and job.status is JobStatus.SUSPENDED)
