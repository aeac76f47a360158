"""A worker that dies in the middle of a call: the next makes it again only when it was declared idempotent.

The command itself kills the worker the first time it runs; a file counts how often it really ran.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from crash.native_trials import COMMAND, GO_ON
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.repeat import INTERRUPTED_CALL
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.wiring.stores import open_journals, open_reader

FLEET = """\
agents:
  - name: caller
    runtime: {runtime}
    allowed_tools: [Bash]
    {declared}
    script:
      - say: on it
      - tool: Bash
        input:
          command: >-
            echo made >> counter;
            [ $(wc -l < counter) -gt 1 ] || {{ kill -9 $NIGHTHERD_WORKER_PID; sleep 600; }};
            echo finished
      - usage: {{input_tokens: 10, output_tokens: 2, cost_usd: 0.001}}
      - tool: Bash
        input: {{command: "echo after >> counter"}}
      - usage: {{input_tokens: 10, output_tokens: 2, cost_usd: 0.001}}
      - say: done
"""


def job_and_events(folder: Path) -> tuple[Job, list[Event]]:
    reader = open_reader(folder / ".nightherd")
    try:
        (job,) = reader.list_jobs(JobQuery(limit=10))
    finally:
        reader.close()
    return job, list(open_journals(folder / ".nightherd").read(job.id))


@pytest.mark.parametrize("runtime", ["native", "scripted"])
@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "undeclared"])
def test_a_call_in_flight_is_made_again_only_when_it_is_declared_idempotent(
    tmp_path: Path, command_server: ForkServer, runtime: str, is_declared: bool
) -> None:
    declared = "idempotent_tools: [Bash]" if is_declared else ""
    (tmp_path / "nightherd.yaml").write_text(FLEET.format(runtime=runtime, declared=declared))
    order = {
        "folder": str(tmp_path),
        "shown": str(tmp_path / "shown"),
        "arguments": ["run", "caller", "-p", "go"],
    }

    killed = command_server.run(COMMAND, order)
    going_on = command_server.run(GO_ON, {"folder": str(tmp_path)})

    assert killed.status == -signal.SIGKILL, killed
    assert going_on.status == 0, going_on
    job, events = job_and_events(tmp_path)
    assert (job.status, job.turns, job.cost_microusd) == (JobStatus.COMPLETED, 3, 2_000)
    made = ["made"] * (2 if is_declared else 1)
    assert (tmp_path / "counter").read_text().split() == [*made, "after"]
    calls = [event.tool_use_id for event in events if isinstance(event, ToolUseEvent)]
    first, second = [event for event in events if isinstance(event, ToolResultEvent)]
    assert [first.tool_use_id, second.tool_use_id] == calls
    assert (first.result, first.error) == (
        ("finished\n", None) if is_declared else (None, INTERRUPTED_CALL)
    )


MODEL_FLEET = """\
agents:
  - name: caller
    runtime: native
    model: anthropic:claude-loopback-1
    allowed_tools: [Bash]
"""


def test_calls_behind_the_one_that_was_in_flight_are_made_once_by_whoever_goes_on(
    tmp_path: Path, command_server: ForkServer
) -> None:
    def bash(command: str) -> Call:
        return Call("Bash", {"command": command})

    deadly = "echo deadly >> counter; kill -9 $NIGHTHERD_WORKER_PID; sleep 600"
    wanted = (bash("echo first >> counter"), bash(deadly), bash("echo last >> counter"))
    (tmp_path / "nightherd.yaml").write_text(MODEL_FLEET)
    order = {"folder": str(tmp_path), "shown": str(tmp_path / "shown")}
    with MessagesApi(Say(text="on it", calls=wanted), Say(text="done")) as api:
        variables = f"ANTHROPIC_API_KEY=sk-loopback\nANTHROPIC_BASE_URL={api.url}\n"
        (tmp_path / ".env").write_text(variables)
        killed = command_server.run(COMMAND, {**order, "arguments": ["run", "caller", "-p", "go"]})
        going_on = command_server.run(GO_ON, {"folder": str(tmp_path)})
        told = api.asked[-1].texts

    assert (killed.status, going_on.status) == (-signal.SIGKILL, 0), (killed, going_on)
    job, events = job_and_events(tmp_path)
    assert (job.status, job.turns) == (JobStatus.COMPLETED, 2)
    assert (tmp_path / "counter").read_text().split() == ["first", "deadly", "last"]
    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert [event.error for event in results] == [None, INTERRUPTED_CALL, None]
    assert told.count(INTERRUPTED_CALL) == 1
