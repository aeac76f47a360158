"""Left issues: those that say they are in progress while nobody has them (`cleanup_in_progress`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from nightherd.engine.work.comments import left_text
from nightherd.engine.work.context import WorkContext, blocked_state, note_failure
from nightherd.errors import WorkSourceError
from nightherd.model.log import LogLine
from nightherd.model.work.issue import Issue
from nightherd.model.work.item import WorkStatus, work_id
from nightherd.model.work.source import WorkSource
from nightherd.ports.work import WorkTracker

EVERY = timedelta(minutes=10)
MOST = 20
"""Issues that are made ready again in one look."""


class LeftIssues:
    """Looks for them now and then, beginning with the start of the process."""

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        self._looked_at: dict[WorkSource, datetime] = {}

    async def look(self, sources: Sequence[WorkSource]) -> None:
        """Make issues ready again that nobody works on, where their source says so and it is time."""
        now = self._context.now()
        for source in sources:
            last = self._looked_at.get(source)
            if not source.cleanup_in_progress or (last is not None and last <= now < last + EVERY):
                continue
            if blocked_state(source.id, self._context) is not None:
                continue
            self._looked_at[source] = now
            try:
                await release_left(source, self._context)
            except WorkSourceError as error:
                await note_failure(source.id, error, self._context)


async def release_left(source: WorkSource, context: WorkContext) -> list[int]:
    """Make the issues ready again that say they are in progress and are nobody's; return their numbers."""
    tracker = context.tracker(source)
    listed = await tracker.list_issues(source.in_progress, 1)
    released: list[int] = []
    for issue in listed.issues:
        if len(released) >= MOST:
            break
        if issue.is_pull_request or not await _is_left(issue, source, tracker, context):
            continue
        await tracker.add_label(issue.number, source.ready)
        context.probe("work.left")
        await tracker.remove_label(issue.number, source.in_progress)
        released.append(issue.number)
    if released:
        line = LogLine(
            at=context.now(),
            event="work.left",
            message=left_text(source, len(released)),
            data={"source": source.id, "issues": released},
        )
        context.fleet.log.write(line)
    return released


async def _is_left(
    issue: Issue, source: WorkSource, tracker: WorkTracker, context: WorkContext
) -> bool:
    item = context.fleet.reader.find_work_item(work_id(source.id, issue.number))
    if item is not None and (item.is_open or item.status is WorkStatus.FAILED):
        return False  # it is ours, or keeps its label because its job failed
    if source.lock and await tracker.find_lock(issue.number) is not None:
        return False
    # The list may be old, and the issue may have been made ready and taken since.
    current = await tracker.find_issue(issue.number)
    labels = () if current is None or not current.is_open else current.labels
    return source.in_progress.casefold() in {label.casefold() for label in labels}
