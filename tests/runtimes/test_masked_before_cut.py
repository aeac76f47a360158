"""No place that cuts a text leaves half a secret: it is masked before it is cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from nightherd.model.agents.script import UseTool
from nightherd.model.hooks import ShellCommand
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import FullOutput, ToolResultEvent
from nightherd.model.secrets import knowing
from nightherd.ports import HookCall
from nightherd.runtimes.claude.translate import RAW_CHARACTERS, Translator
from nightherd.runtimes.hook_runner import OUTPUT_LIMIT, run_command
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.native.failure import TEXT_SHOWN, RunFailure, error_event
from nightherd.runtimes.tools.file_actions import READ_LIMIT_BYTES
from nightherd.runtimes.tools.output import OUTPUT_LIMIT_BYTES, BoundedOutput, WholeOutput
from nightherd.runtimes.tools.search_program import MAX_LINE
from nightherd.runtimes.tools.tool import ToolOutcome
from runtimes.stage import Stage

SECRET = "qwertyuiopasdfghjklzxcvbnm0123456789"
SECRETS = knowing({SECRET: "API_KEY"})
HALF = len(SECRET) // 2
PART = 6
"""A part of the secret that is as long as this is one too many."""


@pytest.fixture
def stage(stage_anywhere: Stage) -> Stage:
    """Every test runs with the tools on this machine, and as programs that stand for tools in a container."""
    return stage_anywhere


def has_part(text: str) -> bool:
    return any(SECRET[at : at + PART] in text for at in range(len(SECRET) - PART + 1))


def result_of(stage: Stage, tool: str, **input: str) -> str:
    """What is recorded of a call of a scripted agent."""
    step = UseTool(tool, input)
    events = stage.play(step, secrets=SECRETS)
    (event,) = (one for one in events if isinstance(one, ToolResultEvent))
    assert event.success
    return str(getattr(SECRETS.mask_event(event), "result", None))


@pytest.mark.parametrize("before", [OUTPUT_LIMIT_BYTES // 2, 100_000 - OUTPUT_LIMIT_BYTES // 2])
def test_output_of_a_command(stage: Stage, before: int) -> None:
    (stage.directory / "long").write_text(
        "." * (before - HALF) + SECRET + "." * (100_000 - before - HALF)
    )

    result = result_of(stage, "Bash", command="cat long")

    assert "left out" in result
    assert not has_part(result)


def test_a_long_line_that_grep_finds(stage: Stage) -> None:
    (stage.directory / "long").write_text("." * (MAX_LINE - HALF) + SECRET + "." * MAX_LINE)

    result = result_of(stage, "Grep", pattern="\\.\\.", path="long")

    assert result.startswith("long:1:....")
    assert result.endswith(" [...]\n")
    assert not has_part(result)


def test_a_long_line_that_is_read(stage: Stage) -> None:
    (stage.directory / "long").write_text("." * (READ_LIMIT_BYTES - HALF) + SECRET + "." * 99)

    result = result_of(stage, "Read", file_path="long")

    assert "is too long" in result
    assert not has_part(result)


def test_the_stored_output_is_cut_after_masking_too(stage: Stage) -> None:
    texts: list[str] = []

    async def keep(pieces: Iterator[str], left_out: int) -> FullOutput:
        texts.append("".join(pieces))
        return FullOutput(sha256="0" * 64, size=0, left_out=left_out)

    async def store() -> None:
        context = stage.context(keep_output=keep, secrets=SECRETS)
        with WholeOutput(context, kept_limit=OUTPUT_LIMIT_BYTES * 2) as output:
            output.add(b"." * (OUTPUT_LIMIT_BYTES * 2 - HALF) + SECRET.encode())
            output.add(b"." * OUTPUT_LIMIT_BYTES * 2)
            await output.stored(ToolOutcome(result=""))

    anyio.run(store)

    assert "left out" in texts[0]
    assert not has_part(texts[0])


def hook_call() -> HookCall:
    return HookCall(
        id="1",
        execution=ExecutionId("job-2025-03-04-abc123.1"),
        event="completed",
        job_id=JobId("job-2025-03-04-abc123"),
        body=b"{}",
        working_directory="/",
        environment={"PATH": "/usr/bin:/bin"},
        secrets=SECRETS,
    )


def test_output_of_a_hook(stage: Stage) -> None:
    words = f"printf '%{OUTPUT_LIMIT // 2 - HALF}s{SECRET}%{OUTPUT_LIMIT}s' . ."
    command = ShellCommand(command=words, timeout=timedelta(minutes=1))

    result = anyio.run(run_command, command, hook_call(), Keepers())

    assert result.success
    assert not has_part(result.output)


def test_standard_error_of_claude() -> None:
    output = BoundedOutput(100, SECRETS)
    output.add(b"." * (50 - HALF) + SECRET.encode() + b"." * 100)

    assert not has_part(output.text())


def test_a_message_of_claude_that_is_not_understood() -> None:
    translator = Translator(runtime="cli", first_turn=1, is_resumed=False, secrets=SECRETS)
    line = "." * (RAW_CHARACTERS - HALF) + SECRET + "." * 99

    (event,) = translator.line(line.encode())

    assert not has_part(str(event))


def test_what_a_provider_says_about_a_failure() -> None:
    error = RunFailure("x", "." * (TEXT_SHOWN - HALF) + SECRET + "." * 99)

    event = error_event(error, turn=1, at=datetime(2025, 3, 4, tzinfo=UTC), secrets=SECRETS)

    assert not has_part(event.message)
