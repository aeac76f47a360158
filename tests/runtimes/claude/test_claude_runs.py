"""The real `claude` under both runtimes: what it is asked, what it does, what of that is on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightherd.model.agents.agent import Plugin, Subagent
from nightherd.model.jobs.outcome import is_afterthought
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import (
    Complete,
    Denied,
    HookRan,
    Init,
    SystemSubtype,
    ToolProgress,
)
from nightherd.runtimes.claude.opening import BEGUN_ANEW
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Refuse, Say, Tokens
from runtimes.claude.claude_stage import JOB, ClaudeStage
from runtimes.heard import codes, error_of, payloads, session_of, tally_of


def of_kind(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_text_is_answered_counted_and_completed(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="hello there", tokens=Tokens(input=1000, output=100))) as api:
        events = stage.run(api, "say hello")

    (init,) = payloads(events, Init)
    assert (init.runtime, init.working_directory) == (stage.runtime, str(stage.work))
    assert init.runtime_session_id
    assert "Bash" in init.tools
    (answer,) = of_kind(events, AssistantEvent)
    assert (answer.content, answer.turn, answer.end) == ("hello there", 1, True)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 100)
    (complete,) = payloads(events, Complete)
    assert complete.stop_reason == "end_turn"
    assert complete.usage.cost_microusd > 0
    assert list(complete.model_usage.values()) == [complete.usage]
    assert codes(events) == []
    assert api.asked[0].texts.count("say hello") == 1
    assert stage.processes() == {}


@pytest.mark.either_runtime
@pytest.mark.parametrize(
    "prompt", ["-p --model x", "/nothing like a command", "@nofile.txt", "line\nline", "ünï ✓ \x00"]
)
def test_prompt_arrives_as_it_is(stage: ClaudeStage, prompt: str) -> None:
    with MessagesApi(Say(text="fine")) as api:
        events = stage.run(api, prompt)

    assert payloads(events, Complete)
    assert prompt in api.asked[0].texts


def test_long_prompt_arrives_whole(stage: ClaudeStage) -> None:
    prompt = "word " * 400_000
    with MessagesApi(Say(text="fine")) as api:
        events = stage.run(api, prompt)

    assert payloads(events, Complete)
    assert any(text.strip() == prompt.strip() for text in api.asked[0].texts)


@pytest.mark.either_runtime
def test_tools_really_run_and_their_results_are_true(stage: ClaudeStage) -> None:
    calls = (
        Call("Bash", {"command": "echo made > made.txt"}),
        Call("Bash", {"command": "cat nothing-here"}),
    )
    with MessagesApi(Say(text="I try", calls=calls), Say(text="done")) as api:
        events = stage.run(api, allowed_tools=("Bash",))

    assert (stage.work / "made.txt").read_text() == "made\n"
    uses = of_kind(events, ToolUseEvent)
    assert [use.input["command"] for use in uses] == [call.input["command"] for call in calls]
    success = {one.tool_use_id: one.success for one in of_kind(events, ToolResultEvent)}
    assert [success[use.tool_use_id] for use in uses] == [True, False]
    tally = tally_of(events)
    assert (tally.turns, tally.messages, tally.answer) == (2, 4, "done")
    assert tally.open_calls == frozenset()
    assert len(api.asked) == 2


@pytest.mark.either_runtime
def test_processes_carry_the_mark_of_their_execution(stage: ClaudeStage) -> None:
    command = "printenv NIGHTHERD_EXECUTION"
    with MessagesApi(Say(calls=(Call("Bash", {"command": command}),)), Say(text="done")) as api:
        events = stage.run(api, permission_mode="bypassPermissions")

    (result,) = of_kind(events, ToolResultEvent)
    assert result.result.strip() == f"{JOB}.1"


@pytest.mark.either_runtime
def test_tool_that_is_not_allowed_is_denied_on_record(stage: ClaudeStage) -> None:
    touch = Say(calls=(Call("Bash", {"command": "touch made.txt"}),))
    with MessagesApi(touch, Say(text="a pity")) as api:
        events = stage.run(api, permission_mode="default")

    (denied,) = payloads(events, Denied)
    assert denied.tool_name == "Bash"
    (result,) = of_kind(events, ToolResultEvent)
    assert result.success is False
    assert payloads(events, Complete)
    assert not (stage.work / "made.txt").exists()


@pytest.mark.either_runtime
@pytest.mark.parametrize(
    ("mode", "may_write", "may_touch"),
    [
        ("default", False, False),
        ("acceptEdits", True, True),
        ("plan", False, False),
        ("dontAsk", False, False),
        ("manual", False, False),
        ("bypassPermissions", True, True),
    ],
)
def test_permission_mode_decides_what_is_done_without_asking(
    stage: ClaudeStage, mode: str, may_write: bool, may_touch: bool
) -> None:
    written, touched = stage.work / "written.txt", stage.work / "touched.txt"
    calls = (
        Call("Write", {"file_path": str(written), "content": "x"}),
        Call("Bash", {"command": "touch touched.txt"}),
        Call("Bash", {"command": "ls"}),
    )
    with MessagesApi(Say(calls=calls), Say(text="so be it")) as api:
        events = stage.run(api, permission_mode=mode)

    assert (written.exists(), touched.exists()) == (may_write, may_touch)
    uses = [use.tool_use_id for use in of_kind(events, ToolUseEvent)]
    success = {one.tool_use_id: one.success for one in of_kind(events, ToolResultEvent)}
    assert [success[use] for use in uses] == [may_write, may_touch, True]
    assert len(payloads(events, Denied)) == [may_write, may_touch].count(False)


@pytest.mark.either_runtime
def test_denied_tool_is_not_run_even_where_all_is_allowed(stage: ClaudeStage) -> None:
    touch = Say(calls=(Call("Bash", {"command": "touch made.txt"}),))
    with MessagesApi(touch, Say(text="a pity")) as api:
        events = stage.run(api, permission_mode="bypassPermissions", denied_tools=("Bash",))

    assert [denied.tool_name for denied in payloads(events, Denied)] == ["Bash"]
    (result,) = of_kind(events, ToolResultEvent)
    assert result.success is False
    assert not (stage.work / "made.txt").exists()


@pytest.mark.either_runtime
def test_only_the_tools_that_are_named_are_offered(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        stage.run(api, tools=("Read", "Bash"))
        stage.run(api, tools=())

    offered = [{tool["name"] for tool in asked.body.get("tools", [])} for asked in api.asked]
    # What claude puts in besides is a place for tools, not one that does anything.
    assert offered[0] - {"DeferredToolPlaceholder"} == {"Read", "Bash"}
    assert offered[1] == set()


@pytest.mark.either_runtime
def test_options_reach_the_model(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        stage.run(api, model="claude-sonnet-4-5", system_prompt="You are a lighthouse.")

    body = api.asked[0].body
    assert body["model"] == "claude-sonnet-4-5"
    assert "You are a lighthouse." in json.dumps(body["system"])


@pytest.mark.either_runtime
@pytest.mark.parametrize(("sources", "is_read"), [(("project",), True), ((), False)])
def test_settings_of_the_place_are_obeyed_only_when_named(
    stage: ClaudeStage, sources: tuple[str, ...], is_read: bool
) -> None:
    (stage.work / "CLAUDE.md").write_text("The password of the inn is swordfish.\n")
    with MessagesApi(Say(text="x")) as api:
        stage.run(api, setting_sources=sources)

    assert ("swordfish" in json.dumps(api.asked[0].body)) is is_read


@pytest.mark.either_runtime
def test_endless_loop_ends_at_its_turns(stage: ClaudeStage) -> None:
    with MessagesApi(Say(calls=(Call("Bash", {"command": "ls"}),))) as api:
        events = stage.run(api, max_turns=2)

    error = error_of(events)
    assert error.code == "max_turns"
    assert len(api.asked) == 2
    tally = tally_of(events)
    assert tally.turns == 2
    assert tally.usage.cost_microusd > 0


@pytest.mark.either_runtime
def test_run_ends_when_its_money_is_spent(stage: ClaudeStage) -> None:
    ls = Say(calls=(Call("Bash", {"command": "ls"}),), tokens=Tokens(input=1000, output=1000))
    with MessagesApi(ls) as api:
        events = stage.run(api, max_budget_microusd=100)

    assert error_of(events).code == "limit"
    # Claude looks after each turn: one goes beyond, no more.
    assert len(api.asked) == 1
    assert tally_of(events).usage.cost_microusd > 100


@pytest.mark.either_runtime
def test_hook_of_the_place_decides_and_is_on_record(stage: ClaudeStage) -> None:
    no = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "house rules"}}'"""
    begun = {"hooks": [{"type": "command", "command": "echo welcome"}]}
    before = {"matcher": "Bash", "hooks": [{"type": "command", "command": no}]}
    settings = stage.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [before], "SessionStart": [begun]}}))
    touch = Say(calls=(Call("Bash", {"command": "touch made.txt"}),))
    with MessagesApi(touch, Say(text="a pity")) as api:
        events = stage.run(api, permission_mode="bypassPermissions", setting_sources=("project",))

    assert not (stage.work / "made.txt").exists()
    (result,) = of_kind(events, ToolResultEvent)
    assert (result.success, "house rules" in str(result.result)) == (False, True)
    assert [hook.event for hook in payloads(events, HookRan)] == ["SessionStart"]
    assert payloads(events, Complete)


