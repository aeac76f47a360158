"""What a tracker is told when a job has ended, once, whatever fails on the way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.work.herd_of_issues import HOUR, MINUTE, Herd, source_at, taking, working
from nightherd.model.work.changes import ReleaseWork
from nightherd.model.work.item import WorkOutcome, WorkStatus
from nightherd.model.work.source import OnSuccess, SourceStatus
from nightherd.testing.github_api import GithubApi


def test_success_is_commented_and_closes_the_issue(api: GithubApi) -> None:
    herd, job = working(api, done="done")
    herd.finish(job, answer="I mended the plank.")
    herd.settle()

    (text,) = api.repository.texts(7)
    assert "I mended the plank." in text
    assert job.id in text
    assert sorted(api.repository.labels(7)) == ["bug", "done"]
    assert not api.repository.is_open(7)
    assert api.repository.issues[7]["state_reason"] == "completed"
    assert api.repository.refs == {}
    item = herd.item()
    assert (item.status, item.outcome) == (WorkStatus.DONE, WorkOutcome.SUCCESS)
    assert item.comment_id is not None


def test_issue_of_a_successful_job_may_stay_open(api: GithubApi) -> None:
    herd, job = working(api, on_success=OnSuccess.KEEP)
    herd.finish(job)
    herd.settle()

    assert api.repository.is_open(7)
    assert api.repository.labels(7) == ["bug"]


def test_failed_issue_is_ready_again_until_its_attempts_are_used_up(api: GithubApi) -> None:
    herd, job = working(api, max_attempts=2, failed="failed")
    herd.finish(job, error="The hammer broke")
    herd.settle()

    assert sorted(api.repository.labels(7)) == ["bug", "ready"]
    assert herd.item().status is WorkStatus.RELEASED
    assert "Attempt 1 of 2. The issue is ready again." in api.repository.texts(7)[0]
    assert "The hammer broke" in api.repository.texts(7)[0]

    herd.slot()
    herd.finish(herd.jobs()[-1], error="The nail too")
    herd.settle()

    assert sorted(api.repository.labels(7)) == ["bug", "failed"]
    assert api.repository.is_open(7)
    assert herd.item().status is WorkStatus.FAILED
    assert "Attempt 2 of 2. It is not tried again." in api.repository.texts(7)[1]
    assert herd.slot().job_id is None
    assert len(herd.jobs()) == 2


def test_failed_issue_waits_before_it_is_tried_again(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job, error="The hammer broke")
    herd.settle()

    not_before = herd.item().not_before
    assert not_before is not None
    assert not_before - herd.clock.now() == timedelta(minutes=1)


def test_failed_issue_keeps_its_label_where_it_is_not_cleaned_up(api: GithubApi) -> None:
    herd, job = working(api, cleanup_on_failure=False)
    herd.finish(job, error="The hammer broke")
    herd.settle()

    assert sorted(api.repository.labels(7)) == ["agent-working", "bug"]
    assert herd.item().status is WorkStatus.FAILED
    assert api.repository.refs == {}


def test_issue_of_a_cancelled_job_is_left_to_people(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job, cancelled=True)
    herd.settle()

    assert api.repository.labels(7) == ["bug"]
    assert "cancelled" in api.repository.texts(7)[0]
    assert herd.item().status is WorkStatus.FAILED


def test_person_who_makes_a_given_up_issue_ready_gives_it_all_attempts_again(
    api: GithubApi,
) -> None:
    herd, job = working(api, max_attempts=1)
    herd.finish(job, error="The hammer broke")
    herd.settle()
    api.repository.issues[7]["labels"].append("ready")
    herd.slot()

    assert len(herd.jobs()) == 2
    assert herd.item().attempts == 1


def test_a_job_that_has_not_ended_keeps_its_issue(api: GithubApi) -> None:
    herd, _ = working(api)
    herd.settle(after=10 * HOUR)

    assert herd.item().status is WorkStatus.WORKING
    assert api.repository.texts(7) == []


def test_comment_whose_answer_was_lost_is_not_written_twice(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.fail("POST /repos/acme/app/issues/7/comments", None, is_done=True)
    herd.settle()
    assert herd.item().status is WorkStatus.SETTLING
    herd.settle(after=MINUTE)

    assert len(api.repository.texts(7)) == 1
    assert herd.item().status is WorkStatus.DONE


@pytest.mark.parametrize(
    "step",
    ["GET /repos/acme/app/issues/7/comments", "POST /repos/acme/app/issues/7/comments",
     "DELETE /repos/acme/app/issues/7/labels/agent-working", "PATCH /repos/acme/app/issues/7", "DELETE /repos/acme/app/git"],
)  # fmt: skip
@pytest.mark.parametrize("is_done", [False, True])
def test_step_that_failed_is_tried_again_and_the_others_are_not(
    api: GithubApi, step: str, is_done: bool
) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.fail(step, 502, is_done=is_done)
    herd.settle()
    assert herd.item().status is WorkStatus.SETTLING
    assert herd.item().last_error is not None
    herd.settle()
    tried = len(api.lines(step))
    herd.settle(after=MINUTE)

    assert tried == 1, "it was not asked again at once"
    assert herd.item().status is WorkStatus.DONE
    assert len(api.repository.texts(7)) == 1
    assert not api.repository.is_open(7)
    assert api.repository.labels(7) == ["bug"]
    assert api.repository.refs == {}
    assert herd.source_state().status is SourceStatus.OK


def test_issue_that_takes_no_comment_is_settled_without_one(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.repository.issues[7]["locked"] = True
    herd.settle()

    assert api.repository.texts(7) == []
    assert herd.item().status is WorkStatus.DONE
    assert not api.repository.is_open(7)


def test_issue_that_takes_no_comment_keeps_no_other_from_its_turn(api: GithubApi) -> None:
    herd, job = working(api)
    api.repository.open_issue(8, "The gate too", "ready")
    herd.finish(job)
    api.fail("POST /repos/acme/app/issues/7/comments", 403, message="Locked", times=None)
    herd.settle()

    assert herd.item(7).status is WorkStatus.SETTLING
    assert herd.source_state().status is SourceStatus.OK
    assert herd.slot().job_id is not None
    assert herd.item(8).status is WorkStatus.WORKING


def test_comment_of_somebody_else_is_not_taken_for_ours(api: GithubApi) -> None:
    herd, job = working(api)
    (sha,) = api.repository.refs.values()
    body = {"body": f"<!-- nightherd:{herd.item().claim} --> {api.repository.tags[sha]}"}
    api.repository.answer("POST", "/repos/acme/app/issues/7/comments", {}, body)
    herd.finish(job)
    herd.settle()

    assert len(api.repository.texts(7)) == 2
    assert "Mended." in api.repository.texts(7)[1]


def test_issue_that_was_deleted_meanwhile_is_settled(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    del api.repository.issues[7], api.repository.comments[7]
    herd.settle()

    assert herd.item().status is WorkStatus.DONE


def test_failed_issue_that_was_closed_meanwhile_is_not_made_ready(api: GithubApi) -> None:
    herd, job = working(api)
    api.repository.issues[7]["state"] = "closed"
    herd.finish(job, error="The hammer broke")
    herd.settle()

    assert api.repository.labels(7) == ["bug"]


def test_secrets_in_an_answer_are_masked(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job, answer=f"The token is {api.token}")
    herd.settle()

    assert api.token not in api.repository.texts(7)[0]
    assert "[secret:GITHUB_TOKEN]" in api.repository.texts(7)[0]


def test_long_answer_fits_into_a_comment(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job, answer="word " * 40_000)
    herd.settle()

    assert len(api.repository.texts(7)[0]) < 65_536
    assert herd.item().status is WorkStatus.DONE


def test_person_releases_an_issue_that_is_held(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.look()
    herd.clock.advance(HOUR)
    herd.look()
    herd.take_in()
    herd.apply(ReleaseWork(id=herd.item().id, at=herd.clock.now()))
    herd.settle()

    assert sorted(api.repository.labels(7)) == ["bug", "ready"]
    assert api.repository.texts(7) == []
    assert api.repository.refs == {}


def test_issue_is_settled_as_it_was_claimed(api: GithubApi) -> None:
    herd, job = working(api)
    other = herd.beside(schedules=[taking(source_at(api, in_progress="busy", lock=False))])
    herd.finish(job)
    other.settle()

    assert api.repository.labels(7) == ["bug"]
    assert api.repository.refs == {}
