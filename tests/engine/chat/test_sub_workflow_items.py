"""Sub-workflows of runs that people start in a conversation: what they ask is asked and answered there, once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import anyio

from engine.chat.bot_bench import ECHO, LiveBot, live_bot, opened, until
from engine.chat.chat_bench import chat_bench, settings_of
from engine.chat.test_chat_commands import said
from nightherd.engine.chat.context import nothing_to_rescue
from nightherd.engine.chat.run_items import PAGE
from nightherd.engine.chat.runs import ChatRuns
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Answer
from nightherd.model.chat.post import post_id
from nightherd.model.inbox.changes import AskPerson
from nightherd.model.inbox.item import InboxQuery, ItemKind, Verdict
from nightherd.model.jobs.job import TriggerType
from nightherd.model.workflows.conductor.changes import CancelRun
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.testing.contracts import inbox
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.run_values import gate, start_run, workflow

SETTINGS = settings_of(approvers={"U1": "ada"})
WORKFLOWS = """\
    questions: true
    approvals: [{tool: "Bash(touch:*)"}]
    script:
      - tool: ask_person
        input: {question: "Which server?", options: [blue, green]}
      - tool: Bash
        input: {command: touch deployed}
      - say: done
workflows:
  deploy:
    inputs:
      regions: {type: list, default: [north, south]}
    on: {chat: true}
    phases:
      - {name: regions, for_each: {items: inputs.regions}, workflow: region, inputs: {name: "${item}"}}
      - {name: done, depends_on: regions, bash: touch all-done}
  region:
    inputs: {name: {type: text, required: true}}
    phases:
      - {name: confirm, gate: {summary: "Deploy to ${inputs.name}?"}}
      - {name: inner, depends_on: confirm, when: "inputs.name == 'north'", workflow: work}
  work:
    phases:
      - {name: work, agent: coder, prompt: deploy it}
  ask:
    on: {chat: true}
    phases:
      - {name: work, agent: coder, prompt: deploy it}
"""
MANY = (
    ECHO
    + """\
workflows:
  many:
    inputs: {names: {type: list, default: [NAMES]}}
    on: {chat: true}
    phases:
      - {name: all, for_each: {items: inputs.names, max_parallel: 60}, workflow: nothing, inputs: {name: "${item}"}}
  nothing:
    inputs: {name: {type: text}}
    phases:
      - {name: skipped, when: "inputs.name == 'one'", bash: "true"}
"""
).replace("NAMES", ", ".join(f"n{number}" for number in range(60)))


def runs(live: LiveBot) -> Sequence[WorkflowRun]:
    return live.context.reader.list_runs(RunQuery(limit=100))


def asking(live: LiveBot, words: str) -> list[Posted]:
    """The messages that ask for it: they have buttons."""
    return [one for one in live.posted() if one.buttons and words in one.text]


async def asked(live: LiveBot, words: str) -> Posted:
    """The only message that asks for it, once it is there."""
    await until(lambda: asking(live, words))
    (message,) = asking(live, words)
    return message


async def answer(live: LiveBot, words: str, button: str) -> str:
    """Press a button of the message that asks for it; returns what it says once it has changed."""
    message = await asked(live, words)
    live.platform.press(message.id, button)

    def now() -> Posted:
        return next(one for one in live.posted() if one.id == message.id)

    await until(lambda: not now().buttons)
    return now().text


def test_gates_and_questions_at_every_level_are_answered_where_the_run_was_started(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened(tmp_path, WORKFLOWS, SETTINGS) as live, live.at_work():
            async with live.bot():
                live.platform.say("!run deploy")
                north, south = await asked(live, "to north?"), await asked(live, "to south?")
                assert "phase `confirm`" in north.text
                assert north.buttons == south.buttons == ("Approve", "Reject", "Comment...")
                assert "Approved by ada (slack)" in await answer(live, "to north?", "Approve")
                await asked(live, "Which server?")
            async with live.bot():
                assert "> green" in await answer(live, "Which server?", "green")
                assert "Approved by ada" in await answer(live, "touch deployed", "Approve")
                assert "Approved by ada" in await answer(live, "to south?", "Approve")
                await until(lambda: any("of *deploy* succeeded" in text for text in live.texts()))
            async with live.bot():
                live.platform.say("!ping")
                await until(lambda: "pong" in live.texts())
            assert len(runs(live)) == 4
            assert (tmp_path / "deployed").exists()
            assert (tmp_path / "all-done").exists()
            texts = live.texts()
            assert sum("succeeded" in text for text in texts) == 1
            for words in ("to north?", "to south?", "Which server?", "touch deployed"):
                assert sum(words in text for text in texts) == 1

    anyio.run(main)


def test_an_answer_from_elsewhere_while_the_bot_is_away_updates_the_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, WORKFLOWS, SETTINGS) as live, live.at_work():
            async with live.bot():
                live.platform.say("!run deploy")
                await asked(live, "to north?")
                await asked(live, "to south?")
            for item in live.context.reader.list_items(InboxQuery()):
                answer = Answer(item_id=item.id, verdict=Verdict.REJECT, by="carl", via="test")
                await perform(answer, live.context, rescue=nothing_to_rescue)
            async with live.bot():
                await until(lambda: sum("Rejected by carl" in one for one in live.texts()) == 2)
                await until(lambda: any("of *deploy* failed" in text for text in live.texts()))
            assert not any(one.buttons for one in live.posted())

    anyio.run(main)


def test_an_agent_that_is_a_phase_asks_where_its_run_was_started(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, WORKFLOWS, SETTINGS) as live, live.at_work(), live.bot():
            # Older things that wait elsewhere are no reason to overlook it.
            many = tuple(
                inbox.asked(f"q{number}", kind=ItemKind.QUESTION) for number in range(PAGE)
            )
            await live.context.state.apply([AskPerson(asked=many)])
            live.platform.say("!run ask")
            assert "Answered by ada" in await answer(live, "Which server?", "blue")
            assert "Rejected by ada" in await answer(live, "touch deployed", "Reject")
            await until(lambda: any("of *ask* succeeded" in text for text in live.texts()))
            assert not (tmp_path / "deployed").exists()
            assert not any("q1" in text for text in live.texts())

    anyio.run(main)


def test_the_end_of_a_run_with_many_sub_workflows_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, MANY, SETTINGS) as live:
            live.platform.say("!run many")
            await until(lambda: any("of *many* succeeded" in text for text in live.texts()))
            assert len(runs(live)) == 61

    anyio.run(main)


async def test_an_end_is_said_also_when_the_message_that_started_the_run_is_recorded_after_it(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        trigger = RunTrigger(type=TriggerType.SLACK, id=bench.here, actor="ada")
        started = start_run(1, workflow(gate("ask")), trigger=trigger)
        ended = CancelRun(run_id=started.run.id, at=bench.clock.now())
        await bench.apply(started, ended)
        shown = ChatRuns(bench.context)
        for _ in range(2):
            await shown.look()
            bench.clock.advance(timedelta(minutes=10))  # type: ignore[attr-defined]
        await said(bench, "!run graze")
        for _ in range(2):
            await shown.look()
        posts = bench.reader.list_posts(bench.here, 10)
        assert [one.id for one in posts].count(post_id(started.run.id, "end")) == 1
