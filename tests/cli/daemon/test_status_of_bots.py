"""`status`, its document and the doctor say how each bot on a chat platform does."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.host.system import SystemClock
from nightherd.model.change import Change
from nightherd.model.chat.bot import BotStatus, ChatBot
from nightherd.model.chat.changes import ClaimPost, QueuePosts, SetBotState, SettlePost
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.post import PostId, PostKind, new_post
from nightherd.state.store import SqliteStore
from nightherd.testing.chat_values import conversation, said
from nightherd.views.chat.bots import bot_row, show_bots
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: grazer
    runtime: scripted
    script: [{say: Moo.}]
    chat:
      slack: {channels: [{id: C1}]}
  - name: quiet
    runtime: scripted
    script: [{say: Moo.}]
"""
BOT = bot_id(Platform.SLACK, "grazer")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a fleet with a bot."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".nightherd"


def record(state: Path, *changes: Change) -> None:
    async def write() -> None:
        store = SqliteStore(state, SystemClock())
        try:
            await store.apply(list(changes))
        finally:
            await store.close()

    state.mkdir(exist_ok=True)
    anyio.run(write)


def bot(status: BotStatus, at: datetime, **more: Any) -> SetBotState:
    row = ChatBot(
        id=BOT, agent="grazer", platform=Platform.SLACK, status=status, changed_at=at, **more
    )
    return SetBotState(bot=row)


def test_fleet_without_bots_shows_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET.partition("    chat:")[0])
    monkeypatch.chdir(tmp_path)

    assert "BOT" not in cli("status").out
    assert cli("status", "--json").data["bots"] == []


def test_revoked_token_is_shown_also_without_a_daemon(cli: Cli, state: Path) -> None:
    now = SystemClock().now()
    record(state, bot(BotStatus.REFUSED, now, error="token_revoked", name="Moo"))

    shown = cli("status").out

    assert "slack/grazer" in shown
    assert "refused: token_revoked" in " ".join(shown.split())
    (row,) = cli("status", "--json").data["bots"]
    assert (row["bot"], row["agent"], row["platform"]) == (BOT, "grazer", "slack")
    assert (row["status"], row["error"], row["name"]) == ("refused", "token_revoked", "Moo")
    assert row["since"] is not None


def test_connection_of_a_daemon_that_is_gone_counts_as_stopped(cli: Cli, state: Path) -> None:
    record(state, bot(BotStatus.CONNECTED, SystemClock().now(), name="Moo"))

    (row,) = cli("status", "--json").data["bots"]

    assert (row["status"], row["since"], row["error"]) == ("stopped", None, None)


def test_row_from_before_the_daemon_started_says_nothing_about_it(state: Path) -> None:
    before = SystemClock().now()
    record(state, bot(BotStatus.CONNECTED, before))
    agents = load_fleet(state.parent / "nightherd.yaml", environ={}, cwd=state.parent).fleet.agents
    reader = open_reader(state)
    started = before + timedelta(seconds=1)

    def status(running: list[str] | None) -> str:
        (view,) = show_bots(reader, agents, running, started, started)
        return bot_row(view)["status"]

    try:
        assert (status(None), status(["grazer"]), status(["quiet"])) == (
            "starting",
            "starting",
            "stopped",
        )
        (view,) = show_bots(reader, agents, None, before, started)
        assert bot_row(view)["status"] == "connected"
    finally:
        reader.close()


def test_waiting_messages_and_failed_posts_are_counted(cli: Cli, state: Path) -> None:
    now = SystemClock().now()
    post = new_post(PostId("reply:1"), conversation(), PostKind.NOTICE, "Moo.", now)
    record(
        state,
        said(1),
        said(2),
        QueuePosts(posts=(post,)),
        ClaimPost(conversation_id=conversation().id, by="us", at=now),
        SettlePost(
            post_id=PostId("reply:1"),
            by="us",
            version=1,
            at=now,
            error="channel_not_found",
            is_permanent=True,
        ),
    )

    (row,) = cli("status", "--json").data["bots"]
    shown = " ".join(cli("status").out.split())

    assert (row["waiting_messages"], row["failed_posts"], row["last_failure"]) == (
        2,
        1,
        "channel_not_found",
    )
    assert "1 post could not be sent: channel_not_found" in shown


def test_doctor_says_why_a_bot_cannot_be_started(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def findings() -> list[str]:
        checks = cli("doctor", "--json").data["checks"]
        (check,) = (one for one in checks if one["name"] == "bots")
        return [one["message"] for one in check["findings"]]

    assert findings() == [f"{BOT}: SLACK_BOT_TOKEN and SLACK_APP_TOKEN are not set"]
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-of-a-test")
    monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-of-a-test")
    assert findings() == []
    record(state, bot(BotStatus.REFUSED, SystemClock().now(), error="token_revoked"))
    assert findings() == [f"{BOT}: refused: token_revoked"]


def test_worker_says_at_its_start_that_it_runs_no_bots(cli: Cli, state: Path) -> None:
    worked = cli("worker", "--until-idle")

    assert worked.code == 0
    assert worked.err.count("a worker runs no bots; nightherd start does: slack/grazer") == 1
