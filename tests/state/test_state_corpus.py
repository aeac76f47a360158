"""State that earlier versions wrote is read, continued and replayed by this one."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.engine.inbox.missing import add_missing_items
from nightherd.host.process import is_at_work
from nightherd.model.change import Applied
from nightherd.model.chat.conversation import ConversationQuery
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.inbox.item import InboxQuery, ItemId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, TriggerType
from nightherd.model.notifications.notification import NotificationId, NotificationQuery
from nightherd.model.sessions.session import SessionKey, SessionMode, SessionQuery
from nightherd.model.workflows.rows import RunQuery
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workspaces.workspace import WorkspaceQuery
from nightherd.state.agreement import differences
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.chat_values import BOT, conversation
from nightherd.testing.determinism import FakeClock
from nightherd.testing.state_values import job_id, submit
from nightherd.views.jobs.events import read_events
from nightherd.views.jobs.jobs import job_row, observe_jobs
from nightherd.wiring.repair import rebuild_database
from nightherd.wiring.stores import open_journals, open_repair

CORPUS = Path(__file__).parent.parent / "corpus" / "state"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(params=sorted(path.name for path in CORPUS.iterdir()))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A state directory as that version left it; the corpus itself is never opened."""
    root = tmp_path / ".nightherd"
    shutil.copytree(CORPUS / request.param, root)
    init_state_directory(root)
    return root


def shown(root: Path) -> list[dict[str, Any]]:
    """What lists show, as far as the corpus remembers it."""
    remembered = remembered_in(root)
    reader = SqliteReader(root)
    try:
        rows = reader.list_jobs(JobQuery(limit=100))
        jobs = [job_row(job) for job in observe_jobs(reader, rows, is_at_work, NOW)]
    finally:
        reader.close()
    return [{key: value for key, value in job.items() if key in remembered[0]} for job in jobs]


