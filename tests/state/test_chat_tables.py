"""The tables of chat as other programs read them: one active session also without a thread, what was said in one list."""

from __future__ import annotations

from pathlib import Path

import anyio
import apsw
import pytest

from nightherd.db.connection import open_for_reading
from nightherd.model.change import Applied
from nightherd.model.chat.changes import FinishTurn, StartTurn
from nightherd.model.chat.message import TurnStatus
from nightherd.state.store import SqliteStore
from nightherd.testing.chat_values import conversation, post, said
from nightherd.testing.determinism import FakeClock
from nightherd.testing.state_values import BEGINNING, job_id, submit


def write(root: Path) -> Path:
    """A message and its answer."""

    async def main() -> None:
        store = SqliteStore(root, FakeClock())
        begun = StartTurn(
            conversation_id=conversation().id,
            messages=(said(1).message.id,),
            job=submit(1),
            at=BEGINNING,
        )
        end = FinishTurn(
            job_id=job_id(1),
            status=TurnStatus.ANSWERED,
            at=BEGINNING,
            posts=(post(f"{job_id(1)}:0", "Grazed."),),
        )
        answers = await store.apply([said(1), begun, end])
        await store.close()
        assert all(isinstance(one, Applied) for one in answers)

    anyio.run(main)
    return root / "nightherd.db"


def test_view_shows_messages_and_answers_in_one_list(tmp_path: Path) -> None:
    database = open_for_reading(write(tmp_path))
    assert database is not None
    try:
        rows = database.execute(
            "SELECT session_id, role, content, platform_message_id FROM messaging_messages"
            " ORDER BY timestamp, id"
        )
        ids = database.execute("SELECT COUNT(DISTINCT id) FROM messaging_messages")
    finally:
        database.close()

    assert sorted(rows) == [
        ("msg-1", "assistant", "Grazed.", None),
        ("msg-1", "user", "Graze.", "100.1"),
    ]
    assert ids == [(2,)]


def test_second_active_session_of_a_person_is_impossible_without_a_thread_too(
    tmp_path: Path,
) -> None:
    connection = apsw.Connection(str(write(tmp_path)))
    copy = (
        "INSERT INTO messaging_sessions (id, platform, channel_id, user_id, created_at,"
        " last_activity_at, agent, conversation_id, active)"
        " SELECT ?, platform, channel_id, user_id, created_at, last_activity_at, ?,"
        " conversation_id, ? FROM messaging_sessions WHERE id = 'msg-1'"
    )
    try:
        connection.execute(copy, ("msg-old", "grazer", 0))
        connection.execute(copy, ("msg-other", "other", 1))
        with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
            connection.execute(copy, ("msg-2", "grazer", 1))
    finally:
        connection.close()
