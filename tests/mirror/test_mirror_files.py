"""What the mirror's files say about a fleet's life."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from mirror.mirror_world import World, answer, end, ids
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.job_file import write_output_log
from nightherd.model.change import FireSlot, ResetAgent
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import ExitReason, JobStatus, SuspendReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import ErrorEvent, ToolResultEvent, ToolUseEvent
from nightherd.model.schedules.schedule import OverrideSchedule, Slot, SlotOutcome
from nightherd.model.sessions.changes import ForkSession, UseSession
from nightherd.model.sessions.session import SessionMode
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

FAILED = Outcome(exit_reason=ExitReason.ERROR, error="The gate is shut.", error_code="gate")


def test_a_finished_job_reads_field_by_field_as_the_format_says(world: World) -> None:
    used = Usage(
        input_tokens=10,
        output_tokens=5,
        cache_creation_input_tokens=2,
        cache_read_input_tokens=1,
        cost_microusd=MicroUsd(1_250_000),
    )
    world.apply(
        submit(1, prompt="Graze the north side.\nMind the wolf: he is #1.\n"),
        start(1),
        settle(1, totals=Totals(turns=3, messages=6, usage=used), answer="Grazed.\nAll of it."),
    )

    world.catch_up()

    assert (world.root / "jobs" / f"{job_id(1)}.yaml").read_text() == (
        "id: job-2026-03-01-000001\n"
        "agent: grazer\n"
        "schedule: null\n"
        "trigger_type: manual\n"
        "status: completed\n"
        "exit_reason: success\n"
        "session_id: sess-00000001\n"
        "forked_from: null\n"
        'started_at: "2026-03-01T12:01:00.000250Z"\n'
        'finished_at: "2026-03-01T12:02:00.000250Z"\n'
        "duration_seconds: 60.0\n"
        "prompt: |\n"
        "  Graze the north side.\n"
        "  Mind the wolf: he is #1.\n"
        "summary: |-\n"
        "  Grazed.\n"
        "  All of it.\n"
        "output_file: job-2026-03-01-000001.jsonl\n"
        "turns: 3\n"
        "cost_usd: 1.25\n"
        "usage:\n"
        "  input_tokens: 10\n"
        "  output_tokens: 5\n"
        "  cache_creation_input_tokens: 2\n"
        "  cache_read_input_tokens: 1\n"
        "error: null\n"
    )


def test_a_job_is_readable_at_every_stage(world: World) -> None:
    world.apply(submit(1))
    world.catch_up()
    assert world.job(1)["status"] == "pending"
    assert world.job(1)["started_at"] is None

    world.apply(start(1))
    world.name_session(1, "claude-session-xyz789")
    world.catch_up()
    assert world.job(1)["status"] == "running"
    assert world.job(1)["session_id"] == "claude-session-xyz789"
    assert world.job(1)["prompt"] == "Graze."
    assert world.job(1)["duration_seconds"] is None

    world.apply(settle(1, outcome=FAILED))
    world.catch_up()
    assert world.job(1)["status"] == "failed"
    assert world.job(1)["exit_reason"] == "error"
    assert world.job(1)["error"] == {"code": "gate", "message": "The gate is shut."}
    assert world.job(1)["prompt"] == "Graze."


def test_a_suspended_job_reads_running_and_says_that_it_waits(world: World) -> None:
    world.apply(submit(1), start(1))
    world.put(
        replace(
            world.find_job(1),
            status=JobStatus.SUSPENDED,
            suspend_reason=SuspendReason.RATE_LIMIT,
            not_before=datetime(2026, 11, 17, 4, 17, tzinfo=UTC),
        )
    )

    world.catch_up()

    assert world.job(1)["status"] == "running"
    assert world.job(1)["suspended"] == "rate_limit"
    assert world.job(1)["resumes_at"] == "2026-11-17T04:17:00.000000Z"


def test_the_state_follows_an_agent_through_running_failure_and_success(world: World) -> None:
    world.apply(submit(1), start(1))
    world.catch_up()
    assert world.agent()["status"] == "running"
    assert world.agent()["current_job"] == job_id(1)
    assert world.agent()["last_job"] is None

    world.apply(settle(1, outcome=FAILED))
    world.catch_up()
    assert world.agent()["status"] == "error"
    assert world.agent()["error_message"] == "The gate is shut."
    assert world.agent()["last_job"] == job_id(1)

    world.apply(submit(2), start(2))
    world.catch_up()
    assert world.agent()["status"] == "running"
    assert world.agent()["error_message"] is None

    world.apply(settle(2))
    world.catch_up()
    assert world.agent() == {
        "status": "idle",
        "current_job": None,
        "last_job": job_id(2),
        "next_schedule": None,
        "next_trigger_at": None,
        "container_id": None,
        "error_message": None,
        "schedules": {},
    }


def test_resetting_an_agent_clears_its_error(world: World) -> None:
    world.apply(submit(1), start(1), settle(1, outcome=FAILED), ResetAgent(agent="grazer"))

    world.catch_up()

    assert world.agent()["status"] == "idle"
    assert world.agent()["error_message"] is None


def test_with_several_running_jobs_the_oldest_is_the_current_one(world: World) -> None:
    world.apply(submit(1), submit(2), start(2), start(1))
    world.catch_up()
    assert world.agent()["current_job"] == job_id(1)

    world.apply(settle(1))
    world.catch_up()
    assert world.agent()["status"] == "running"
    assert world.agent()["current_job"] == job_id(2)


def test_schedules_stand_with_their_agent_and_name_the_next_trigger(world: World) -> None:
    due = BEGINNING + timedelta(hours=1)
    slot = Slot(
        id="grazer/dawn@1",
        schedule_id="grazer/dawn",
        due_at=BEGINNING,
        outcome=SlotOutcome.JOB,
        decided_at=BEGINNING,
    )
    world.apply(
        FireSlot(slot=slot, agent="grazer", schedule="dawn", next_run_at=due, job=submit(1)),
        OverrideSchedule(agent="grazer", schedule="dusk", at=due, by="me", enabled=False),
    )

    world.catch_up()

    agent = world.agent()
    assert agent["next_schedule"] == "dawn"
    assert agent["next_trigger_at"] == "2026-03-01T13:00:00.000250Z"
    assert agent["schedules"] == {
        "dawn": {
            "status": "running",
            "last_run_at": None,
            "next_run_at": "2026-03-01T13:00:00.000250Z",
            "last_error": None,
        },
        "dusk": {
            "status": "disabled",
            "last_run_at": None,
            "next_run_at": None,
            "last_error": None,
        },
    }


def test_declared_agents_have_a_place_before_they_ever_work(world: World) -> None:
    world.apply(submit(1, agent="worker"))
    at = datetime(2026, 3, 1, 11, 0, tzinfo=UTC)

    world.catch_up(agents={"dog": None, "fleet.sub": None}, started_at=at)
    assert list(world.state()["agents"]) == ["dog", "fleet.sub", "worker"]
    assert world.state()["fleet"] == {"started_at": "2026-03-01T11:00:00.000000Z"}

    # A command that knows nothing of the fleet keeps both.
    world.catch_up()
    assert list(world.state()["agents"]) == ["dog", "fleet.sub", "worker"]
    assert world.state()["fleet"] == {"started_at": "2026-03-01T11:00:00.000000Z"}

    world.catch_up(agents={"dog": None})
    assert list(world.state()["agents"]) == ["dog", "worker"]


def test_the_state_file_passes_the_reader_of_its_format(world: World) -> None:
    world.apply(submit(1), start(1), settle(1, outcome=FAILED), submit(2, agent="fleet.dog"))
    world.catch_up()

    state = read_fleet_state(world.root / "state.yaml")

    assert state.agents["grazer"].status == "error"
    assert state.agents["fleet.dog"].status == "idle"


def test_an_empty_fleet_has_an_empty_state(world: World) -> None:
    world.catch_up()

    assert world.state() == {"fleet": {}, "agents": {}}


def test_a_persistent_session_shows_its_agent_and_all_its_jobs(world: World) -> None:
    for number in (1, 2):
        world.apply(submit(number, mode=SessionMode.PERSISTENT), start(number))
        world.name_session(number, "claude-session-xyz789")
        world.apply(settle(number))
    world.apply(submit(3))

    world.catch_up()

    assert world.session("grazer") == {
        "agent_name": "grazer",
        "session_id": "claude-session-xyz789",
        "created_at": "2026-03-01T12:00:01.000250Z",
        "last_used_at": "2026-03-01T12:02:00.000250Z",
        "job_count": 2,
        "mode": "autonomous",
        "working_directory": "/pasture",
        "runtime_type": "scripted",
        "docker_enabled": False,
    }
    assert world.session("sess-00000001") == {
        "id": "sess-00000001",
        "agentId": "grazer",
        "mode": "persistent",
        "status": "paused",
        "createdAt": "2026-03-01T12:00:01.000250Z",
        "lastActiveAt": "2026-03-01T12:02:00.000250Z",
        "messageCount": 4,
        "tokenEstimate": 0,
        "jobs": ids(1, 2),
    }
    assert world.session("sess-00000003")["jobs"] == ids(3)


def test_without_a_persistent_session_the_latest_is_the_agents(world: World) -> None:
    world.apply(submit(1), start(1), settle(1), submit(2))

    world.catch_up()

    assert world.session("grazer")["session_id"] == "sess-00000002"
    assert world.session("sess-00000001")["status"] == "completed"


def test_a_fork_does_not_take_the_place_of_the_persistent_session(world: World) -> None:
    first = submit(1, mode=SessionMode.PERSISTENT)
    assert first.session is not None
    world.apply(first, start(1), settle(1))
    fork = replace(first.session, id=SessionId("sess-00000009"), parent_session_id=first.session.id)

    world.apply(ForkSession(session=fork))
    world.catch_up()
    named_after_fork = world.session("grazer")["session_id"]
    world.apply(UseSession(session_id=fork.id))
    world.catch_up()

    assert named_after_fork == "sess-00000001"
    assert world.session("grazer")["session_id"] == "sess-00000009"


def test_a_fork_that_an_older_nightherd_remembered_as_the_persistent_session_is_corrected(
    world: World,
) -> None:
    first = submit(1, mode=SessionMode.PERSISTENT)
    assert first.session is not None
    world.apply(first, start(1), settle(1))
    fork = replace(first.session, id=SessionId("sess-00000009"), parent_session_id=first.session.id)
    world.apply(ForkSession(session=fork))
    world.catch_up()
    remembered = json.loads((world.root / "mirror.json").read_text())
    remembered["v"] = 1
    remembered["agents"]["grazer"]["persistent"] = fork.id
    (world.root / "mirror.json").write_text(json.dumps(remembered))
    (world.root / "sessions" / "grazer.json").write_text('{"session_id": "sess-00000009"}')

    world.catch_up()

    assert world.session("grazer")["session_id"] == "sess-00000001"
    assert json.loads((world.root / "mirror.json").read_text())["v"] > 1


def test_a_session_of_a_channel_names_it(world: World) -> None:
    world.apply(submit(1, mode=SessionMode.PER_CHANNEL, channel="C042"))

    world.catch_up()

    assert world.session("sess-00000001")["channelId"] == "C042"


def test_a_job_that_joins_a_session_later_is_in_its_file_at_once(world: World) -> None:
    world.apply(submit(1, mode=SessionMode.PERSISTENT), start(1), settle(1))
    world.catch_up()

    world.apply(submit(2, mode=SessionMode.PERSISTENT))
    world.catch_up()

    assert world.session("sess-00000001")["jobs"] == ids(1, 2)


def test_files_and_directories_are_their_owners_only(world: World) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.catch_up()

    modes = {
        str(path.relative_to(world.root)): stat.S_IMODE(path.stat().st_mode)
        for path in world.root.rglob("*")
        if path.name not in ("jobs", "blobs", "sessions")
    }
    assert {name for name, mode in modes.items() if mode == 0o700} == {
        "projects",
        "projects/-pasture",
    }
    assert {mode for name, mode in modes.items() if not name.startswith("projects")} == {0o600}
    assert modes["projects/-pasture/s-1.jsonl"] == 0o600


def test_a_record_is_written_as_text_when_asked_for(world: World) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session=None, prompt="Graze.\nSlowly.")
    world.say(
        1,
        answer("On my way.", message=2),
        ToolUseEvent(tool_name="Bash", tool_use_id="t1", input={"command": "moo"}),
        ToolResultEvent(tool_use_id="t1", result="moo: not found", success=False, error="exit 127"),
        ErrorEvent(message="The gate is shut.", code="gate"),
        end("failed", "error"),
    )

    path = write_output_log(world.root, job_id(1), world.journals)

    assert path == world.root / "jobs" / job_id(1) / "output.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = [line.partition(" ")[2] for line in path.read_text().splitlines()]
    assert said[1] == "[user_input] Graze."
    assert path.read_text().splitlines()[2] == "    Slowly."
    assert said[-5:] == [
        "[assistant] On my way.",
        '[tool] Bash {"command": "moo"}',
        "[tool failed] exit 127 moo: not found",
        "[error] gate: The gate is shut.",
        '[end] {"status": "failed", "exit_reason": "error"}',
    ]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil"])
def test_an_agent_whose_name_is_a_path_writes_nothing_outside(
    world: World, tmp_path: Path, name: str
) -> None:
    world.apply(submit(1, agent=name), submit(2))

    standing = world.follower().catch_up()

    assert len(standing.unwritten) == 1
    assert not list(tmp_path.rglob("evil*"))
    assert not Path("/etc/evil.json").exists()
    assert world.job(2)["agent"] == "grazer"
    assert name in world.state()["agents"]
