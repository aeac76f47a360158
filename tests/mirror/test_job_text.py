"""A job's file, written line by line, is what the general writer of YAML would make of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.files.yaml_dump import BlockText, dump_yaml
from nightherd.mirror.job_file import job_text, worked_seconds
from nightherd.model.jobs.job import (
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    SuspendReason,
    TriggerType,
)
from nightherd.testing.state_values import BEGINNING, job_id

TEXT = st.text(
    st.one_of(
        st.sampled_from(list("ab:#-?|>&*!%@`'\",[]{}0159.~ \t\n\r\x85\u2028")), st.characters()
    ),
    max_size=30,
)
WORDS = st.one_of(TEXT, st.sampled_from(["yes", "null", "1e3", "suspended", "completed", ""]))
INSTANTS = st.datetimes(
    min_value=datetime(1000, 1, 1),  # noqa: DTZ001 (the strategy adds the zone)
    timezones=st.just(UTC),
)
COUNTS = st.integers(min_value=0, max_value=2**53)
JOBS = st.builds(
    Job,
    id=st.just(job_id(1)),
    agent=WORDS,
    trigger_type=st.sampled_from(TriggerType),
    status=st.sampled_from(JobStatus),
    created_at=INSTANTS,
    session_id=st.none() | WORDS,
    runtime_session_id=st.none() | WORDS,
    schedule=st.none() | WORDS,
    exit_reason=st.none() | st.sampled_from(ExitReason),
    suspend_reason=st.none() | st.sampled_from(SuspendReason),
    not_before=st.none() | INSTANTS,
    forked_from=st.none() | WORDS,
    started_at=st.none() | INSTANTS,
    finished_at=st.none() | INSTANTS,
    turns=COUNTS,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cache_creation_input_tokens=COUNTS,
    cache_read_input_tokens=COUNTS,
    cost_microusd=COUNTS,
    summary=st.none() | TEXT,
    error=st.none() | TEXT,
    error_code=st.none() | WORDS,
)
TEXTS = st.builds(JobTexts, job_id=st.just(job_id(1)), prompt=TEXT, summary=st.none() | TEXT)


def document(job: Job, texts: JobTexts | None) -> dict[str, Any]:
    """The file's fields in their order."""
    is_suspended = job.status is JobStatus.SUSPENDED
    is_ended = job.status in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)
    prompt = texts.prompt if texts is not None else None
    fields: dict[str, Any] = {
        "id": job.id,
        "agent": job.agent,
        "schedule": job.schedule,
        "trigger_type": job.trigger_type,
        "status": "running" if is_suspended else job.status,
        "exit_reason": job.exit_reason,
        "session_id": job.runtime_session_id or (job.session_id if is_ended else None),
        "forked_from": job.forked_from,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "duration_seconds": worked_seconds(job, ()),
        "prompt": BlockText(prompt) if prompt is not None else None,
        "summary": (texts.summary if texts is not None else None) or job.summary,
        "output_file": f"{job.id}.jsonl",
    }
    if job.workflow_run_id is not None and job.node_id is not None:
        fields["workflow_run_id"] = job.workflow_run_id
        fields["phase"] = job.node_id.removeprefix(f"{job.workflow_run_id}/")
    if is_suspended:
        fields["suspended"] = job.suspend_reason or "unknown"
    if is_suspended and job.not_before:
        fields["resumes_at"] = job.not_before
    return {
        **fields,
        "turns": job.turns,
        "cost_usd": job.cost_microusd / 1_000_000,
        "usage": {
            "input_tokens": job.input_tokens,
            "output_tokens": job.output_tokens,
            "cache_creation_input_tokens": job.cache_creation_input_tokens,
            "cache_read_input_tokens": job.cache_read_input_tokens,
        },
        "error": None if job.error is None else {"code": job.error_code, "message": job.error},
    }


PLAIN = Job(
    id=job_id(1),
    agent="grazer",
    trigger_type=TriggerType.MANUAL,
    status=JobStatus.SUSPENDED,
    created_at=BEGINNING,
)


@settings(max_examples=200, deadline=None)
@given(JOBS, st.none() | TEXTS)
@example(PLAIN, None)
@example(replace(PLAIN, workflow_run_id="run-1", node_id="run-1/fix[2]/review#3"), None)
@example(PLAIN, JobTexts(job_id=job_id(1), prompt="one\n two\n\n", summary="a\nb"))
def test_every_job_reads_as_the_general_writer_has_it(job: Job, texts: JobTexts | None) -> None:
    assert job_text(job, texts) == dump_yaml(document(job, texts))


def test_a_clock_that_was_set_back_gives_no_time_back() -> None:
    ended = replace(PLAIN, started_at=BEGINNING, finished_at=BEGINNING - timedelta(seconds=2.5))

    assert worked_seconds(ended, ()) == 0
