"""The runtime of commands: what is on record, what comes of outputs and exit codes, and what hostile values can do."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from nightherd.errors import FencedError
from nightherd.model.jobs.job import ExitReason
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    FullOutput,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import Complete, Init
from nightherd.model.secrets import knowing
from nightherd.model.workflows.command import CommandSpec, exit_code_of
from nightherd.runtimes.command.output import STDOUT_LIMIT_BYTES
from nightherd.runtimes.command.runtime import CommandRuntime
from runtimes.command.command_stage import (
    CommandStage,
    bash,
    python,
    results_in,
)
from runtimes.heard import error_of, payloads, tally_of
from runtimes.stage import QUICK, is_running, is_written, until

HOSTILE = "a'b\"c`touch pwned`$(touch pwned)${PATH}\n;touch pwned;\\ $'x' *\t\x7f ümlaut 💥"


def complete_of(events: list[Event]) -> Complete:
    last = events[-1]
    assert isinstance(last, SystemEvent), last
    payload = payload_of(last)
    assert isinstance(payload, Complete)
    return payload


def test_the_call_is_given_out_before_the_command_starts(commands: CommandStage) -> None:
    made = commands.directory / "made"

    async def look() -> list[bool]:
        runtime = CommandRuntime(grace=QUICK)
        return [
            made.exists()
            async for event in runtime.execute(commands.request(bash("touch made").to_inputs()))
            if isinstance(event, ToolUseEvent | ToolResultEvent)
        ]

    assert anyio.run(look) == [False, True]


def test_a_command_is_one_call_with_its_result_and_its_standard_output_is_the_summary(
    commands: CommandStage,
) -> None:
    events = commands.run(bash("echo out; echo err >&2; echo more"))

    init, use, result, _ = events
    assert isinstance(init, SystemEvent)
    (begun,) = payloads([init], Init)
    assert (begun.runtime, begun.working_directory) == ("command", str(commands.directory))
    assert isinstance(use, ToolUseEvent)
    assert (use.tool_name, use.input) == (
        "Bash",
        {"command": "echo out; echo err >&2; echo more"},
    )
    assert isinstance(result, ToolResultEvent)
    assert result.tool_use_id == use.tool_use_id
    assert sorted(str(result.result).splitlines()) == ["err", "more", "out"]
    assert (result.extra or {})["exit_code"] == 0
    complete = complete_of(events)
    assert (complete.summary, exit_code_of(complete.stop_reason)) == ("out\nmore", 0)
    tally = tally_of(events)
    assert (tally.answer, tally.turns, tally.open_calls) == ("out\nmore", 0, frozenset())


def test_python_is_run_by_the_python3_of_the_path(commands: CommandStage) -> None:
    own = commands.directory / "bin"
    own.mkdir()
    (own / "python3").write_text('#!/bin/sh\necho "given $1 $2"\n')
    (own / "python3").chmod(0o755)

    real = commands.run(python("import sys; print(sys.argv[0], 1 + 1)"))
    other = commands.run(python("print()", env={"PATH": f"{own}:/usr/bin:/bin"}))

    assert complete_of(real).summary == "-c 2"
    assert complete_of(other).summary == "given -c print()"
    assert [event.tool_name for event in real if isinstance(event, ToolUseEvent)] == ["Python"]


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        pytest.param("false; echo on", 1, id="a failing command ends the script"),
        pytest.param("false | cat; echo on", 1, id="a failing part of a pipe ends it"),
        pytest.param("-x", 127, id="a text like an option is a command"),
        pytest.param("exit 3", 3, id="its own exit code"),
        pytest.param("kill -TERM $$", 128 + signal.SIGTERM, id="a signal counts as in a shell"),
    ],
)
def test_a_failed_command_says_its_exit_code(
    commands: CommandStage, command: str, exit_code: int
) -> None:
    events = commands.run(bash(command))

    assert error_of(events).code == "command_failed"
    outcome = tally_of(events).outcome
    assert outcome is not None
    assert outcome.exit_reason is ExitReason.ERROR
    assert exit_code_of(outcome.stop_reason) == exit_code
    assert "on" not in str(results_in(events)[0].result).split()


def test_an_unset_variable_is_empty(commands: CommandStage) -> None:
    assert complete_of(commands.run(bash('echo "[$NOT_SET]"'))).summary == "[]"


def test_the_error_has_the_last_lines_of_standard_error_else_of_standard_output(
    commands: CommandStage,
) -> None:
    loud = commands.run(bash("seq 1 100 >&2; echo out; exit 3"))
    quiet = commands.run(bash("seq 1 100; exit 3"))
    silent = commands.run(bash("exit 3"))

    assert error_of(loud).message == "exit code 3: 96\n97\n98\n99\n100"
    assert error_of(quiet).message == "exit code 3: 96\n97\n98\n99\n100"
    assert error_of(silent).message == "exit code 3"


@pytest.mark.parametrize("exit_code", [0, 1, 7])
def test_every_exit_code_of_a_condition_is_an_answer(
    commands: CommandStage, exit_code: int
) -> None:
    events = commands.run(bash(f"echo looked; exit {exit_code}", is_condition=True))

    complete = complete_of(events)
    assert exit_code_of(complete.stop_reason) == exit_code
    assert complete.summary == "looked"


def test_values_come_by_env_and_stdin_exactly_as_they_are(commands: CommandStage) -> None:
    shown = 'printf "%s" "$VALUE" > by-env; cat > by-stdin'

    events = commands.run(bash(shown, env={"VALUE": HOSTILE}, stdin=HOSTILE + "\0\n"))

    assert complete_of(events).summary == ""
    assert (commands.directory / "by-env").read_text() == HOSTILE
    assert (commands.directory / "by-stdin").read_text() == HOSTILE + "\0\n"
    assert not (commands.directory / "pwned").exists()
    (use,) = (event for event in events if isinstance(event, ToolUseEvent))
    assert use.input == {"command": shown}


def test_values_are_not_in_the_arguments_of_any_process(commands: CommandStage) -> None:
    look = "import os, pathlib; print(*[p.read_bytes() for p in pathlib.Path('/proc').glob('[0-9]*/cmdline') if os.access(p, os.R_OK)])"

    events = commands.run(python(look, env={"VALUE": "val" + "ue-1"}, stdin="val" + "ue-2"))

    summary = complete_of(events).summary or ""
    assert "cmdline" in summary
    assert "value-1" not in summary
    assert "value-2" not in summary


def test_without_stdin_the_input_is_empty_and_an_unread_one_is_no_failure(
    commands: CommandStage,
) -> None:
    assert complete_of(commands.run(bash("cat; echo end"))).summary == "end"
    unread = commands.run(bash("echo end", stdin="x" * 1_000_000))
    assert complete_of(unread).summary == "end"


def test_a_large_input_comes_through(commands: CommandStage) -> None:
    events = commands.run(bash("wc -c", stdin="é" * 2_000_000))

    assert (complete_of(events).summary or "").strip() == "4000000"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(bash("echo \0"), "the command holds a NUL", id="in the command"),
        pytest.param(
            bash("true", env={"A": "x\0y"}), "the value of A holds a NUL", id="in a value"
        ),
        pytest.param(bash("true", env={"A=B": "x"}), "'A=B' is not the name", id="a bad name"),
        pytest.param(bash("true", env={"": "x"}), "'' is not the name", id="no name"),
    ],
)
def test_what_no_process_can_have_is_a_clear_error_before_anything_runs(
    commands: CommandStage, spec: CommandSpec, said: str
) -> None:
    events = commands.run(spec)

    assert error_of(events).code == "invalid_command"
    assert said in error_of(events).message
    assert len(events) == 2


@pytest.mark.parametrize("inputs", [{}, {"command": "rm -rf /"}, {"command": {"language": "perl"}}])
def test_a_job_that_no_workflow_made_runs_nothing(
    commands: CommandStage, inputs: dict[str, object]
) -> None:
    events = commands.run_inputs(inputs)

    assert error_of(events).code == "invalid_command"
    assert len(events) == 2


def test_a_value_too_long_for_the_environment_is_a_clear_error(commands: CommandStage) -> None:
    events = commands.run(bash("true", env={"LONG": "x" * 3_000_000}))

    assert error_of(events).code == "invalid_command"
    assert "give long values by stdin" in error_of(events).message


def test_a_missing_program_or_directory_is_a_clear_error(
    commands: CommandStage, tmp_path: Path
) -> None:
    nowhere = CommandStage(tmp_path / "gone")

    programless = commands.run(python("print()", env={"PATH": str(tmp_path)}))
    placeless = nowhere.run(bash("true"))

    missing, place = error_of(programless), error_of(placeless)
    assert (missing.code, place.code) == ("missing_program", "working_directory")
    assert "there is no python3 on the PATH" in missing.message
    assert str(tmp_path / "gone") in place.message


def test_json_survives_up_to_the_limit_and_a_longer_output_is_cut_with_a_mark_and_kept(
    commands: CommandStage,
) -> None:
    kept: list[str] = []

    async def keep(pieces: Iterator[str], left_out: int) -> FullOutput:
        kept.append("".join(pieces))
        return FullOutput(sha256="0" * 64, size=len(kept[-1]), left_out=left_out)

    size = STDOUT_LIMIT_BYTES - 2
    whole = commands.run(
        python(f"import json; print(json.dumps('x' * {size - 1}))"), keep_output=keep
    )
    longer = commands.run(python(f"print('x' * {2 * size})"), keep_output=keep)

    assert json.loads(complete_of(whole).summary or "") == "x" * (size - 1)
    summary = complete_of(longer).summary or ""
    assert len(summary) < STDOUT_LIMIT_BYTES + 100
    assert "bytes left out ...]" in summary
    assert kept == ["x" * 2 * size + "\n"]
    assert results_in(longer)[0].full_output is not None


def test_long_standard_error_is_kept_whole_and_leaves_standard_output_as_it_is(
    commands: CommandStage,
) -> None:
    kept: list[str] = []

    async def keep(pieces: Iterator[str], left_out: int) -> FullOutput:
        kept.append("".join(pieces))
        return FullOutput(sha256="0" * 64, size=len(kept[-1]), left_out=left_out)

    events = commands.run(bash("seq 1 100000 >&2; echo '{}'"), keep_output=keep)

    assert complete_of(events).summary == "{}"
    assert sorted(kept[0].split(), key=str) == sorted([*map(str, range(1, 100_001)), "{}"], key=str)


def test_binary_output_is_text_with_marks_for_what_is_none(commands: CommandStage) -> None:
    events = commands.run(bash(r"printf 'a\000b\377c\n'"))

    assert complete_of(events).summary == "a\0b\ufffdc"


def test_secrets_are_masked_in_each_stream_before_they_are_put_together(
    commands: CommandStage,
) -> None:
    halves = "printf sesame; echo noise >&2; sleep 0.05; echo -open; echo sesame-open >&2; exit 1"

    events = commands.run(bash(halves), secrets=knowing({"sesame-open": "DOOR"}))

    (result,) = results_in(events)
    shown = f"{result.result}{result.error}{result.extra}{error_of(events).message}"
    assert "sesame" not in shown
    assert "[secret:DOOR]" in str((result.extra or {})["stdout"])


def test_output_passed_on_by_a_process_behind_the_command_is_not_lost(
    commands: CommandStage,
) -> None:
    events = commands.run(bash("exec > >(sleep 0.1; cat); echo late"))

    assert complete_of(events).summary == "late"


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("sh -c '{it}' &", id="a child"),
        pytest.param("setsid sh -c '{it}' &", id="a session of its own"),
        pytest.param("(env -i setsid sh -c '{it}' &) &", id="an orphan without marks"),
    ],
)
def test_what_a_command_left_in_the_background_ends_with_it(
    commands: CommandStage, start: str
) -> None:
    it = 'trap "" TERM; echo $$ > it.pid; while :; do sleep 0.02; done'
    wait = "; until [ -s it.pid ]; do sleep 0.01; done; echo done"

    events = commands.run(bash(start.format(it=it) + wait.removeprefix(";")))

    assert complete_of(events).summary == "done"
    assert not is_running(int((commands.directory / "it.pid").read_text()))


def test_cancelling_kills_everything_and_records_what_was_printed_so_far(
    commands: CommandStage,
) -> None:
    late: list[Event] = []
    deaf = "trap '' TERM; echo begun; setsid sleep 1000 & echo $! > it.pid; echo $$ > sh.pid; wait"
    pids = [commands.directory / name for name in ("it.pid", "sh.pid")]

    async def cancel() -> None:
        request = commands.request(bash(deaf).to_inputs(), late=late.append)

        async def run() -> None:
            async for _ in CommandRuntime(grace=QUICK).execute(request):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: all(map(is_written, pids)))
            tasks.cancel_scope.cancel()

    anyio.run(cancel)

    assert not any(is_running(int(path.read_text())) for path in pids)
    (result,) = results_in(late)
    assert result.result == "begun\n"
    assert "its outcome is unknown" in (result.error or "")


def test_a_run_that_is_closed_after_the_call_starts_nothing_and_says_so(
    commands: CommandStage,
) -> None:
    late: list[Event] = []

    async def close() -> None:
        request = commands.request(bash("touch made").to_inputs(), late=late.append)
        events = CommandRuntime(grace=QUICK).execute(request)
        async for event in events:
            if isinstance(event, ToolUseEvent):
                break
        await events.aclose()

    anyio.run(close)

    assert not (commands.directory / "made").exists()
    (result,) = results_in(late)
    assert result.error == "the command was not started"


def test_a_killed_keeper_leaves_an_outcome_that_nobody_knows(commands: CommandStage) -> None:
    events = commands.run(bash("kill -9 $PPID; sleep 600"))

    error = error_of(events)
    assert isinstance(error, ErrorEvent)
    assert (error.code, (error.extra or {})["recoverable"]) == ("killed", True)
    assert "its outcome is unknown" in (results_in(events)[0].error or "")


def test_a_command_ended_by_the_lease_of_its_worker_has_no_result(commands: CommandStage) -> None:
    commands.keepers.send_heartbeat(time.monotonic())

    with pytest.raises(FencedError):
        commands.run(bash("sleep 600"))
