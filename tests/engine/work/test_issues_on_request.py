"""Issues that a person's request is about: the next one now, and a failed one once more."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.work.herd_of_issues import HOUR, LOCKS, MINUTE, Herd, source_at, taking
from nightherd.engine.operations.requests import Resume, Retry, RunSchedule
from nightherd.engine.work.on_request import give_back, issue_of, settle_job, take_next
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.work.changes import StartWork
from nightherd.model.work.item import WorkStatus
from nightherd.testing.github_api import GithubApi

RUN = RunSchedule(agent="coder", schedule="issues")


def failed(api: GithubApi, *, is_settled: bool = True, **more: Any) -> tuple[Herd, Job]:
    """A herd whose job on issue 7 has failed."""
    herd = Herd(api, [taking(source_at(api, **more))])
    herd.slot()
    job = herd.jobs()[-1]
    herd.finish(job, error="The hammer broke")
    if is_settled:
        herd.settle()
    return herd, job


def test_schedule_that_is_run_by_hand_takes_the_next_issue(api: GithubApi) -> None:
    api.repository.open_issue(8, "The gate too", "ready")
    herd = Herd(api, [taking(source_at(api))])
    first, second = herd.perform(RUN), herd.perform(RUN)

    assert [herd.item(number).job_id for number in (7, 8)] == [first.id, second.id]
    assert first.trigger_type is TriggerType.MANUAL
    texts = herd.reader.find_texts(first.id)
    assert texts is not None
    assert "The fence is broken" in texts.prompt
    assert sorted(api.repository.labels(7)) == ["agent-working", "bug"]
    assert list(api.repository.refs) == [f"{LOCKS}/7", f"{LOCKS}/8"]
    herd.finish(first, answer="I mended the plank.")
    herd.settle()
    assert "I mended the plank." in api.repository.texts(7)[0]


def test_schedule_without_a_ready_issue_says_so(api: GithubApi) -> None:
    api.repository.issues[7]["labels"] = []
    herd = Herd(api, [taking(source_at(api))])
    with pytest.raises(RefusedError) as caught:
        herd.perform(RUN)

    assert "no issue of acme/app has the label 'ready'" in caught.value.message
    assert herd.jobs() == []


def test_issue_that_a_slot_is_taking_is_left_to_it(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.look()
    herd.clock.advance(HOUR)
    herd.look()
    herd.take_in()
    with pytest.raises(RefusedError, match=r"none of 1 ready issue|no issue"):
        herd.perform(RUN)
    herd.decide()

    assert len(herd.jobs()) == 1
    assert herd.item().job_id == herd.jobs()[0].id


def test_what_a_command_lacks_is_not_told_as_trouble_of_the_fleet(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    without = herd.beside(token="", by="worker-bbbbbbbb")
    with pytest.raises(RefusedError, match="GITHUB_TOKEN"):
        without.perform(RUN)

    assert not herd.reader.list_work_sources()
    assert herd.slot().job_id is not None


def test_limit_that_a_command_met_is_kept_by_all(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    api.limit_secondary(retry_after_s=7_200)
    with pytest.raises(RefusedError, match="limits requests"):
        herd.perform(RUN)
    asked = len(api.asked)

    assert "limits requests" in (herd.slot().reason or "")
    with pytest.raises(RefusedError, match="not asked before"):
        herd.perform(RUN)
    assert len(api.asked) == asked


def test_issue_of_a_command_that_was_killed_is_for_the_next_slot(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    source = herd.schedules[0].work
    assert source is not None
    found = anyio.run(take_next, "coder", "issues", source, herd.requests)
    herd.look()
    slot = herd.slot(after=HOUR)

    assert slot.job_id is not None
    assert (herd.item().job_id, herd.item().claim) == (slot.job_id, found.item.claim)


def test_issue_of_a_command_that_was_killed_is_given_back(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    source = herd.schedules[0].work
    assert source is not None
    anyio.run(take_next, "coder", "issues", source, herd.requests)
    herd.settle(after=2 * MINUTE)

    assert sorted(api.repository.labels(7)) == ["bug", "ready"]
    assert api.repository.refs == {}


def test_command_that_was_frozen_gives_nothing_back_that_has_a_job(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    source = herd.schedules[0].work
    assert source is not None
    found = anyio.run(take_next, "coder", "issues", source, herd.requests)
    herd.look()
    herd.slot(after=HOUR)
    (job,) = herd.jobs()
    herd.finish(job, answer="I mended the plank.")
    start = StartWork(id=found.item.id, claim=found.item.claim)
    anyio.run(give_back, start, herd.requests)
    herd.settle()

    assert "I mended the plank." in api.repository.texts(7)[0]
    assert not api.repository.is_open(7)


def test_issue_whose_job_cannot_be_recorded_is_given_back(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    once = replace(RUN, dedupe_key="once")
    first = herd.perform(once)
    api.repository.open_issue(8, "The gate too", "ready")
    again = herd.perform(once)

    assert again.id == first.id
    assert api.repository.labels(8) == ["ready"]
    assert list(api.repository.refs) == [f"{LOCKS}/7"]
    assert herd.item(8).status is WorkStatus.RELEASED


def test_prompt_of_an_issue_fills_nothing_in_when_it_is_run_by_hand_or_again(
    api: GithubApi,
) -> None:
    body = "Ignore that. ${inputs.issue_title} ${repo}"
    api.repository.open_issue(6, "Hello", "ready", body=body)
    herd = Herd(api, [taking(source_at(api, max_attempts=9))])
    first = herd.perform(RUN)
    herd.finish(first, error="The hammer broke")
    herd.settle()
    again = herd.perform(Retry(job_id=first.id))

    for job in (first, again):
        texts = herd.reader.find_texts(job.id)
        assert texts is not None
        assert body in texts.prompt


@pytest.mark.parametrize("attempts", [1, 3])
def test_retry_works_on_the_issue_and_is_commented(api: GithubApi, attempts: int) -> None:
    herd, job = failed(api, max_attempts=attempts, failed="failed")
    again = herd.perform(Retry(job_id=job.id))

    assert (herd.item().status, herd.item().job_id) == (WorkStatus.WORKING, again.id)
    assert "agent-working" in api.repository.labels(7)
    assert "ready" not in api.repository.labels(7)
    assert list(api.repository.refs) == [f"{LOCKS}/7"]
    herd.finish(again, answer="I mended the plank.")
    herd.settle()

    texts = api.repository.texts(7)
    assert len(texts) == 2
    assert "I mended the plank." in texts[1]
    assert again.id in texts[1]
    assert not api.repository.is_open(7)
    assert api.repository.refs == {}


def test_retry_of_a_job_that_was_not_settled_yet_continues_its_claim(api: GithubApi) -> None:
    herd, job = failed(api, is_settled=False)
    claim, asked = herd.item().claim, len(api.asked)
    again = herd.perform(Retry(job_id=job.id))

    assert (herd.item().claim, herd.item().job_id) == (claim, again.id)
    assert herd.item().attempts == 2
    assert len(api.asked) == asked
    herd.settle()
    assert api.repository.texts(7) == []
    herd.finish(again, answer="I mended the plank.")
    herd.settle()
    (text,) = api.repository.texts(7)
    assert "I mended the plank." in text


def test_retry_settles_first_what_the_failed_job_left(api: GithubApi) -> None:
    herd, job = failed(api, is_settled=False)
    api.fail("POST /repos/acme/app/issues/7/comments", 502)
    herd.settle()
    assert herd.item().status is WorkStatus.SETTLING
    with pytest.raises(RefusedError, match=r"not commented yet.*502"):
        herd.perform(Retry(job_id=job.id))
    herd.clock.advance(MINUTE)
    again = herd.perform(Retry(job_id=job.id))

    assert herd.item().job_id == again.id
    assert len(api.repository.texts(7)) == 1


def test_issue_that_another_job_has_is_not_worked_on_twice(api: GithubApi) -> None:
    herd, job = failed(api)
    herd.slot()
    (_, second) = herd.jobs()
    with pytest.raises(RefusedError, match=f"has another job already: {second.id}"):
        herd.perform(Retry(job_id=job.id))

    assert len(herd.jobs()) == 2


def test_issue_that_another_fleet_has_is_not_worked_on_twice(api: GithubApi) -> None:
    herd, job = failed(api)
    herd.other_fleet().slot()
    with pytest.raises(RefusedError, match="stable has it"):
        herd.perform(Retry(job_id=job.id))

    assert len(herd.jobs()) == 1


def test_the_same_retry_twice_is_one_job(api: GithubApi) -> None:
    herd, job = failed(api)
    retry = Retry(job_id=job.id, dedupe_key="once")
    again = herd.perform(retry)
    assert herd.perform(retry).id == again.id
    herd.finish(again)
    herd.settle()

    assert herd.perform(retry).id == again.id
    assert len(herd.jobs()) == 2
    assert api.repository.refs == {}


def test_retry_without_an_answer_of_github_is_refused_and_leaves_nothing(api: GithubApi) -> None:
    herd, job = failed(api)
    api.fail("POST /repos/acme/app/git/refs", 502)
    with pytest.raises(RefusedError, match=r"acme/app#7 cannot be claimed: .*502"):
        herd.perform(Retry(job_id=job.id))
    herd.settle(after=MINUTE)

    assert len(herd.jobs()) == 1
    assert api.repository.refs == {}
    assert sorted(api.repository.labels(7)) == ["bug", "ready"]


def test_job_that_succeeded_is_done_once_more_on_its_closed_issue(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.slot()
    (job,) = herd.jobs()
    herd.finish(job, answer="I mended the plank.")
    herd.settle()
    again = herd.perform(Retry(job_id=job.id))
    herd.finish(again, answer="I mended it better.")
    herd.settle()

    assert "I mended it better." in api.repository.texts(7)[1]
    assert not api.repository.is_open(7)
    assert api.repository.labels(7) == ["bug"]


def test_failed_job_that_is_resumed_has_its_issue(api: GithubApi) -> None:
    herd, job = failed(api)
    resumed = herd.perform(Resume(job_id=job.id))

    assert resumed.resumed_from == job.id
    assert herd.item().job_id == resumed.id


def test_question_about_a_job_that_succeeded_is_no_work_on_its_issue(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.slot()
    (job,) = herd.jobs()
    herd.finish(job)
    herd.settle()
    asked = len(api.asked)
    herd.perform(Resume(job_id=job.id, prompt="What did you do?"))

    assert herd.item().job_id == job.id
    assert len(api.asked) == asked


def test_issue_of_an_earlier_attempt_is_known(api: GithubApi) -> None:
    herd, job = failed(api)
    herd.perform(Retry(job_id=job.id))
    found = issue_of(job, herd.requests)

    assert found is not None
    assert found.id == herd.item().id


def test_process_that_ran_a_job_itself_settles_its_issue(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    job = herd.perform(RUN)
    herd.finish(job, answer="I mended the plank.")
    ended = herd.bench.job(job.id)
    anyio.run(settle_job, ended, herd.requests, herd.told.append)

    assert "I mended the plank." in api.repository.texts(7)[0]
    assert herd.item().status is WorkStatus.DONE
    assert herd.told == []


def test_process_that_cannot_settle_an_issue_says_who_does(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    job = herd.perform(RUN)
    herd.finish(job)
    ended = herd.bench.job(job.id)
    api.fail("comments", 502, times=None)
    anyio.run(settle_job, ended, herd.requests, herd.told.append)

    (told,) = herd.told
    assert told.startswith("issue ")
    assert "acme/app#7 is not settled yet: GitHub could not read comments" in told
    assert told.endswith("; a daemon or worker does it")
    api.work()
    herd.settle(after=MINUTE)
    assert herd.item().status is WorkStatus.DONE


def test_job_without_an_issue_asks_nobody(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    job = herd.bench.submit().job
    herd.finish(job, error="no")
    herd.perform(Retry(job_id=job.id))

    assert api.asked == []


def test_request_where_no_tracker_can_be_asked_is_refused(api: GithubApi) -> None:
    herd, job = failed(api)
    herd.requests = replace(herd.requests, open_tracker=None)
    for request in (RUN, Retry(job_id=job.id)):
        with pytest.raises(NightherdError, match="no tracker of issues can be asked here"):
            herd.perform(request)
