"""Importing a fleet of herdctl's: jobs with all that was said, sessions, schedules; once, and honestly."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from imports.conftest import Importer
from imports.foreign_trees import CWD, ClaudeTree, HerdctlTree, fingerprint, uuid
from nightherd.engine.schedules.scheduler import Scheduler
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.change import AdoptRows
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import ExecutionStatus, ExitReason, JobStatus
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.state_values import submit
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_journals

USAGE = {
    "per_model": {
        "model-a": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 5},
        "model-b": {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3},
    },
    "num_turns": 4,
    "total_cost_usd": 0.1234567,
}


def adopt(state: Path, *rows: Session | ScheduleState) -> None:
    """Rows that were here before the import."""

    async def work() -> None:
        store = SqliteStore(init_state_directory(state).root, FakeClock())
        await store.apply([AdoptRows(rows=rows, source="test")])
        await store.close()

    anyio.run(work)


@contextmanager
def running(name: str) -> Iterator[int]:
    """A process with `name` on its command line, from when it runs to the end of the block; its pid."""
    program = "import sys; print('here', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        yield process.pid
        process.communicate()


def test_job_is_here_with_its_id_its_texts_and_its_journal(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    job_id = herdctl.job(7, schedule="nightly", trigger_type="schedule", usage=USAGE)

    data = importer.data("herdctl", str(herdctl.root))

    job = importer.job(job_id)
    assert data["imported"]["jobs"] == 1
    assert (job.agent, job.schedule, job.trigger_type.value) == ("coder", "nightly", "schedule")
    assert (job.status, job.exit_reason) == (JobStatus.COMPLETED, ExitReason.SUCCESS)
    assert job.created_at == job.started_at == datetime(2026, 1, 1, 9, 7, tzinfo=UTC)
    assert job.finished_at == datetime(2026, 1, 1, 10, 7, 30, tzinfo=UTC)
    assert (job.input_tokens, job.output_tokens) == (101, 22)
    assert (job.cache_creation_input_tokens, job.cache_read_input_tokens) == (3, 5)
    assert job.cost_microusd == 123_457
    assert (job.turns, job.messages) == (1, 2)
    assert (job.summary, job.runtime_session_id) == ("It is up to date.", "claude-session-1")
    reader = importer.reader
    texts, (execution,) = reader.find_texts(job.id), reader.list_executions(job.id)
    reader.close()
    assert texts is not None
    assert texts.prompt == "Bring the changelog up to date.\n"
    assert (execution.status, execution.worker) == (ExecutionStatus.FINISHED, "herdctl")
    assert (execution.success, execution.skill) == (True, "coder")
    journal = importer.state / "jobs" / f"{job_id}.jsonl"
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    findings = open_journals(importer.state).examine(job.id)
    assert (findings.last_seq, findings.missing, findings.bad_lines) == (job.last_seq, 0, ())


def test_journal_alone_comes_to_the_same_job(importer: Importer, herdctl: HerdctlTree) -> None:
    error = {"type": "error", "message": "no luck", "code": "E1"}
    herdctl.job(1, usage=USAGE)
    herdctl.job(2, error, status="failed", exit_reason="error", usage=USAGE)
    herdctl.job(3, status="running", exit_reason=..., finished_at=...)
    herdctl.session()

    importer.data("herdctl", str(herdctl.root))

    journals = open_journals(importer.state)
    jobs = importer.jobs()
    assert len(jobs) == 3
    for job in jobs:
        rebuilt = rebuilt_rows(recollect(journals.read(job.id)))
        assert rebuilt is not None
        assert rebuilt.job == replace(job, number=0)


@pytest.mark.parametrize("given", [".", ".herdctl"])
def test_directory_or_its_parent_can_be_given(
    given: str, importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job()

    assert importer.data("herdctl", str(herdctl.project / given))["imported"]["jobs"] == 1


def test_directory_without_herdctl_is_not_found(importer: Importer, tmp_path: Path) -> None:
    assert importer("herdctl", str(tmp_path)).code == 3
    assert not importer.state.exists()


def test_dry_run_makes_nothing_and_lists_what_is_bad(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job(1, "{torn", {"type": "assistant", "content": "Hi"})
    herdctl.session()
    before = fingerprint(herdctl.project)

    data = importer.data("herdctl", str(herdctl.project), "--dry-run")

    assert (data["imported"]["jobs"], data["imported"]["sessions"]) == (1, 1)
    assert [one["line"] for one in data["unreadable"]] == [1]
    assert not importer.state.exists()
    assert fingerprint(herdctl.project) == before


def test_second_import_adds_nothing_and_third_only_what_is_new(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job(1, usage=USAGE)
    herdctl.job(2, status="pending", exit_reason=..., finished_at=...)
    herdctl.session()
    (herdctl.root / "state.yaml").write_text("agents: {coder: {schedules: {nightly: {}}}}")
    before = fingerprint(herdctl.project)
    importer.data("herdctl", str(herdctl.project))
    jobs = importer.jobs()

    again = importer.data("herdctl", str(herdctl.project))
    same = fingerprint(herdctl.project)
    herdctl.job(3)
    third = importer.data("herdctl", str(herdctl.project))

    assert not any(again["imported"].values())
    assert (again["unchanged"], again["skipped"]) == (4, [])
    assert same == before
    assert third["imported"]["jobs"] == 1
    assert [job.id for job in importer.jobs()][1:] == [job.id for job in jobs]


@pytest.mark.parametrize("status", ["running", "pending"])
def test_unfinished_job_of_a_dead_process_was_interrupted(
    status: str, importer: Importer, herdctl: HerdctlTree
) -> None:
    said = {"type": "assistant", "content": "On it", "timestamp": "2026-01-01T09:30:00Z"}
    job_id = herdctl.job(1, said, status=status, exit_reason=..., finished_at=..., session_id=None)

    importer.data("herdctl", str(herdctl.project))

    job = importer.job(job_id)
    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.ERROR)
    assert job.error_code == "interrupted"
    assert job.finished_at == datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
    reader = importer.reader
    assert [one.status for one in reader.list_executions(job.id)] == [ExecutionStatus.LOST]
    reader.close()


def test_job_that_herdctl_is_at_work_on_is_left_to_it(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job(1, status="running", exit_reason=..., finished_at=...)
    herdctl.job(2)
    with running("herdctl") as pid:
        (herdctl.root / "herdctl.pid").write_text(f"{pid}\n")
        live = importer.data("herdctl", str(herdctl.project))

    dead = importer.data("herdctl", str(herdctl.project))

    assert [one["reason"].startswith("herdctl is running") for one in live["skipped"]] == [True]
    assert (live["imported"]["jobs"], dead["imported"]["jobs"]) == (1, 1)


def test_pid_that_another_program_has_now_is_not_herdctl(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job(1, status="running", exit_reason=..., finished_at=...)
    with running("something-else") as pid:
        (herdctl.root / "herdctl.pid").write_text(str(pid))

        data = importer.data("herdctl", str(herdctl.project))

    assert (data["imported"]["jobs"], data["skipped"]) == (1, [])


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        ("failed", "timeout", (JobStatus.FAILED, ExitReason.TIMEOUT)),
        ("failed", None, (JobStatus.FAILED, ExitReason.ERROR)),
        ("cancelled", "cancelled", (JobStatus.CANCELLED, ExitReason.CANCELLED)),
        ("completed", "max_turns", (JobStatus.COMPLETED, ExitReason.SUCCESS)),
        ("failed", "max_turns", (JobStatus.FAILED, ExitReason.MAX_TURNS)),
    ],
)
def test_every_ending_keeps_its_status(
    status: str,
    reason: str | None,
    expected: tuple[JobStatus, ExitReason],
    importer: Importer,
    herdctl: HerdctlTree,
) -> None:
    job_id = herdctl.job(1, status=status, exit_reason=reason)

    importer.data("herdctl", str(herdctl.project))

    job = importer.job(job_id)
    assert (job.status, job.exit_reason) == expected


def test_failure_keeps_what_went_wrong_and_what_it_cost(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    error = {"type": "error", "message": "the API said no", "code": "API"}
    job_id = herdctl.job(1, error, status="failed", exit_reason="error", usage=USAGE)

    importer.data("herdctl", str(herdctl.project))

    job = importer.job(job_id)
    assert (job.error, job.error_code, job.cost_microusd) == ("the API said no", "API", 123_457)


def test_unreadable_records_are_listed_and_the_rest_is_imported(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    good = herdctl.job(1)
    jobs = herdctl.root / "jobs"
    for number, text in enumerate(["a: [", "just text", "", "id: job-2026-01-01-other1\n"], 2):
        (jobs / f"{herdctl.job(number)}.yaml").write_text(text)
    herdctl.job(6, agent="../../etc")
    herdctl.job(7, trigger_type="carrier_pigeon")
    herdctl.job(8, started_at="yesterday")
    (jobs / "job-2026-01-09-direct.yaml").mkdir()
    (jobs / "job-2026-01-09-linked.yaml").symlink_to("nowhere")
    os.mkfifo(jobs / "job-2026-01-09-piped1.yaml")
    herdctl.session("coder", session_id=None)
    (herdctl.root / "sessions" / "broken.json").write_text("{")
    (herdctl.root / "state.yaml").write_text("agents: {coder: {schedules: {a/b: {}, ok: {}}}}")

    data = importer.data("herdctl", str(herdctl.project))

    assert [job.id for job in importer.jobs()] == [good]
    assert data["imported"]["schedules"] == 1
    assert sorted(Path(one["file"]).name for one in data["unreadable"]) == sorted(
        [f"job-2026-01-01-{number:06d}.yaml" for number in range(2, 9)]
        + [f"job-2026-01-09-{name}.yaml" for name in ("direct", "linked", "piped1")]
        + ["coder.json", "broken.json", "state.yaml"]
    )
    assert all(one["reason"] for one in data["unreadable"])


def test_corrupt_state_file_costs_only_the_schedules(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.job(1)
    (herdctl.root / "state.yaml").write_bytes(b"agents: {\xff")

    data = importer.data("herdctl", str(herdctl.project))

    assert data["imported"]["jobs"] == 1
    assert [Path(one["file"]).name for one in data["unreadable"]] == ["state.yaml"]


def test_nothing_readable_ends_with_one(importer: Importer, herdctl: HerdctlTree) -> None:
    (herdctl.root / "state.yaml").write_text("{")

    assert importer("herdctl", str(herdctl.project)).code == 1


def test_job_without_output_is_imported_and_the_lack_is_listed(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    job_id = herdctl.job(1)
    (herdctl.root / "jobs" / f"{job_id}.jsonl").unlink()
    (herdctl.root / "jobs" / "job-2026-01-01-orphan.jsonl").write_text("{}\n")

    data = importer.data("herdctl", str(herdctl.project))

    assert importer.job(job_id).summary == "It is up to date."
    assert [Path(one["file"]).name for one in data["unreadable"]] == [f"{job_id}.jsonl"]
    assert [Path(one["source"]).name for one in data["skipped"]] == ["job-2026-01-01-orphan.jsonl"]


def test_id_with_other_content_is_a_conflict_and_left_alone(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    job_id = herdctl.job(1)
    importer.data("herdctl", str(herdctl.project))
    before = importer.job(job_id)
    herdctl.job(1, agent="writer")

    data = importer.data("herdctl", str(herdctl.project))

    assert [one["reason"] for one in data["skipped"]] == [
        f"{job_id} already exists here with different content"
    ]
    assert importer.job(job_id) == before


def test_journal_of_another_job_is_never_overwritten(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    job_id = herdctl.job(1)
    journal = importer.state / "jobs" / f"{job_id}.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("whatever this is, it is somebody's\n")

    data = importer.data("herdctl", str(herdctl.project))

    assert "has a journal here already" in data["skipped"][0]["reason"]
    assert journal.read_text() == "whatever this is, it is somebody's\n"
    assert importer.jobs() == ()


def test_session_pointer_becomes_the_agents_session_with_its_jobs(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    job_id = herdctl.job(1)
    path = herdctl.session()

    importer.data("herdctl", str(herdctl.project))

    session = importer.session()
    assert (session.agent, session.runtime_session_id) == ("coder", "claude-session-1")
    assert (session.mode, session.status) == (SessionMode.PERSISTENT, SessionStatus.PAUSED)
    assert (session.runtime_type, session.working_directory) == ("sdk", CWD)
    assert (session.job_count, session.imported_from) == (15, str(path))
    assert importer.job(job_id).session_id == session.id


def test_agent_that_has_gone_on_here_keeps_its_session(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    herdctl.session()
    here = Session(
        id=SessionId("sess-own00000"),
        agent="coder",
        mode=SessionMode.PERSISTENT,
        status=SessionStatus.PAUSED,
        runtime_type="sdk",
        working_directory=CWD,
        created_at=datetime(2026, 2, 1, tzinfo=UTC),
        last_active_at=datetime(2026, 2, 1, tzinfo=UTC),
        number=1,
    )
    adopt(importer.state, here)

    data = importer.data("herdctl", str(herdctl.project))

    assert [one["reason"] for one in data["skipped"]] == [
        "agent coder has continued session sess-own00000 here"
    ]
    assert [one.id for one in importer.sessions()] == ["sess-own00000"]


def test_schedules_keep_their_last_run_and_disabled_stays_disabled(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    (herdctl.root / "state.yaml").write_text(
        """\
        agents:
          coder:
            status: running
            schedules:
              nightly: {status: running, last_run_at: "2026-01-03T00:00:00Z", last_error: null}
              weekly: {status: disabled, last_run_at: null, next_run_at: "2026-01-04T00:00:00Z"}
          team.writer:
            schedules:
              daily: {status: idle, last_error: it broke}
        """
    )

    importer.data("herdctl", str(herdctl.project))

    reader = importer.reader
    coder, writer = reader.list_schedules("coder"), reader.list_schedules("team.writer")
    reader.close()
    assert [(one.name, one.status) for one in coder] == [
        ("nightly", ScheduleStatus.IDLE),
        ("weekly", ScheduleStatus.DISABLED),
    ]
    assert coder[0].last_run_at == datetime(2026, 1, 3, tzinfo=UTC)
    assert [(one.id, one.last_error) for one in writer] == [("team.writer/daily", "it broke")]


def test_disabled_schedules_stay_disabled_when_the_fleet_runs(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    (herdctl.root / "state.yaml").write_text(
        "agents: {coder: {schedules: {weekly: {status: disabled}, nightly: {status: idle}}}}"
    )
    agent = Agent(
        name="coder",
        runtime=SCRIPTED,
        working_directory=str(importer.state.parent),
        default_prompt="go",
        schedules={
            name: Schedule(name=name, rule=Interval(every=timedelta(days=7)))
            for name in ("weekly", "nightly")
        },
    )
    fleet = Fleet(file="x", agents={"coder": agent})

    data = importer.data("herdctl", str(herdctl.project))

    async def plan() -> None:
        async with open_worker(importer.state, fleet, {}) as context:
            await Scheduler(fleet, context).plan_now()

    anyio.run(plan)
    reader = importer.reader
    found = {one.name: one.status for one in reader.list_schedules("coder")}
    overrides = [(one.id, one.enabled, one.updated_by) for one in reader.list_overrides()]
    reader.close()
    assert data["imported"]["schedules"] == 2
    assert found == {"weekly": ScheduleStatus.DISABLED, "nightly": ScheduleStatus.IDLE}
    assert overrides == [("coder/weekly", False, "herdctl")]


def test_schedule_that_is_here_is_left_alone(importer: Importer, herdctl: HerdctlTree) -> None:
    (herdctl.root / "state.yaml").write_text(
        "agents: {coder: {schedules: {nightly: {status: disabled}}}}"
    )
    adopt(importer.state, ScheduleState(id="coder/nightly", agent="coder", name="nightly"))

    data = importer.data("herdctl", str(herdctl.project))

    reader = importer.reader
    assert [one.status for one in reader.list_schedules("coder")] == [ScheduleStatus.IDLE]
    reader.close()
    assert [one["source"] for one in data["skipped"]] == ["schedule coder/nightly"]


def test_jobs_are_listed_in_the_order_they_began(importer: Importer, herdctl: HerdctlTree) -> None:
    later = herdctl.job(1, started_at="2026-01-01T23:00:00Z")
    earlier = herdctl.job(2, started_at="2026-01-01T01:00:00Z")
    next_day = herdctl.job(150)

    importer.data("herdctl", str(herdctl.project))

    assert [job.id for job in importer.jobs()] == [next_day, later, earlier]


def test_known_secrets_are_masked_everywhere(
    importer: Importer, herdctl: HerdctlTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    herdctl.job(
        1,
        {"type": "assistant", "content": "it is hunter2-hunter2"},
        "broken hunter2-hunter2",
        {"type": "tool_use", "tool_name": "Bash", "input": {"command": "echo hunter2-hunter2"}},
        prompt="use hunter2-hunter2",
        summary="used hunter2-hunter2",
    )

    importer.data("herdctl", str(herdctl.project))

    written = [path for path in importer.state.rglob("*") if path.is_file()]
    assert [path.name for path in written if b"hunter2" in path.read_bytes()] == []


def test_what_the_fleet_tells_its_servers_is_masked_too(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    (importer.state.parent / "nightherd.yaml").write_text("""\
agents:
  - name: coder
    runtime: scripted
    script: [{say: hi}]
    mcp_servers: {shop: {command: shop, env: {SHOP_TOKEN: hunter2-hunter2}}}
