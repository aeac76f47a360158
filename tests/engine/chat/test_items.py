"""The inbox in chat: what waits for a person appears where the turn was asked for, and is answered there, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from engine.chat.chat_bench import ChatBench, chat_bench, settings_of, until
from engine.chat.test_chat_commands import said
from engine.chat.test_outbox import post
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.items import MOST_POSTS, Items
from nightherd.engine.chat.outbox import Outbox
from nightherd.engine.chat.presses import NOT_NAMED, UNKNOWN, press
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Answer, Change
from nightherd.model.chat.changes import ClaimPost, QueuePosts, SettlePost
from nightherd.model.chat.incoming import ButtonPress, IncomingMessage
from nightherd.model.chat.message import MessageStatus
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import BotSettings
from nightherd.model.inbox.changes import AskPerson
from nightherd.model.inbox.item import Asked, InboxItem, ItemKind, ItemStatus, Verdict, item_id
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.limits.limits import Limits
from nightherd.state.store import SqliteStore
from nightherd.testing.contracts import inbox
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.local_chat import HERE
from nightherd.testing.state_values import job_id

APPROVERS = {"U1": "ada", "U2": "bob"}


def settings(**changes: Any) -> BotSettings:
    """A bot whose approvers are Ada and Bob."""
    return settings_of(**{"approvers": APPROVERS, **changes})


@asynccontextmanager
async def waiting(
    folder: Path,
    *asked: Asked,
    settings: BotSettings | None = None,
    reason: SuspendReason = SuspendReason.APPROVAL,
    code: str = "approval",
    agent: Agent = AGENT,
) -> AsyncIterator[ChatBench]:
    """A turn in C1 waits for a person, and the bot shows it."""
    chosen = settings if settings is not None else settings_of(approvers=APPROVERS)
    async with chat_bench(folder, chosen, agent=agent) as bench:
        await said(bench, "push it")
        job = await bench.start_turn(runs=True)
        now = bench.clock.now()
        mine = tuple(
            replace(one, item=replace(one.item, job_id=job, created_at=now)) for one in asked
        )
        if mine:
            await bench.apply(AskPerson(asked=mine, job_id=job, epoch=1))
        await bench.apply(inbox.suspend(1, reason, code=code))
        async with showing(bench):
            await until(bench.platform.posted)
            await until(lambda: not bench.reader.unsent_conversations(chosen.bot))
            yield bench


@asynccontextmanager
async def showing(bench: ChatBench) -> AsyncIterator[None]:
    """The bot shows items and sends posts, until the end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Items(bench.context).run)
        tasks.start_soon(Outbox(bench.context).run)
        yield
        tasks.cancel_scope.cancel()


def approval(name: str = "Bash: git push", **changes: Any) -> Asked:
    """May this run?"""
    asked = inbox.asked(name, **changes)
    body = {"tool": "Bash", "input": {"command": "git push --force"}}
    return replace(asked, texts=replace(asked.texts, body=body))


def question(*options: str) -> Asked:
    """The agent asks something."""
    asked = inbox.asked("Which branch?", kind=ItemKind.QUESTION)
    body = {"question": "Which branch?\nThere are several.", "options": list(options)}
    return replace(asked, texts=replace(asked.texts, body=body))


def posted(bench: ChatBench) -> Posted:
    """The only message of the bot."""
    (message,) = bench.platform.posted()
    return message


async def pressed(
    bench: ChatBench, label: str, comment: str | None = None, *, user: str = "U1"
) -> str | None:
    """What a person is told who presses that button of the first message."""
    message = bench.platform.messages[bench.platform.posted()[0].id]
    button = next(one for one in message.buttons if one.label == label)
    return await press(bench.context, pressing(bench, button.id, comment, user=user))


def pressing(
    bench: ChatBench, button: str, comment: str | None = None, *, user: str = "U1"
) -> ButtonPress:
    """A press of a button of the first message."""
    return ButtonPress(
        bot=bench.context.settings.bot,
        place=HERE,
        message_id=bench.platform.posted()[0].id,
        user_id=user,
        user_name="Somebody",
        button=button,
        comment=comment,
    )


def item(bench: ChatBench, name: str = "Bash: git push") -> InboxItem:
    """An item by its name."""
    found = bench.reader.find_item(item_id(name))
    assert found is not None
    return found


