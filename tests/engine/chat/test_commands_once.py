"""Commands that are written as messages: each takes effect once, also when its process is killed, and no limit is passed by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.chat.chat_bench import ChatBench, chat_bench
from nightherd.engine.chat.intake import Intake
from nightherd.model.chat.changes import FinishTurn
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.message import MessageStatus, TurnStatus
from nightherd.model.jobs.job import JobStatus

PLACES = ("chat.before_record", "chat.after_record")


class KilledError(Exception):
    """Nothing happens after this."""


def killed_at(place: str, when: Callable[[], bool]) -> Callable[[str], None]:
    """End there, once it is time."""

    def probe(name: str) -> None:
        if name == place and when():
            raise KilledError(name)

    return probe


def written(bench: ChatBench, text: str) -> IncomingMessage:
    """What a person writes in C1."""
    bench.platform.say(text)
    event = bench.platform.events[-1]
    assert isinstance(event, IncomingMessage)
    return event


async def end_turn(bench: ChatBench, job: str) -> None:
    """The turn is over, and the conversation free."""
    turn = next(one for one in bench.reader.list_chat_turns(bench.here, 10) if one.job_id == job)
    status, at = TurnStatus.CANCELLED, bench.clock.now()
    await bench.apply(FinishTurn(job_id=turn.job_id, status=status, at=at))


@pytest.mark.parametrize("place", PLACES)
async def test_a_stop_that_is_delivered_again_after_a_kill_stops_no_other_turn(
    tmp_path: Path, place: str
) -> None:
    is_armed = False
    async with chat_bench(tmp_path, probe=killed_at(place, lambda: is_armed)) as bench:
        await Intake(bench.context).take(written(bench, "fix it"))
        first = await bench.start_turn(1)
        await Intake(bench.context).take(written(bench, "then this"))
        stop, is_armed = written(bench, "!stop"), True
        with pytest.raises(KilledError):
            await Intake(bench.context).take(stop)
    async with chat_bench(tmp_path, platform=bench.platform) as after:
        stopped = after.reader.find_job(first)
        assert stopped is not None
        if stopped.status is JobStatus.CANCELLED:
            await end_turn(after, first)
            running = await after.start_turn(2)
            await Intake(after.context).take(stop)
            found = after.reader.find_job(running)
            assert found is not None
            assert found.status is JobStatus.PENDING
        else:
            await Intake(after.context).take(stop)
            stopped = after.reader.find_job(first)
            assert stopped is not None
            assert stopped.status is JobStatus.CANCELLED
        posts = after.reader.list_posts(after.here, 10)
        texts = [after.reader.find_post_texts(one.id) for one in posts]
        assert [one.text for one in texts if one and f"Stopping `{first}`" in one.text] != []
        assert len(posts) == 1


@pytest.mark.parametrize("place", PLACES)
async def test_a_reset_that_is_delivered_again_after_a_kill_drops_nothing_that_came_later(
    tmp_path: Path, place: str
) -> None:
    is_armed = False
    async with chat_bench(tmp_path, probe=killed_at(place, lambda: is_armed)) as bench:
        await Intake(bench.context).take(written(bench, "old"))
        reset, is_armed = written(bench, "!reset"), True
        with pytest.raises(KilledError):
            await Intake(bench.context).take(reset)
    async with chat_bench(tmp_path, platform=bench.platform) as after:
        was_reset = after.messages()[0].status is MessageStatus.DROPPED
        if was_reset:
            await Intake(after.context).take(written(after, "new"))
        await Intake(after.context).take(reset)
        assert after.messages()[0].status is MessageStatus.DROPPED
        waiting = after.reader.waiting_chat_messages(after.here, 10)
        assert len(waiting) == int(was_reset)


async def test_a_stop_of_a_turn_that_has_just_ended_says_so(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await Intake(bench.context).take(written(bench, "fix it"))
        await bench.start_turn(1)
        await Intake(bench.context).take(written(bench, "!stop"))
        await Intake(bench.context).take(written(bench, "!stop"))
        posts = reversed(bench.reader.list_posts(bench.here, 10))
        texts = [bench.reader.find_post_texts(one.id) for one in posts]
        assert [one.text for one in texts if one is not None] == [
            f"Stopping `{bench.messages()[0].job_id}`.",
            "It has ended already.",
        ]