""")
    herdctl.job(1, {"type": "assistant", "content": "it is hunter2-hunter2"}, prompt="go")

    importer.data("herdctl", str(herdctl.project))

    written = [path for path in importer.state.rglob("*") if path.is_file()]
    assert [path.name for path in written if b"hunter2" in path.read_bytes()] == []


def test_agents_are_as_their_last_job_left_them(importer: Importer, herdctl: HerdctlTree) -> None:
    herdctl.job(1, status="failed", exit_reason="error")
    last = herdctl.job(2)

    importer.data("herdctl", str(herdctl.project))

    reader = importer.reader
    assert [(one.name, one.status.value, one.last_job) for one in reader.list_agents()] == [
        ("coder", "idle", last)
    ]
    reader.close()


def test_transcript_of_an_imported_session_is_copied_without_a_second_session(
    importer: Importer, herdctl: HerdctlTree, claude: ClaudeTree
) -> None:
    herdctl.session(session_id=uuid(1))
    importer.data("herdctl", str(herdctl.project))
    source = claude.talk(1)

    data = importer.data("claude", str(claude.root))
    again = importer.data("claude", str(claude.root))

    assert importer.session().agent == "coder"
    assert data["imported"]["transcripts"] == again["unchanged"] == 1
    assert importer.copy(source.name).read_bytes() == source.read_bytes()


def test_large_output_goes_to_blobs_and_comes_back_whole(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    result = "line of output\n" * 20_000
    said = {"type": "tool_result", "tool_use_id": "t", "result": result, "success": True}
    job_id = herdctl.job(1, said, "x" * 100_000)

    importer.data("herdctl", str(herdctl.project))

    events = list(open_journals(importer.state).read(JobId(job_id)))
    assert result in [getattr(event, "result", None) for event in events]
    assert "x" * 100_000 in [getattr(event, "content", None) for event in events]
    assert (
        max(map(len, (importer.state / "jobs" / f"{job_id}.jsonl").read_bytes().splitlines()))
        < 4096
    )


def test_imported_job_stands_where_it_happened_and_is_not_the_last(
    importer: Importer, herdctl: HerdctlTree
) -> None:
    async def work() -> None:
        store = SqliteStore(init_state_directory(importer.state).root, FakeClock())
        await store.apply([submit(1), submit(2)])
        await store.close()

    anyio.run(work)
    old = [herdctl.job(number) for number in (8, 7)]
    importer.data("herdctl", str(herdctl.root))

    listed = [job.id for job in importer.jobs()]
    assert listed == [submit(2).job.id, submit(1).job.id, *old]
    assert importer.run("jobs", "show", "@last", "--json").data["id"] == listed[0]
    pages: list[str] = []
    cursor: tuple[str, ...] = ()
    while True:
        page = importer.run("jobs", "list", "--limit", "1", "--json", *cursor)
        pages += [row["id"] for row in page.data]
        if page.document["next_before"] is None:
            break
        cursor = ("--before", str(page.document["next_before"]))
    assert pages == listed
