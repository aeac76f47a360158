"""Clocks that are set, people who change labels in between, and rights that are lacking or lost."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.work.herd_of_issues import HOUR, MINUTE, SECOND, Herd, source_at, taking, working
from nightherd.engine.work.claim import find_issue
from nightherd.engine.work.comments import comment_text
from nightherd.engine.work.context import end_claim, note_failure
from nightherd.engine.work.found import FoundIssue
from nightherd.errors import WorkSourceError
from nightherd.model.jobs.job import JobTexts
from nightherd.model.schedules.rule import Interval
from nightherd.model.work.changes import EndWork, ReleaseWork, ReserveWork, StepWork
from nightherd.model.work.item import WorkItem, WorkOutcome, WorkStatus, work_id
from nightherd.model.work.source import SourceStatus
from nightherd.ports import no_probe
from nightherd.testing.github_api import GithubApi

YEAR = timedelta(days=365)


def held(herd: Herd) -> None:
    """An issue is held for a slot that was not decided."""
    herd.look()
    herd.clock.advance(HOUR)
    herd.look()
    herd.take_in()
    assert herd.item().status is WorkStatus.HELD


def test_limit_of_a_clock_that_was_wrong_ends_when_it_is_set_right(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.look()
    herd.clock.advance(YEAR)
    api.limit_secondary(retry_after_s=3_600)
    error = WorkSourceError("GitHub limits requests", kind="limited", wait_s=3_600)
    source = herd.schedules[0].work
    assert source is not None
    anyio.run(note_failure, source.id, error, herd.context)
    api.work()
    herd.clock.advance(-YEAR)

    assert herd.slot().job_id is not None


def test_claim_of_a_clock_that_was_wrong_is_settled_when_it_is_set_right(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.clock.advance(YEAR)
    held(herd)
    herd.clock.advance(-YEAR)
    later = herd.beside(by="worker-bbbbbbbb")
    later.settle()

    assert herd.item().status is WorkStatus.RELEASED
    assert api.repository.refs == {}
    assert herd.slot(after=2 * HOUR).job_id is not None


def test_comment_is_looked_for_with_a_clock_that_was_wrong_at_the_claim(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    herd.clock.advance(20 * YEAR)
    herd.slot()
    (job,) = herd.jobs()
    herd.clock.advance(-20 * YEAR)
    herd.finish(job)
    api.fail("POST /repos/acme/app/issues/7/comments", None, is_done=True)
    herd.settle()
    herd.settle(after=MINUTE)

    assert len(api.repository.texts(7)) == 1
    assert herd.item().status is WorkStatus.DONE


def test_clock_that_is_set_back_a_little_takes_no_issue_out_of_a_hand(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    held(herd)
    now = herd.clock.now() - 30 * SECOND
    other = StepWork(
        id=herd.item().id, claim=herd.item().claim, by="other", at=now, until=now + MINUTE
    )
    (answer,) = anyio.run(herd.store.apply, [other])

    assert "writes about" in str(answer)


def test_limit_that_stays_after_its_time_is_asked_less_and_less(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.limit_primary(reset_in_s=-3_600)
    asked = len(api.asked)
    for _ in range(3_600):
        herd.settle(after=SECOND)

    assert 3 <= len(api.asked) - asked <= 15
    api.work()
    herd.settle(after=HOUR)
    assert herd.item().status is WorkStatus.DONE


def test_token_that_was_revoked_meanwhile_is_said_and_nothing_is_lost(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    token, api.token = api.token, "another"
    herd.settle()

    assert herd.source_state().status is SourceStatus.REFUSED
    assert "does not accept the token" in (herd.source_state().error or "")
    asked = len(api.asked)
    herd.settle(after=MINUTE)
    assert len(api.asked) == asked
    api.token = token
    herd.settle(after=5 * MINUTE)
    assert len(api.repository.texts(7)) == 1
    assert herd.item().status is WorkStatus.DONE


def test_repository_that_the_token_may_not_see_for_a_while_loses_no_result(api: GithubApi) -> None:
    herd, job = working(api, done="done")
    herd.finish(job)
    api.fail("", 404, message="Not Found", times=None)
    herd.settle()
    herd.settle(after=HOUR)
    assert herd.item().status is WorkStatus.SETTLING
    api.work()
    herd.settle(after=HOUR)

    assert len(api.repository.texts(7)) == 1
    assert sorted(api.repository.labels(7)) == ["bug", "done"]
    assert api.repository.refs == {}


def test_token_that_may_make_no_refs_leaves_nothing_to_settle(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    for number in range(8, 20):
        api.repository.open_issue(number, "Mend", "ready")
    api.fail("/git/", 403, message="Resource not accessible by personal access token", times=None)
    for _ in range(5):
        herd.slot()
        herd.settle()

    assert "may not create tags" in (herd.slots()[-1].reason or "")
    assert herd.reader.open_work_items() == []
    assert api.repository.labels(7) == ["ready", "bug"]
    api.work()
    assert herd.slot().job_id is not None


def test_token_that_may_not_comment_any_more_loses_no_result(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.fail("POST /repos/acme/app/issues/7/comments", 403, message="Not accessible", times=None)
    for _ in range(20):
        herd.settle(after=10 * MINUTE)
    assert api.repository.is_open(7)
    api.work()
    herd.settle(after=10 * MINUTE)

    assert len(api.repository.texts(7)) == 1
    assert herd.item().status is WorkStatus.DONE


def test_issue_that_cannot_be_settled_is_let_go_by_a_person(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.fail("comments", 403, message="Repository was archived", times=None)
    herd.settle()
    herd.apply(ReleaseWork(id=herd.item().id, at=herd.clock.now(), is_forced=True))
    asked = len(api.asked)
    herd.settle(after=HOUR)

    assert herd.item().status is WorkStatus.RELEASED
    assert len(api.asked) == asked


def test_person_who_takes_the_labels_off_in_mid_claim_keeps_the_issue(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])

    class EndedError(Exception):
        pass

    def end(point: str) -> None:
        if point == "work.noted":
            raise EndedError

    herd.context.probe = end
    herd.slot()
    assert herd.item().is_labelled
    api.repository.issues[7]["labels"] = ["bug"]
    later = herd.beside(by="worker-bbbbbbbb")
    slot = later.slot()
    later.settle()

    assert slot.job_id is None
    assert api.repository.labels(7) == ["bug"]
    assert herd.item().status is WorkStatus.RELEASED
    assert api.repository.refs == {}


def test_process_that_was_frozen_in_mid_claim_leaves_no_label(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])
    other = herd.beside(by="worker-bbbbbbbb")

    source = herd.schedules[0].work
    assert source is not None

    def meanwhile() -> None:
        """Another process continues the claim, and gives the issue back."""
        herd.clock.advance(2 * MINUTE)
        found = anyio.run(find_issue, "coder", "issues", source, other.context)
        assert isinstance(found, FoundIssue)
        anyio.run(end_claim, found.item, WorkOutcome.UNUSED, other.context)
        other.settle()

    def freeze(point: str) -> None:
        if point == "work.noted":
            herd.context.probe = no_probe
            thread = threading.Thread(target=meanwhile)
            thread.start()
            thread.join()

    herd.context.probe = freeze
    herd.look()
    herd.clock.advance(HOUR)
    herd.look()
    herd.take_in()

    assert sorted(api.repository.labels(7)) == ["bug", "ready"]
    assert api.repository.refs == {}
    assert herd.item().status is WorkStatus.RELEASED


def test_issue_that_is_deleted_while_it_is_labelled_gets_no_job(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))])

    def delete(point: str) -> None:
        if point == "work.noted":
            del api.repository.issues[7]

    herd.context.probe = delete
    slot = herd.slot()
    herd.settle()

    assert "it is gone" in (slot.reason or "")
    assert api.repository.refs == {}
    assert herd.reader.open_work_items() == []


def test_issue_that_was_moved_meanwhile_is_settled(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.repository.transfer(7)
    herd.settle()

    assert herd.item().status is WorkStatus.DONE
    assert api.repository.refs == {}


def test_repository_that_was_renamed_meanwhile_is_told(api: GithubApi) -> None:
    herd, job = working(api)
    herd.finish(job)
    api.repository.rename("acme/barn")
    herd.settle()

    assert len(api.repository.texts(7)) == 1
    assert not api.repository.is_open(7)
    assert api.repository.refs == {}


def test_issue_of_a_source_that_was_declared_otherwise_meanwhile_gets_no_job(
    api: GithubApi,
) -> None:
    with GithubApi("acme/other") as other:
        other.repository.open_issue(9, "Elsewhere", "ready")
        herd = Herd(api, [taking(source_at(api))])
        held(herd)
        changed = taking(source_at(other, repo="acme/other"), rule=Interval(every=HOUR))
        fleet = replace(
            herd.fleet,
            agents={"coder": replace(herd.bench.agent, schedules={"issues": changed})},
        )
        herd.scheduler.adopt(fleet)
        for _ in range(3):
            herd.decide()
        herd.settle(after=MINUTE)

        (job,) = herd.jobs()
        texts = herd.reader.find_texts(job.id)
        assert texts is not None
        assert texts.inputs["issue_number"] == 9
        assert api.repository.labels(7) == ["bug", "ready"]
        assert api.repository.refs == {}


def test_row_that_cannot_be_read_keeps_no_other_issue_from_its_turn(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api), max_overlap=9)])
    api.repository.open_issue(8, "The gate too", "ready")
    herd.slot()
    herd.slot()
    for job in herd.jobs():
        herd.finish(job)
    first = herd.item(7)
    broken = replace(
        first,
        id=work_id(first.source, 1),
        issue=1,
        status=WorkStatus.RESERVED,
        job_id=None,
        reserved_at=first.reserved_at - HOUR,
        terms={**first.terms, "on_success": "burn"},
    )
    unused = EndWork(
        id=broken.id, claim=broken.claim, at=herd.clock.now(), outcome=WorkOutcome.UNUSED
    )
    herd.apply(ReserveWork(item=broken), unused)
    with pytest.raises(Exception, match="burn"):
        herd.settle()

    assert herd.item(8).status is WorkStatus.DONE


def test_every_way_to_say_a_repository_is_looked_at_for_left_issues(api: GithubApi) -> None:
    api.repository.issues[7]["labels"] = ["agent-working"]
    first = taking(source_at(api, cleanup_in_progress=True))
    second = taking(source_at(api, in_progress="busy"), name="others")
    herd = Herd(api, [first, second])

    async def rounds() -> None:
        herd.settler.leave()
        await herd.settler.run()

    anyio.run(rounds)
    assert api.repository.labels(7) == ["ready"]


def comment(api: GithubApi, answer: str, mask: Any) -> str:
    herd, job = working(api)
    item: WorkItem = replace(herd.item(), outcome=WorkOutcome.SUCCESS)
    source = herd.schedules[0].work
    assert source is not None
    texts = JobTexts(job_id=job.id, prompt="x", output_text=answer)
    text = comment_text(item, source, job, texts, mask)
    assert text is not None
    return text


def test_secret_is_masked_before_an_answer_is_cut(api: GithubApi) -> None:
    answer = "x" * 59_997 + "topsecret" + "y" * 100

    text = comment(api, answer, lambda one: one.replace("topsecret", "[secret:TOKEN]"))
    assert "tops" not in text


def test_comment_that_grows_with_masks_still_fits(api: GithubApi) -> None:
    text = comment(api, "s3 " * 20_000, lambda one: one.replace("s3", "[secret:A_LONG_NAME]"))

    assert len(text) < 65_536


def test_comment_has_no_characters_that_no_tracker_takes(api: GithubApi) -> None:
    text = comment(api, "Half \ud83d and \0 nothing", str)

    assert "\0" not in text
    text.encode()