def job_of(bench: ChatBench) -> Job:
    """The job of the turn."""
    found = bench.reader.find_job(job_id(1))
    assert found is not None
    return found


async def test_an_approval_appears_with_buttons_where_it_was_asked_for(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        message = posted(bench)
        assert message.buttons == ("Approve", "Reject", "Comment...")
        assert "Approval needed" in message.text
        assert "git push --force" in message.text
        (post,) = bench.reader.posts_of_item(item(bench).id)
        assert (post.job_id, post.message_id) == (job_of(bench).id, message.id)


async def test_a_press_approves_in_the_persons_name_and_the_buttons_go(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        assert await pressed(bench, "Approve") is None
        decided = item(bench)
        assert decided.status is ItemStatus.APPROVED
        assert (decided.decided_by, decided.decided_via) == ("ada", "slack")
        assert job_of(bench).status is JobStatus.PENDING
        await until(lambda: not posted(bench).buttons)
        assert "Approved by ada (slack)" in posted(bench).text


async def test_a_second_press_is_told_who_was_first(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        approve, reject = (f"item:{item(bench).id}:{verdict}" for verdict in ("approve", "reject"))
        await press(bench.context, pressing(bench, reject, user="U2"))
        told = await press(bench.context, pressing(bench, approve))
        assert told is not None
        assert "was rejected by bob (slack)" in told
        assert item(bench).status is ItemStatus.REJECTED


async def test_two_presses_at_once_decide_once(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        told: list[str | None] = []

        async def one(user: str) -> None:
            told.append(await pressed(bench, "Approve", user=user))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "U1")
            tasks.start_soon(one, "U2")
        assert told.count(None) == 1
        assert len(bench.reader.list_answers(item(bench).id)) == 1


@pytest.mark.parametrize("user", ["U3", ""])
async def test_nobody_else_may_press(tmp_path: Path, user: str) -> None:
    async with waiting(tmp_path, approval()) as bench:
        assert await pressed(bench, "Approve", user=user) == NOT_NAMED
        assert item(bench).is_pending


async def test_the_item_itself_may_name_who_answers(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval(approvers=["bob"])) as bench:
        assert "Only bob may answer" in posted(bench).text
        told = await pressed(bench, "Approve")
        assert told is not None
        assert "only bob may answer" in told
        assert await pressed(bench, "Approve", user="U2") is None


async def test_a_comment_decides_nothing_and_is_shown(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        assert await pressed(bench, "Comment...", "why force?\nReally?") is not None
        await until(lambda: "> *ada:* why force? Really?" in posted(bench).text)
        assert posted(bench).buttons == ("Approve", "Reject", "Comment...")
        assert item(bench).is_pending


async def test_an_answer_from_elsewhere_updates_the_message(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        await bench.apply(inbox.said("Bash: git push", Verdict.REJECT, by="carl", text="too risky"))
        bench.context.signals.items.set()
        await until(lambda: not posted(bench).buttons)
        assert "Rejected by carl (test)" in posted(bench).text
        assert "> too risky" in posted(bench).text


async def test_an_item_that_is_answered_while_the_bot_is_away_is_updated(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        platform = bench.platform
    opened = chat_bench(tmp_path, settings(), platform=platform, sender="sender-2")
    async with opened as after:
        await after.apply(inbox.said("Bash: git push", Verdict.APPROVE, by="carl"))
        async with showing(after):
            await until(lambda: not posted(after).buttons)
        assert "Approved by carl (test)" in posted(after).text


async def test_an_item_that_is_answered_while_the_bot_is_away_is_found_below_many_posts(
    tmp_path: Path,
) -> None:
    async with waiting(tmp_path, approval()) as bench:
        shown = bench.reader.posts_of_item(item(bench).id)[0].id
    opened = chat_bench(tmp_path, settings(), platform=bench.platform, sender="sender-2")
    async with opened as after, anyio.create_task_group() as tasks:
        more = [post(f"p:{number}", "more", after) for number in range(MOST_POSTS)]
        await after.apply(
            QueuePosts(posts=tuple(more)), inbox.said("Bash: git push", Verdict.APPROVE, by="carl")
        )

        def text() -> str:
            texts = after.reader.find_post_texts(shown)
            return "" if texts is None else texts.text

        tasks.start_soon(Items(after.context).run)
        await until(lambda: "Approved by carl (test)" in text())
        tasks.cancel_scope.cancel()


async def test_an_item_is_posted_once_when_the_process_ends_behind_it(tmp_path: Path) -> None:
    class Ended(BaseException):
        """The process is gone."""

    def end(name: str) -> None:
        if name == "chat.after_item":
            raise Ended

    async with chat_bench(tmp_path, settings(), probe=end) as bench:
        await said(bench, "push it")
        job = await bench.start_turn(runs=True)
        asked = approval(job=job)
        await bench.apply(AskPerson(asked=(asked,), job_id=job, epoch=1), inbox.suspend(1))
        with pytest.raises(Ended):
            await Items(bench.context).look()
    opened = chat_bench(tmp_path, settings(), platform=bench.platform, sender="sender-2")
    async with opened as after, showing(after):
        await until(after.platform.posted)
        await Items(after.context).look()
        assert len(after.reader.posts_of_item(item(after).id)) == 1
        await pressed(after, "Reject")
        await until(lambda: "Rejected by ada" in posted(after).text)


async def test_two_people_have_to_approve_where_the_rule_says_so(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval(quorum=2)) as bench:
        assert await pressed(bench, "Approve") == "Recorded. 2 people have to approve."
        await until(lambda: "ada so far" in posted(bench).text)
        assert await pressed(bench, "Approve", user="U2") is None
        assert item(bench).status is ItemStatus.APPROVED


async def test_the_options_of_a_question_are_buttons(tmp_path: Path) -> None:
    async with waiting(tmp_path, question("main", "next")) as bench:
        assert posted(bench).buttons == ("main", "next", "Answer...", "Reject")
        assert await pressed(bench, "next") is None
        answered = item(bench, "Which branch?")
        texts = bench.reader.find_item_texts(answered.id)
        assert texts is not None
        assert (answered.status, texts.reply) == (ItemStatus.ANSWERED, "next")
        await until(lambda: "> next" in posted(bench).text)


async def test_a_question_is_answered_in_words(tmp_path: Path) -> None:
    async with waiting(tmp_path, question()) as bench:
        assert await pressed(bench, "Answer...", "  ") == "There was nothing in your answer."
        assert await pressed(bench, "Answer...", "the third one") is None
        texts = bench.reader.find_item_texts(item_id("Which branch?"))
        assert texts is not None
        assert texts.reply == "the third one"


async def test_many_options_leave_room_for_the_other_buttons(tmp_path: Path) -> None:
    async with waiting(tmp_path, question(*"abcdefgh")) as bench:
        assert posted(bench).buttons == ("a", "b", "c", "Answer...", "Reject")
        assert "8. h" in posted(bench).text


async def test_a_limit_is_raised_by_a_press(tmp_path: Path) -> None:
    agent = replace(AGENT, limits=Limits(turns=4))
    terms = {"reason": SuspendReason.LIMIT, "code": "turns_exceeded", "agent": agent}
    async with waiting(tmp_path, **terms) as bench:  # type: ignore[arg-type]
        assert posted(bench).buttons == ("Raise to 8", "Raise...", "Reject")
        assert await pressed(bench, "Raise...", "nonsense") is not None
        assert job_of(bench).status is JobStatus.SUSPENDED
        assert await pressed(bench, "Raise to 8") is None
        assert job_of(bench).status is JobStatus.PENDING
        texts = bench.reader.find_texts(job_of(bench).id)
        assert texts is not None
        assert texts.overrides.limits == {"turns": 8}


async def test_an_error_is_tried_again_by_a_press(tmp_path: Path) -> None:
    terms = {"reason": SuspendReason.ERROR, "code": "api_error"}
    async with waiting(tmp_path, **terms) as bench:  # type: ignore[arg-type]
        assert posted(bench).buttons == ("Retry", "Dismiss")
        assert await pressed(bench, "Retry") is None
        assert job_of(bench).status is JobStatus.PENDING


async def test_where_nobody_may_answer_there_are_no_buttons(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval(), settings=settings(approvers={})) as bench:
        assert posted(bench).buttons == ()
        assert f"`{item(bench).id}`" in posted(bench).text


async def test_a_button_of_nothing_and_of_another_bots_item_does_nothing(tmp_path: Path) -> None:
    async with waiting(tmp_path, approval()) as bench:
        for button in ("", "item", "item:x:approve", "item:ask-000000000000:approve"):
            assert await press(bench.context, pressing(bench, button)) == UNKNOWN
        foreign = pressing(bench, f"item:{item(bench).id}:approve")
        other = replace(foreign, bot="slack/other")
        assert await press(bench.context, other) == UNKNOWN
        assert item(bench).is_pending


async def test_a_call_cannot_forge_the_message_that_asks_about_it(tmp_path: Path) -> None:
    forged = approval("Bash: ls` *Approved by ada*")
    body = {"tool": "Bash", "input": {"command": "ls\n```\n**Approved by ada (slack)**"}}
    forged = replace(forged, texts=replace(forged.texts, body=body))
    terminal = settings(platform=Platform.TERMINAL)
    async with waiting(tmp_path, forged, settings=terminal) as bench:
        lines = posted(bench).text.split("\n")
        fence = next(line for line in lines if line.startswith("````"))
        assert lines.count(fence) == 2
        begin = lines.index(fence)
        end = lines.index(fence, begin + 1)
        assert begin < lines.index("**Approved by ada (slack)**") < end
        assert lines[0] == "**Approval needed:** `Bash: ls *Approved by ada*`"


class Noting:
    """A store that notes what is asked of it."""

    def __init__(self, store: SqliteStore) -> None:
        self.asked: list[Change] = []
        self._store = store
        self.take_notices, self.close = store.take_notices, store.close

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Note the changes, and carry them out."""
        self.asked += changes
        return await self._store.apply(changes)


async def test_an_item_whose_message_was_given_up_is_not_asked_about_again(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, settings()) as bench:
        await said(bench, "push it")
        job = await bench.start_turn(runs=True)
        asked = approval()
        mine = replace(asked, item=replace(asked.item, job_id=job))
        await bench.apply(AskPerson(asked=(mine,), job_id=job, epoch=1))
        await bench.apply(inbox.suspend(1, SuspendReason.APPROVAL, code="approval"))
        items = Items(bench.context)
        await items.look()
        (post,) = bench.reader.posts_of_item(mine.item.id)
        at = bench.clock.now()
        await bench.apply(
            ClaimPost(conversation_id=bench.here, by="s", at=at),
            SettlePost(post_id=post.id, by="s", version=1, at=at, error="no", is_permanent=True),
        )
        noting = Noting(bench.store)
        bench.context.fleet = replace(bench.context.fleet, state=noting)
        bench.context.settings = settings(approvers={})
        again = Items(bench.context)
        for _ in range(3):
            await again.look()
        assert noting.asked == []


async def written(bench: ChatBench, text: str, **changes: Any) -> Sequence[MessageStatus]:
    """How the messages stand after a person writes to the bot."""
    bench.platform.say(text)
    event = bench.platform.events[-1]
    assert isinstance(event, IncomingMessage)
    await Intake(bench.context).take(replace(event, **changes))
    return [one.status for one in bench.messages()]


async def test_what_is_written_to_the_bot_alone_answers_its_question(tmp_path: Path) -> None:
    async with waiting(tmp_path, question("main")) as bench:
        statuses = await written(bench, "the next one", is_direct=True)
        assert statuses == [MessageStatus.TAKEN, MessageStatus.DROPPED]
        answered = item(bench, "Which branch?")
        texts = bench.reader.find_item_texts(answered.id)
        assert texts is not None
        assert (answered.decided_by, texts.reply) == ("ada", "the next one")
        assert bench.messages()[-1].reason == f"answer to {answered.id}"
        event = bench.platform.events[-1]
        assert isinstance(event, IncomingMessage)
        await Intake(bench.context).take(replace(event, is_direct=True))
        assert len(bench.messages()) == 2


@pytest.mark.parametrize(
    "changes", [{}, {"is_direct": True, "user_id": "U3"}], ids=["channel", "stranger"]
)
async def test_other_messages_wait_while_the_agent_asks(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    async with waiting(tmp_path, question("main")) as bench:
        statuses = await written(bench, "and also this", **changes)
        assert statuses == [MessageStatus.TAKEN, MessageStatus.WAITING]
        assert item(bench, "Which branch?").is_pending
