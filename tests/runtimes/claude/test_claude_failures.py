"""The real `claude` when things go wrong: every failure has its name, and nothing is left running."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.errors import FencedError
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import Complete, Init, Warned
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Answer, Call, Cut, Garble, Refuse, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.heard import error_of
from runtimes.stage import until

SLOW = 'python3 -c \'import time; open("began", "w").close(); time.sleep(600)\''


def warnings_of(events: list[Event]) -> list[str]:
    found = [payload_of(event) for event in events if isinstance(event, SystemEvent)]
    return [payload.code for payload in found if isinstance(payload, Warned)]


async def until_there(path: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110 another process makes it
            await anyio.sleep(0.02)


@pytest.mark.either_runtime
@pytest.mark.parametrize(
    ("answer", "code", "is_recoverable"),
    [
        (Refuse(status=401), "auth_failed", False),
        (Refuse(status=403), "auth_failed", False),
        (Refuse(status=429, retry_after_s=60), "rate_limited", True),
        (Refuse(status=500), "server_error", True),
        (Refuse(status=529), "overloaded", True),
        (Refuse(status=400, message="prompt is too long: 9 > 8 maximum"), "prompt_too_long", False),
        (Refuse(status=400, message="Your credit balance is too low"), "billing", False),
        (Say(text="no", stop_reason="refusal"), "refused", False),
        (Say(text="hello", drop=Cut.HEADERS), "network", True),
        (Say(text="hello", drop=Cut.MIDDLE), "network", True),
        (Garble(), "malformed_answer", True),
    ],
)
def test_failure_of_the_api_is_an_error_with_a_name(
    stage: ClaudeStage, answer: Answer, code: str, is_recoverable: bool
) -> None:
    with MessagesApi(answer) as api:
        events = stage.run(api)

    error = error_of(events)
    assert (error.code, error.message != "") == (code, True)
    assert (error.extra or {}).get("recoverable", False) is is_recoverable
    assert not any(
        isinstance(payload_of(event), Complete)
        for event in events
        if isinstance(event, SystemEvent)
    )


@pytest.mark.either_runtime
def test_passing_failure_is_a_warning_and_the_run_goes_on(stage: ClaudeStage) -> None:
    with MessagesApi(Refuse(status=529, may_retry=True), Say(text="here I am")) as api:
        events = stage.run(api, environment={"CLAUDE_CODE_MAX_RETRIES": "1"})

    assert warnings_of(events) == ["api_retry"]
    assert [event.content for event in events if isinstance(event, AssistantEvent)] == ["here I am"]


@pytest.mark.either_runtime
def test_api_that_is_not_there_is_a_network_error(stage: ClaudeStage) -> None:
    assert error_of(stage.run()).code == "network"


@pytest.mark.either_runtime
def test_missing_key_has_a_name_of_its_own(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        events = stage.run(api, environment={"ANTHROPIC_API_KEY": ""})

    assert error_of(events).code == "missing_api_key"
    assert api.asked == []


def test_option_that_claude_does_not_know_is_told_in_its_words(stage: ClaudeStage) -> None:
    error = error_of(stage.run(setting_sources=("nonsense",)))

    assert error.code == "claude_failed"
    assert "nonsense" in error.message


def test_missing_program_is_told_before_anything_runs(cli_stage: ClaudeStage) -> None:
    (event,) = cli_stage.run(environment={"PATH": str(cli_stage.root / "nowhere")})

    assert error_of([event]).code == "missing_cli"


def test_program_that_is_being_replaced_is_tried_again_later(
    cli_stage: ClaudeStage, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = elsewhere / "claude"
    program.write_bytes(Path(sys.executable).read_bytes())
    program.chmod(0o755)

    with program.open("r+b"):  # as an update does that writes in place: ETXTBSY
        error = error_of(cli_stage.run(environment={"PATH": str(elsewhere)}))

    assert (error.code, error.extra) == ("start_failed", {"recoverable": True})


def test_program_that_is_none_is_told(cli_stage: ClaudeStage, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "claude").write_bytes(b"\x7fELF and nothing more")
    (elsewhere / "claude").chmod(0o755)

    assert error_of(cli_stage.run(environment={"PATH": str(elsewhere)})).code == "missing_cli"


def test_missing_directory_is_told(stage: ClaudeStage) -> None:
    (event,) = stage.run(working_directory=str(stage.root / "gone"))

    assert error_of([event]).code == "working_directory"


def test_job_that_has_had_its_turns_does_not_start(stage: ClaudeStage) -> None:
    (event,) = stage.run(max_turns=3, job_turns=3)

    assert error_of([event]).code == "max_turns"


def test_program_that_says_nothing_useful_is_recorded_and_fails(
    cli_stage: ClaudeStage, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    program = strange / "claude"
    program.write_text("#!/bin/sh\necho 'not json'\necho '{\"type\":\"novelty\"}'\n")
    program.chmod(0o755)
    path = f"{strange}{os.pathsep}{os.environ['PATH']}"

    events = cli_stage.run(environment={"PATH": path})

    assert warnings_of(events) == ["malformed_line", "unknown_message"]
    assert error_of(events).code == "no_result"


def test_stalled_answer_is_given_up(stage: ClaudeStage) -> None:
    runtime = stage.make_runtime(idle_limit=timedelta(seconds=4))
    with MessagesApi(Say(text="hello", hold=threading.Event())) as api:
        events = stage.run(api, runtime=runtime)

    assert error_of(events).code == "stalled"
    assert stage.processes() == {}


@pytest.mark.either_runtime
def test_what_runs_on_in_the_background_does_not_hold_the_job_for_ever(stage: ClaudeStage) -> None:
    def run(seconds: int) -> list[Event]:
        runtime = stage.make_runtime(idle_limit=timedelta(seconds=seconds))
        call = Call("Bash", {"command": SLOW, "run_in_background": True})
        with MessagesApi(Say(calls=(call,)), Say(text="it runs")) as api:
            return stage.run(api, runtime=runtime, permission_mode="bypassPermissions")

    events = run(4)
    if isinstance(events[-1], ErrorEvent) and events[-1].code == "stalled":
        # On a slow machine Claude may be silent for as long before it says anything at all.
        events = run(PATIENCE_S // 2)

    assert "background_stopped" in warnings_of(events)
    last = events[-1]
    assert isinstance(last, SystemEvent)
    assert isinstance(payload_of(last), Complete)
    assert stage.processes() == {}


def test_claude_that_is_killed_is_an_error_with_its_record(stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "ls"})
    gate = threading.Event()

    with MessagesApi(Say(text="first", calls=(call,)), Say(text="second", hold=gate)) as api:
        killer = threading.Thread(target=kill_at_second_request, args=(stage, api))
        killer.start()
        events = stage.run(api)
        killer.join()

    error = error_of(events)
    assert (error.code, "SIGKILL" in error.message) == ("killed", True)
    assert [event.tool_name for event in events if isinstance(event, ToolUseEvent)] == ["Bash"]
    assert stage.processes() == {}


def kill_at_second_request(stage: ClaudeStage, api: MessagesApi) -> None:
    if api.wait_until_asked(2, PATIENCE_S):
        for pid in stage.processes():
            with suppress(ProcessLookupError):  # its keeper may have been faster
                os.kill(pid, signal.SIGKILL)


@pytest.mark.either_runtime
@pytest.mark.parametrize("lease_s", [-1.0, 4.0])
def test_run_of_a_worker_without_a_lease_is_left_to_another(
    stage: ClaudeStage, lease_s: float
) -> None:
    keepers = Keepers(margin_s=0.5)
    keepers.send_heartbeat(time.monotonic() + lease_s)
    runtime = stage.make_runtime(keepers=keepers)

    with (
        MessagesApi(Say(text="hello", hold=threading.Event())) as api,
        pytest.raises(FencedError),
    ):
        stage.run(api, runtime=runtime)

    assert stage.processes() == {}


def test_cancelling_while_the_model_speaks_leaves_nothing(stage: ClaudeStage) -> None:
    gate = threading.Event()
    seen: list[Event] = []

    async def run_and_cancel(api: MessagesApi) -> None:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.follow, stage.request(api), seen.append)
                assert await anyio.to_thread.run_sync(api.wait_until_asked, 1)
                await until(lambda: bool(seen))
                tasks.cancel_scope.cancel()

    with MessagesApi(Say(text="hello", hold=gate)) as api:
        anyio.run(run_and_cancel, api)

        assert stage.processes() == {}
    assert isinstance(seen[0], SystemEvent)
    assert isinstance(payload_of(seen[0]), Init)


def test_cancelling_while_a_tool_runs_leaves_nothing(stage: ClaudeStage) -> None:
    seen: list[Event] = []

    async def run_and_cancel(api: MessagesApi) -> None:
        request = stage.request(api, permission_mode="bypassPermissions")
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.follow, request, seen.append)
                await until_there(stage.work / "began")
                tasks.cancel_scope.cancel()

    with MessagesApi(Say(calls=(Call("Bash", {"command": SLOW}),))) as api:
        anyio.run(run_and_cancel, api)

        assert stage.processes() == {}
    assert any(isinstance(event, ToolUseEvent) for event in seen)


@pytest.mark.either_runtime
def test_arguments_hold_nothing_that_is_nobody_elses_business(stage: ClaudeStage) -> None:
    gate = threading.Event()
    lines: list[bytes] = []

    def look(api: MessagesApi) -> None:
        if api.wait_until_asked(1, PATIENCE_S):
            for pid in stage.processes():
                with suppress(OSError):  # what it starts for a moment only may be gone by now
                    lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        gate.set()

    with MessagesApi(Say(text="hello", hold=gate)) as api:
        watcher = threading.Thread(target=look, args=(api,))
        watcher.start()
        stage.run(api, "the hidden prompt", system_prompt="the hidden rules")
        watcher.join()

    assert any(b"--system-prompt-file=" in line for line in lines)
    assert not any(b"hidden" in line or b"dummy-key" in line for line in lines)
    assert [path for path in (stage.root / "tmp").iterdir() if "nightherd" in path.name] == []
