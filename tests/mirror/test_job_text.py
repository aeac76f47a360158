"""A job's file, written line by line, is what the general writer of YAML would make of it."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nightherd.files.yaml_dump import BlockText, dump_yaml
from nightherd.mirror.images import JobImage, TextsImage
from nightherd.mirror.job_file import job_text, seconds_between
from nightherd.testing.state_values import job_id

TEXT = st.text(
    st.one_of(
        st.sampled_from(list("ab:#-?|>&*!%@`'\",[]{}0159.~ \t\n\r\x85\u2028")), st.characters()
    ),
    max_size=30,
)
WORDS = st.one_of(TEXT, st.sampled_from(["yes", "null", "1e3", "suspended", "completed", ""]))
INSTANTS = st.datetimes().map(lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0"))
COUNTS = st.integers(min_value=0, max_value=2**53)
JOBS = st.builds(
    JobImage,
    id=st.just(job_id(1)),
    agent=WORDS,
    trigger_type=WORDS,
    status=WORDS,
    created_at=INSTANTS,
    session_id=st.none() | WORDS,
    runtime_session_id=st.none() | WORDS,
    schedule=st.none() | WORDS,
    exit_reason=st.none() | WORDS,
    suspend_reason=st.none() | WORDS,
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
TEXTS = st.builds(
    TextsImage, job_id=st.just(job_id(1)), prompt=st.none() | TEXT, summary=st.none() | TEXT
)


def document(job: JobImage, texts: TextsImage | None) -> dict[str, Any]:
    """The file's fields in their order."""
    is_suspended = job.status == "suspended"
    is_ended = job.status in ("completed", "failed", "cancelled")
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
        "duration_seconds": seconds_between(job.started_at, job.finished_at),
        "prompt": BlockText(prompt) if prompt is not None else None,
        "summary": (texts.summary if texts is not None else None) or job.summary,
        "output_file": f"{job.id}.jsonl",
    }
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


PLAIN = JobImage(
    id=job_id(1), agent="grazer", trigger_type="manual", status="suspended", created_at=""
)


@settings(max_examples=200, deadline=None)
@given(JOBS, st.none() | TEXTS)
@example(PLAIN, None)
@example(PLAIN, TextsImage(job_id=job_id(1), prompt="one\n two\n\n", summary="a\nb"))
def test_every_job_reads_as_the_general_writer_has_it(
    job: JobImage, texts: TextsImage | None
) -> None:
    assert job_text(job, texts) == dump_yaml(document(job, texts))


def test_a_clock_that_was_set_back_gives_no_time_back() -> None:
    assert seconds_between("2026-01-01T00:00:05.000000Z", "2026-01-01T00:00:02.500000Z") == 0