def remembered_in(root: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((root / "jobs.json").read_text("utf-8"))
    return rows


def test_lists_show_what_they_showed_then(written: Path) -> None:
    assert shown(written) == remembered_in(written)


def test_journals_are_read_to_their_end(written: Path) -> None:
    journals = open_journals(written)

    for job in remembered_in(written):
        events = list(read_events(journals, job["id"]))
        ran = job["status"] != "cancelled" or job["turns"] > 0
        assert bool(events) == ran
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


def test_new_changes_follow_the_old_ones(written: Path) -> None:
    async def add() -> None:
        store = SqliteStore(written, FakeClock())
        (answer,) = await store.apply([submit(1)])
        await store.close()
        assert isinstance(answer, Applied)

    anyio.run(add)

    # The new job is older than those of the corpus, by its clock: lists are in the order of creation.
    *known, added = [job["id"] for job in shown(written)]
    assert (known, added) == ([job["id"] for job in remembered_in(written)], job_id(1))
    assert differences(written, at=NOW) == []


def test_database_is_made_again_from_the_old_ledger(written: Path) -> None:
    (written / "nightherd.db").unlink()

    rebuild_database(written, lambda change: None)

    assert shown(written) == remembered_in(written)


WAITING = Job(
    id=JobId("job-1"),
    agent="grazer",
    trigger_type=TriggerType.MANUAL,
    status=JobStatus.PENDING,
    created_at=NOW,
    session_id=SessionId("sess-1"),
)


def test_every_question_is_answered_before_anybody_has_written(written: Path) -> None:
    before = (written / "nightherd.db").read_bytes()
    reader = SqliteReader(written)
    job, worker, session = JobId("job-1"), WorkerId("worker-1"), SessionId("sess-1")
    item = ItemId("ask-000000000000")
    here = conversation().id
    notification = NotificationId("ntf-000000000000")
    run = RunId("run-2026-03-01-000001")
    questions: dict[str, tuple[Any, ...]] = {
        "find_session": (session,),
        "list_executions": (job,),
        "list_checkpoints": (job,),
        "removed_checkpoints": (job,),
        "jobs_of_parent": (job,),
        "spent": (f"{NOW:%Y-%m-%d}", "grazer", "daily"),
        "spent_by_agent": (f"{NOW:%Y-%m-%d}",),
        "used_below": (job,),
        "jobs_with_checkpoints": (),
        "list_sessions": (SessionQuery(),),
        "session_ids": ("sess", 5),
        "sessions_of_parent": (session,),
        "sessions_to_expire": (NOW, 5),
        "persistent_session": ("grazer",),
        "session_job_ids": (session,),
        "jobs_of_session": (session,),
        "jobs_to_wake": (NOW, 5),
        "sessions_of_runtime": ("abc",),
        "find_agent": ("grazer",),
        "list_agents": (),
        "list_schedules": (),
        "list_overrides": (),
        "list_login_limits": (NOW,),
        "list_slots": ("grazer/daily", 5),
        "find_browser_session": ("0" * 64,),
        "browser_sessions_of": ("ada",),
        "find_visit": ("ada",),
        "count_ended_jobs": (NOW,),
        "ended_jobs": (JobStatus.FAILED, NOW, 5),
        "count_ended_runs": (NOW,),
        "ended_runs": (RunStatus.FAILED, NOW, 5),
        "slots_between": ("grazer/daily", NOW, NOW, 5),
        "list_deliveries": ("hook", 5),
        "has_waiting_job": (("grazer",),),
        "count_open_jobs": (),
        "jobs_to_cancel": (worker,),
        "live_workers": (),
        "find_worker": (worker,),
        "jobs_below": (job,),
        "find_item": (item,),
        "find_item_texts": (item,),
        "list_items": (InboxQuery(),),
        "item_ids": ("ask", 5),
        "items_of_job": (job,),
        "list_answers": (item,),
        "items_to_expire": (NOW, 5),
        "count_pending_items": (),
        "find_token": ("hash",),
        "list_tokens": (),
        "find_link": ("hash",),
        "jobs_without_item": (5,),
        "find_notification": (notification,),
        "find_notification_texts": (notification,),
        "list_notifications": (NotificationQuery(),),
        "list_notify_targets": (),
        "due_notify_targets": (NOW,),
        "count_open_notifications": (NOW,),
        "notified_change": (),
        "find_push_subscription": ("psh-a",),
        "active_push_subscriptions": (),
        "oldest_pending_item": (),
        "list_chat_bots": (),
        "find_conversation": (here,),
        "list_conversations": (ConversationQuery(),),
        "active_conversations": (BOT, NOW, 5),
        "answering_conversations": (BOT,),
        "waiting_conversations": (BOT,),
        "unsent_conversations": (BOT,),
        "active_messaging_sessions": (here,),
        "quiet_messaging_sessions": ("grazer", NOW, 5),
        "find_chat_message": ("slack/grazer:C1:1",),
        "find_chat_message_texts": ("slack/grazer:C1:1",),
        "waiting_chat_messages": (here, 5),
        "list_chat_messages": (here, 5),
        "chat_messages_of_job": (job,),
        "count_chat_messages": (BOT, "U1", NOW),
        "old_chat_messages": (NOW, 5),
        "find_chat_turn": (job,),
        "list_chat_turns": (here, 5),
        "find_post": ("post-1",),
        "find_post_texts": ("post-1",),
        "first_open_post": (here,),
        "list_posts": (here, 5),
        "posts_of_job": (job,),
        "posts_of_item": (item,),
        "post_of_message": (here, "100.1"),
        "failed_posts": (BOT, 5),
        "old_posts": (NOW, 5),
        "find_work_item": ("github:a/b#1",),
        "open_work_items": (),
        "list_work_items": (5,),
        "work_item_of_job": (job,),
        "list_work_sources": (),
        "find_workspace": ("sess-aaaaaaaa",),
        "list_workspaces": (WorkspaceQuery(),),
        "workspace_ids": ("sess", 5),
        "jobs_of_workspace": ("sess-aaaaaaaa", 5),
        "open_jobs_in_workspace": ("sess-aaaaaaaa",),
        "find_run": (run,),
        "list_runs": (RunQuery(),),
        "run_ids": ("run", 5),
        "runs_of_parent": (run,),
        "find_pinned": ("hash",),
        "find_run_context": (run,),
        "find_run_scratch": (run,),
        "find_node": (f"{run}/build",),
        "find_node_texts": (f"{run}/build",),
        "nodes_of_run": (run,),
        "jobs_of_run": (run,),
        "items_of_run": (run,),
        "events_of_run": (run,),
        "runs_to_advance": (NOW, 5),
        "list_workflow_overrides": (),
        "count_open_runs": (),
        "used_in_run": (run,),
        "find_job": (job,),
        "find_texts": (job,),
        "list_jobs": (JobQuery(limit=5),),
        "job_ids": ("job", 5),
        "spans_of_job": (job,),
        "jobs_ahead": (WAITING, 5),
        "current_session": (SessionKey(agent="grazer", mode=SessionMode.PERSISTENT),),
    }
    try:
        assert {name for name in dir(reader) if not name.startswith("_")} == {*questions, "close"}
        for name, values in questions.items():
            getattr(reader, name)(*values)
    finally:
        reader.close()
    assert (written / "nightherd.db").read_bytes() == before


def test_old_failed_jobs_come_into_the_inbox_once(written: Path) -> None:
    failed = {job["id"] for job in remembered_in(written) if job["status"] == "failed"}

    async def start() -> int:
        async with open_repair(written) as stores:
            return await add_missing_items(stores)

    assert anyio.run(start) == len(failed)
    assert anyio.run(start) == 0

    reader = SqliteReader(written)
    try:
        items = reader.list_items(InboxQuery())
    finally:
        reader.close()
    assert {item.job_id for item in items} == failed
    assert differences(written, at=NOW) == []


def test_reader_of_an_older_database_sees_what_is_written_meanwhile(written: Path) -> None:
    async def add() -> None:
        store = SqliteStore(written, FakeClock())
        await store.apply([submit(1)])
        await store.close()

    reader = SqliteReader(written)
    try:
        count = len(reader.list_jobs(JobQuery(limit=100)))
        anyio.run(add)
        assert len(reader.list_jobs(JobQuery(limit=100))) == count + 1
    finally:
        reader.close()


def test_what_was_used_is_told_before_anybody_has_written(written: Path) -> None:
    reader = SqliteReader(written)
    try:
        for job in remembered_in(written):
            assert reader.used_below(job["id"]).spawns == 0
            day = f"{NOW:%Y-%m-%d}"
            assert reader.spent(day, job["agent"], None).spend == 0
            assert reader.spent(None, None, None).spend >= 0
    finally:
        reader.close()
