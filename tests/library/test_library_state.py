"""The helper functions of the library: jobs, output, agents and sessions of a state directory."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

import nightherd
from nightherd import (
    JobQuery,
    Order,
    append_job_output,
    clear_session,
    create_job,
    generate_job_id,
    get_agent_state,
    get_job,
    get_session_info,
    is_valid_job_output_input,
    list_jobs,
    open_fleet,
    read_job_output,
    update_agent_state,
    update_job,
    update_session_info,
)
from nightherd.errors import (
    AgentNotFoundError,
    InvalidValueError,
    JobNotFoundError,
    RefusedError,
    StateDirectoryValidationError,
)
from nightherd.model.jobs.job import ExitReason, JobStatus
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent, ToolUseEvent
from nightherd.model.journal.system import SystemSubtype

FLEET = """\
agents:
  - name: teller
    runtime: scripted
    session: {mode: persistent}
    script:
      - say: "You said: ${prompt}"
  - name: sleeper
    runtime: scripted
    default_prompt: sleep
    script:
      - sleep: 1h
  - name: spender
    runtime: scripted
    default_prompt: spend
    limits: {turns: 1}
    script:
      - say: one
      - say: two
"""
EXPORTED = {
    "Lost", "ObservedJob",
    "append_job_output", "append_jsonl", "atomic_write_file", "atomic_write_json", "atomic_write_yaml",
    "classify_error", "clear_session", "create_default_schedule_state", "create_job", "generate_job_id",
    "generate_session_id", "get_agent_state", "get_job", "get_session_info", "get_state_directory",
    "init_state_directory", "is_terminal_message", "is_valid_job_output_input", "list_jobs",
    "permission_error_message", "read_fleet_state", "read_job_output", "safe_read_json", "safe_read_jsonl",
    "safe_read_yaml", "update_agent_state", "update_job", "update_session_info", "validate_state_directory",
}  # fmt: skip


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    file = tmp_path / "nightherd.yaml"
    file.write_text(FLEET)
    return file


@pytest.fixture
def state(fleet_file: Path) -> Path:
    return fleet_file.parent / ".nightherd"


async def _create(fleet_file: Path, agent: str = "teller", **wanted: Any) -> str:
    order = Order(agent=agent, prompt="moo", **wanted)
    return (await create_job(order, config=fleet_file, environ={})).id


async def _execute(fleet_file: Path, agent: str = "teller") -> str:
    async with open_fleet(fleet_file, environ={}) as fleet:
        return (await fleet.execute(Order(agent=agent, prompt="moo"))).job_id


async def _output(state: Path, job: str) -> list[Event]:
    return [event async for event in read_job_output(state, job)]


def test_every_documented_helper_is_exported() -> None:
    assert set(nightherd.__all__) >= EXPORTED


def test_job_ids_need_no_arguments() -> None:
    assert re.fullmatch(r"job-\d{4}-\d{2}-\d{2}-[a-z0-9]{6}", generate_job_id())
    at = datetime(2024, 1, 19, tzinfo=UTC)
    assert generate_job_id(at, lambda length: "a" * length) == "job-2024-01-19-aaaaaa"
    assert generate_job_id() != generate_job_id()
    assert re.fullmatch(r"sess-[a-z0-9]{8}", nightherd.generate_session_id())


def test_jobs_are_created_found_and_listed(fleet_file: Path, state: Path) -> None:
    assert list_jobs(state) == []
    first = anyio.run(_create, fleet_file)
    second = anyio.run(_create, fleet_file, "sleeper")

    assert get_job(state, first).status is JobStatus.PENDING
    assert [job.id for job in list_jobs(state)] == [second, first]
    assert [job.id for job in list_jobs(state, JobQuery(agent="teller"))] == [first]
    with pytest.raises(JobNotFoundError):
        get_job(state, "job-2024-01-19-aaaaaa")


def test_a_pending_job_is_cancelled_or_failed_and_then_stays_so(
    fleet_file: Path, state: Path
) -> None:
    async def go() -> None:
        cancelled = await update_job(state, await _create(fleet_file), status="cancelled")
        assert (cancelled.status, cancelled.exit_reason) == (
            JobStatus.CANCELLED,
            ExitReason.CANCELLED,
        )
        failed = await update_job(
            state, await _create(fleet_file), status="failed", error="no milk"
        )
        assert (failed.status, failed.error, failed.error_code) == (
            JobStatus.FAILED,
            "no milk",
            "failed_by_program",
        )
        for status in ("pending", "failed", "cancelled"):
            with pytest.raises(RefusedError):
                await update_job(state, failed.id, status=status)
        assert get_job(state, failed.id) == failed

    anyio.run(go)


@pytest.mark.parametrize("status", ["running", "completed", "suspended"])
def test_only_a_worker_can_start_complete_or_suspend_a_job(
    status: str, fleet_file: Path, state: Path
) -> None:
    async def go() -> None:
        job = await _create(fleet_file)
        with pytest.raises(RefusedError, match="only a worker"):
            await update_job(state, job, status=status)
        assert get_job(state, job).status is JobStatus.PENDING

    anyio.run(go)


def test_a_status_that_does_not_exist_is_an_invalid_value(fleet_file: Path, state: Path) -> None:
    job = anyio.run(_create, fleet_file)

    with pytest.raises(InvalidValueError, match="'done' is not a job status"):
        anyio.run(lambda: update_job(state, job, status="done"))


def test_a_suspended_job_is_resumed_by_setting_it_to_pending(fleet_file: Path, state: Path) -> None:
    job = anyio.run(_execute, fleet_file, "spender")
    assert get_job(state, job).status is JobStatus.SUSPENDED

    assert anyio.run(lambda: update_job(state, job, status="pending")).status is JobStatus.PENDING


def test_output_appended_before_a_job_starts_is_read_and_not_seen_by_the_agent(
    fleet_file: Path, state: Path
) -> None:
    async def go() -> list[Event]:
        job = await _create(fleet_file, dedupe_key="once")
        await append_job_output(state, job, {"type": "assistant", "content": "from outside"})
        await append_job_output(
            state, job, {"type": "tool_use", "tool_name": "Bash", "input": "ls"}
        )
        async with open_fleet(fleet_file, environ={}) as fleet:
            order = Order(agent="teller", prompt="moo", dedupe_key="once")
            result = await fleet.execute(order)
        assert (result.job_id, result.summary) == (job, "You said: moo")
        assert (result.job.turns, result.job.messages) == (1, 2)
        return await _output(state, job)

    events = anyio.run(go)

    kinds = [one.subtype if isinstance(one, SystemEvent) else type(one) for one in events]
    assert kinds[:4] == [
        SystemSubtype.HEADER,
        AssistantEvent,
        ToolUseEvent,
        SystemSubtype.EXECUTION_STARTED,
    ]
    assert SystemSubtype.RECOVERED not in kinds
    assert kinds.count(SystemSubtype.HEADER) == 1
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(event.timestamp is not None for event in events)


def test_output_appended_to_an_ended_job_is_no_part_of_its_session(
    fleet_file: Path, state: Path
) -> None:
    async def go() -> None:
        job = await _execute(fleet_file)
        written = await append_job_output(state, job, {"type": "system", "content": "checked"})
        assert isinstance(written, SystemEvent)
        await append_job_output(state, job, {"type": "assistant", "content": "afterwards"})
        assert (await _output(state, job))[-1].extra == {"by": "program"}
        again = await _execute(fleet_file)
        assert get_job(state, again).session_id == get_job(state, job).session_id
        assert get_job(state, again).status is JobStatus.COMPLETED

    anyio.run(go)


def test_appending_is_refused_while_a_worker_has_the_job_and_while_it_is_suspended(
    fleet_file: Path, state: Path
) -> None:
    message = {"type": "assistant", "content": "me too"}

    async def go() -> None:
        async with open_fleet(fleet_file, environ={}) as fleet, anyio.create_task_group() as tasks:
            seen, stop = anyio.Event(), nightherd.Cancel()

            async def work() -> None:
                await fleet.execute(
                    Order(agent="sleeper"), on_message=lambda event: seen.set(), cancel=stop
                )

            tasks.start_soon(work)
            await seen.wait()
            (job,) = fleet.jobs()
            with pytest.raises(RefusedError, match=f"worker {job.worker} has it"):
                await append_job_output(state, job.id, message)
            stop()
        assert all(not isinstance(event, AssistantEvent) for event in await _output(state, job.id))
        suspended = await _execute(fleet_file, "spender")
        with pytest.raises(RefusedError, match="resumes from its output"):
            await append_job_output(state, suspended, message)

    anyio.run(go)


@pytest.mark.parametrize(
    ("message", "is_valid"),
    [
        ({"type": "assistant", "content": "x"}, True),
        ({"type": "error", "message": "x", "code": "E"}, True),
        ({"type": "tool_result", "result": [1], "success": True}, True),
        ({"type": "system", "content": "x"}, True),
        ({"type": "system", "subtype": "end"}, False),
        ({"type": "error"}, False),
        ({"type": "assistant", "seq": 9}, False),
        ({"type": "moo"}, False),
        ({"content": "x"}, False),
        ("x", False),
    ],
)
def test_messages_that_can_be_appended_are_told_from_others(message: Any, is_valid: bool) -> None:
    assert is_valid_job_output_input(message) is is_valid


def test_secrets_are_masked_in_appended_output(
    fleet_file: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COW_API_KEY", "moo-4711-secret")
    job = anyio.run(_create, fleet_file)

    message = {"type": "assistant", "content": "the key is moo-4711-secret"}
    anyio.run(append_job_output, state, job, message)

    journal = (state / "jobs" / f"{job}.jsonl").read_text()
    assert "moo-4711-secret" not in journal
    assert "the key is [secret:COW_API_KEY]" in journal


def test_the_error_of_an_agent_is_shown_and_cleared(fleet_file: Path, state: Path) -> None:
    async def go() -> None:
        job = await _create(fleet_file)
        await update_job(state, job, status="failed", error="no milk")
        failed = get_agent_state(state, "teller")
        assert (failed.status, failed.error_message, failed.last_job) == ("error", "no milk", job)
        cleared = await update_agent_state(state, "teller", status="idle")
        assert (cleared.status, cleared.error_message) == ("idle", None)
        with pytest.raises(RefusedError, match="follows from its jobs"):
            await update_agent_state(state, "teller", status="running")
        with pytest.raises(AgentNotFoundError):
            await update_agent_state(state, "nobody")

    anyio.run(go)
    assert get_agent_state(state, "nobody").status == "idle"
    assert nightherd.create_default_schedule_state().status == "idle"


def test_session_info_is_shown_and_cleared(fleet_file: Path, state: Path) -> None:
    async def go() -> None:
        assert not await clear_session(state, "teller")
        await _execute(fleet_file)
        first = get_session_info(state, "teller")
        assert first is not None
        assert (first.agent_name, first.job_count, first.runtime_type) == ("teller", 1, "scripted")
        assert await update_session_info(state, first.session_id, name="cows") == first
        assert await clear_session(state, "teller")
        assert get_session_info(state, "teller") is None
        await _execute(fleet_file)
        second = get_session_info(state, "teller")
        assert second is not None
        assert (second.session_id != first.session_id, second.job_count) == (True, 1)

    anyio.run(_execute, fleet_file, "spender")
    anyio.run(go)


def test_the_session_of_a_waiting_job_is_not_cleared(fleet_file: Path, state: Path) -> None:
    anyio.run(_create, fleet_file)

    with pytest.raises(RefusedError, match="in use"):
        anyio.run(clear_session, state, "teller")


def test_no_change_makes_a_state_directory(tmp_path: Path) -> None:
    missing = nightherd.get_state_directory(tmp_path / "elsewhere")

    with pytest.raises(StateDirectoryValidationError):
        anyio.run(clear_session, missing.root, "teller")
    assert not missing.root.exists()
