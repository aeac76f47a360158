"""The inbox for programs: items are listed, shown and answered, by name; what changed or was decided is refused."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd import InboxItem, InboxQuery, Order, open_fleet
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.tokens import add_token
from nightherd.errors import ForbiddenError, RefusedError
from nightherd.host.machine import user_name
from nightherd.model.jobs.job import JobStatus
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_store, random_text, system_clock
from waiting_fleet import WAITING_AGENTS


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "nightherd.yaml"
    file.write_text(WAITING_AGENTS)
    return file


def test_an_approved_call_runs_once_and_is_recorded_under_the_users_name(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ={}) as fleet:
            waiting = await fleet.execute(Order(agent="pusher"))
            (item,) = fleet.inbox.list().items
            answered = await fleet.inbox.approve(item, text="go on")
            with pytest.raises(RefusedError, match="was approved by"):
                await fleet.inbox.reject(item.id)
            shown = fleet.inbox.show(item.id)
            agent, state_dir = fleet.fleet.agents["pusher"], fleet.state_dir
            async with open_worker(state_dir, fleet.fleet, {}) as context:
                await run_job(waiting.job_id, agent, context, on_event=lambda event: None)
            done = fleet.job(waiting.job_id)

        assert answered.job is not None
        assert answered.job.id == waiting.job_id
        assert done.status is JobStatus.COMPLETED
        assert (config.parent / "pushed").exists()
        assert [(one.by, one.via, one.text) for one in shown.answers] == [
            (user_name(), "library", "go on")
        ]

    anyio.run(main)


def test_an_approver_answers_by_token_and_nobody_else_can(config: Path) -> None:
    async def main() -> None:
        state_dir = config.parent / ".nightherd"
        async with open_fleet(config, environ={}) as fleet:
            await fleet.execute(Order(agent="guarded"))
            clock = system_clock()
            state = open_store(state_dir, clock)
            _, alice = await add_token(
                "alice", state, by="owner", at=clock.now(), random_text=random_text()
            )
            await state.close()

            with pytest.raises(ForbiddenError, match="only alice may answer"):
                await fleet.inbox.approve("@last")
            with pytest.raises(ForbiddenError, match="not accepted"):
                await fleet.inbox.approve("@last", token="nht_guessed")
            answered = await fleet.inbox.approve("@last", token=alice)

        assert answered.item.decided_by == "alice"

    anyio.run(main)


def test_every_verdict_has_its_method(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ={}) as fleet:
            decided: list[InboxItem] = []
            for agent in ("asker", "capped", "broken", "broken", "pusher"):
                await fleet.execute(Order(agent=agent))
                item = fleet.inbox.list(InboxQuery(agent=agent)).items[0]
                match len(decided):
                    case 0:
                        answer = await fleet.inbox.reply(item, "staging")
                    case 1:
                        answer = await fleet.inbox.raise_limits(item, {"turns": "5"})
                    case 2:
                        answer = await fleet.inbox.retry(item)
                    case 3:
                        answer = await fleet.inbox.dismiss(item)
                    case _:
                        await fleet.inbox.comment(item, "I look at it")
                        answer = await fleet.inbox.reject(item, text="no")
                decided.append(answer.item)

        assert [str(item.verdict) for item in decided] == [
            "reply",
            "raise",
            "retry",
            "dismiss",
            "reject",
        ]

    anyio.run(main)