@pytest.mark.either_runtime
def test_helper_is_called_on_with_its_own_words(stage: ClaudeStage) -> None:
    given = {
        "description": "d",
        "prompt": "look",
        "subagent_type": "critic",
        "run_in_background": False,
    }
    critic = Subagent(description="criticises", prompt="You are the critic.", tools=("Read",))
    with MessagesApi(
        Say(calls=(Call("Task", given),)), Say(text="all bad"), Say(text="so it is")
    ) as api:
        events = stage.run(api, subagents={"critic": critic})

    assert payloads(events, Complete)
    assert "You are the critic." in json.dumps(api.asked[1].body["system"])
    assert {tool["name"] for tool in api.asked[1].body["tools"]} == {"Read"}


@pytest.mark.either_runtime
def test_plugin_brings_its_commands(stage: ClaudeStage) -> None:
    plugin = stage.root / "plug"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "plug", "version": "1.0.0"}')
    (plugin / "commands").mkdir()
    (plugin / "commands" / "greet.md").write_text("Greet the moon politely.\n")
    with MessagesApi(Say(text="x")) as api:
        stage.run(api, "/plug:greet", plugins=(Plugin(path=str(plugin)),))

    assert any("Greet the moon" in text for text in api.asked[0].texts)


@pytest.mark.either_runtime
def test_fallback_answers_when_the_model_is_overloaded(stage: ClaudeStage) -> None:
    busy = Refuse(status=529, may_retry=True)
    with MessagesApi(busy, busy, busy, Say(text="I can")) as api:
        events = stage.run(
            api,
            model="claude-sonnet-4-5",
            fallback_model="claude-haiku-4-5",
            environment={"CLAUDE_CODE_MAX_RETRIES": "5"},
        )

    assert payloads(events, Complete)
    assert (api.asked[0].body["model"], api.asked[-1].body["model"]) == (
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    )


