"""Submitting: the job is recorded whole, once, before anything runs."""

from __future__ import annotations

from itertools import chain, repeat

import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, persistent
from nightherd.errors import InvalidValueError, NightherdError, UsageError
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.sessions.session import SessionMode, SessionStatus
from nightherd.next_step import Action, NextStep


def test_submitted_job_is_on_record_with_everything_it_was_asked() -> None:
    bench = Bench()

    job = bench.submit(
        "Fix it",
        inputs={"issue": "42"},
        trigger_type=TriggerType.WEBHOOK,
        trigger_id="delivery-1",
        priority=3,
    ).job

    assert bench.job(job.id) == job
    assert (job.status, job.agent, job.priority) == (JobStatus.PENDING, "coder", 3)
    assert (job.trigger_type, job.trigger_id) == (TriggerType.WEBHOOK, "delivery-1")
    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert (texts.prompt, texts.inputs) == ("Fix it", {"issue": "42"})
    assert bench.runtime.requests == []


def test_submitting_creates_the_session_the_job_will_run_in() -> None:
    bench = Bench()

    job = bench.submit().job

    assert job.session_id is not None
    session = bench.reader.find_session(job.session_id)
    assert session is not None
    assert (session.status, session.mode) == (SessionStatus.CREATED, SessionMode.FRESH_PER_JOB)
    assert (session.runtime_type, session.working_directory) == ("scripted", "/srv/repo")


def test_same_dedupe_key_is_the_same_job() -> None:
    bench = Bench()

    first = bench.submit("One", dedupe_key="delivery-7")
    second = bench.submit("Two", dedupe_key="delivery-7")

    assert (first.is_new, second.is_new) == (True, False)
    assert second.job == first.job


def test_jobs_of_a_persistent_agent_share_one_session() -> None:
    bench = Bench(agent=persistent())

    assert bench.submit().job.session_id == bench.submit().job.session_id


def test_jobs_of_a_fresh_agent_never_share_a_session() -> None:
    bench = Bench()

    assert bench.submit().job.session_id != bench.submit().job.session_id


def test_changed_working_directory_begins_a_new_session() -> None:
    bench = Bench(agent=persistent())
    first = bench.submit().job.session_id

    bench.agent = replace(bench.agent, working_directory="/srv/elsewhere")

    assert bench.submit().job.session_id != first


def test_taken_ids_are_replaced_by_new_ones() -> None:
    letters = chain("aabbaabbaabb", repeat("c"))
    bench = Bench(random_text=lambda length: next(letters) * length)

    ids = [bench.submit().job.id for _ in range(3)]

    assert len(set(ids)) == 3


def test_random_source_that_repeats_itself_for_ever_is_an_error() -> None:
    bench = Bench(random_text=lambda length: "a" * length)
    bench.submit()

    with pytest.raises(NightherdError, match="no free id"):
        bench.submit()


def test_agents_own_prompt_is_filled_in() -> None:
    job = (bench := Bench()).submit(None, inputs={"issue": "42"}).job

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "Look after owner/project, issue 42"


def test_agents_own_prompt_without_its_input_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match="--input issue="):
        Bench().submit(None)


def test_inputs_are_filled_into_a_prompt_that_was_typed_and_nothing_else_is() -> None:
    bench = Bench()
    text = "Fix ${inputs.issue} in ${HOME}, not ${inputs.other} or ${prompt}"
    job = bench.submit(text, inputs={"issue": "42"}).job

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "Fix 42 in ${HOME}, not ${inputs.other} or ${prompt}"


def test_given_prompt_is_taken_as_it_is() -> None:
    job = (bench := Bench()).submit("Explain ${inputs.issue} and ${prompt}").job

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "Explain ${inputs.issue} and ${prompt}"


@pytest.mark.parametrize("prompt", ["", " \n\t "])
def test_empty_prompt_is_refused_and_nothing_recorded(prompt: str) -> None:
    bench = Bench()

    with pytest.raises(UsageError, match="empty"):
        bench.submit(prompt)

    assert bench.reader.job_ids("job-", 1) == []


def test_agent_without_any_prompt_is_refused_with_the_command_that_works() -> None:
    bench = Bench(agent=replace(AGENT, default_prompt=None))

    with pytest.raises(UsageError, match="no default_prompt") as caught:
        bench.submit(None)

    assert caught.value.next_step == NextStep(Action.RUN_WITH_PROMPT, agent="coder")


def test_secrets_in_a_prompt_are_masked_before_it_is_written() -> None:
    bench = Bench(environment={"API_TOKEN": "s3cret-value"})

    job = bench.submit("Use s3cret-value", inputs={"issue": "s3cret-value"}).job

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "Use [secret:API_TOKEN]"
    assert texts.inputs == {"issue": "[secret:API_TOKEN]"}


def test_a_secret_that_is_a_number_is_masked_in_an_input() -> None:
    bench = Bench(environment={"API_TOKEN": "8372918273"})

    job = bench.submit("Go", inputs={"pin": 8372918273, "all": [8372918273], "count": 3}).job

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.inputs == {
        "pin": "[secret:API_TOKEN]",
        "all": "[[secret:API_TOKEN]]",
        "count": 3,
    }
