"""The whole fleet as `status` and the API show it: the daemon, the agents, and what fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from nightherd.model.notifications.notification import TargetState
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.views.chat.bots import BotRow, BotView, bot_row
from nightherd.views.fleet.fleet import FleetDocument, FleetView, fleet_document
from nightherd.views.jobs.document import FailedHook, failed_hook_row
from nightherd.views.jobs.rows import FailedHookRow
from nightherd.views.people.notifications import FailingTargetRow, failing_row
from nightherd.views.work.work import WorkItemRow, WorkSourceRow, work_item_row, work_source_row


class ConfigProblemRow(TypedDict):
    """An error of the fleet file, with its place."""

    file: str
    line: int
    column: int
    message: str
    severity: NotRequired[str]
    path: NotRequired[str]
    hint: NotRequired[str | None]


class ConfigErrorRow(TypedDict):
    """What is wrong with a newer configuration, which is therefore not used."""

    at: str | None
    problems: list[ConfigProblemRow]


class DaemonRow(TypedDict):
    """The process that runs the fleet."""

    pid: int
    host: str
    version: str
    started_at: str
    uptime_seconds: float
    is_draining: bool
    config: str
    agents: list[str] | None
    loaded_at: str
    config_error: ConfigErrorRow | None
    pending: list[str]
    socket: str | None
    ports: list[int]
    address: str | None


class StatusDocument(FleetDocument):
    """What the fleet is doing, the process that serves it, and what fails."""

    daemon: DaemonRow | None
    failed_hooks: list[FailedHookRow]
    failing_notify_targets: list[FailingTargetRow]
    bots: list[BotRow]
    failing_work_sources: list[WorkSourceRow]
    unsettled_work: list[WorkItemRow]


def status_document(
    view: FleetView,
    daemon: DaemonRow | None,
    failed: Sequence[FailedHook],
    failing: Sequence[TargetState],
    bots: Sequence[BotView],
    sources: Sequence[SourceState],
    unsettled: Sequence[WorkItem],
) -> StatusDocument:
    """Return the status of the fleet as plain data."""
    return {
        "daemon": daemon,
        **fleet_document(view),
        "failed_hooks": [failed_hook_row(one) for one in failed],
        "failing_notify_targets": [failing_row(one) for one in failing],
        "bots": [bot_row(one) for one in bots],
        "failing_work_sources": [work_source_row(one) for one in sources],
        "unsettled_work": [work_item_row(one) for one in unsettled],
    }