@pytest.mark.either_runtime
def test_effort_and_sandbox_are_taken(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        events = stage.run(
            api, effort="low", sandbox={"enabled": False, "autoAllowBashIfSandboxed": True}
        )

    assert payloads(events, Complete)
    assert api.asked[0].body["output_config"]["effort"] == "low"


def test_answer_of_three_megabytes_is_one_event(stage: ClaudeStage) -> None:
    text = "0123456789" * 300_000
    with MessagesApi(Say(text=text)) as api:
        events = stage.run(api)

    (answer,) = of_kind(events, AssistantEvent)
    assert answer.content == text


def test_work_in_the_background_is_waited_for_and_attributed(stage: ClaudeStage) -> None:
    given = {"description": "d", "prompt": "look", "subagent_type": "general-purpose"}
    tokens = Tokens(input=1000)
    with MessagesApi(
        Say(text="I send someone", calls=(Call("Task", given),), tokens=tokens),
        Say(text="found it", tokens=tokens),
    ) as api:
        events = stage.run(api)

    (call,) = of_kind(events, ToolUseEvent)
    answers = [one for one in of_kind(events, AssistantEvent) if not is_afterthought(one)]
    inside = [event for event in answers if event.parent_tool_use_id == call.tool_use_id]
    assert [(event.content, event.turn) for event in inside] == [("found it", None)]
    (complete,) = payloads(events, Complete)
    # Every request is paid for, the subagent's too, and none twice.
    assert complete.usage.input_tokens == 1000 * len(api.asked)
    assert tally_of(events).turns == len(api.asked) - 1
    assert {one.tool_use_id for one in payloads(events, ToolProgress)} == {call.tool_use_id}


def test_resumed_session_has_its_history(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue", tokens=Tokens(input=1000)), Say(text="it was blue")) as api:
        first = stage.run(api, "pick a colour")
        second = stage.run(api, "which one was it?", runtime_session_id=session_of(first))

    assert session_of(second) == session_of(first)
    texts = api.asked[1].texts
    assert [text for text in texts if text in {"pick a colour", "blue", "which one was it?"}] == [
        "pick a colour",
        "blue",
        "which one was it?",
    ]
    # The session's total is not this run's.
    assert tally_of(second).usage.input_tokens == 10
    assert tally_of(second).usage.cost_microusd < tally_of(first).usage.cost_microusd


@pytest.mark.either_runtime
def test_interrupted_job_goes_on_without_its_prompt(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="half of it"), Say(text="the rest")) as api:
        first = stage.run(api, "do it all")
        second = stage.run(
            api,
            "do it all",
            execution=f"{JOB}.2",
            runtime_session_id=session_of(first),
            job_turns=1,
        )

    (told,) = [
        event.content
        for event in of_kind(second, SystemEvent)
        if event.subtype is SystemSubtype.USER_INPUT
    ]
    assert "interrupted" in told
    assert api.asked[1].texts.count("do it all") == 1
    assert told in api.asked[1].texts
    assert [event.turn for event in of_kind(second, AssistantEvent)] == [2]


@pytest.mark.either_runtime
def test_job_interrupted_before_its_first_turn_is_told_what_it_was_asked(
    stage: ClaudeStage,
) -> None:
    with MessagesApi(Say(text="earlier"), Say(text="done")) as api:
        earlier = stage.run(api, "an earlier job")
        stage.run(api, "do it all", execution=f"{JOB}.2", runtime_session_id=session_of(earlier))

    assert any("interrupted" in text and "do it all" in text for text in api.asked[1].texts)


GONE = "6e964430-d2f6-475a-9e64-5130a5c62256"


@pytest.mark.either_runtime
def test_lost_session_begins_anew_when_the_job_has_done_nothing(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="fine")) as api:
        events = stage.run(api, "do it all", runtime_session_id=GONE)

    assert codes(events) == ["session_not_found"]
    assert payloads(events, Complete)
    assert session_of(events) != GONE
    assert "do it all" in api.asked[0].texts


@pytest.mark.either_runtime
def test_job_with_progress_whose_session_is_lost_is_told_that_it_had_begun(
    stage: ClaudeStage,
) -> None:
    with MessagesApi(Say(text="fine")) as api:
        events = stage.run(
            api, "do it all", execution=f"{JOB}.2", runtime_session_id=GONE, job_turns=1
        )

    assert codes(events) == ["session_not_found"]
    assert payloads(events, Complete)
    assert session_of(events) != GONE
    (told,) = [text for text in api.asked[0].texts if "do it all" in text]
    assert BEGUN_ANEW in told
