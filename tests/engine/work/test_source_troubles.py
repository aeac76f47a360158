"""Sources that cannot be asked: slots are skipped with the reason, and nothing is asked again before its time."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from engine.work.herd_of_issues import HOUR, MINUTE, Herd, source_at, taking
from nightherd.engine.work.context import forgive_refusals
from nightherd.model.schedules.rule import Interval
from nightherd.model.schedules.schedule import SlotOutcome
from nightherd.model.work.issue import IssuePage
from nightherd.model.work.item import WorkStatus
from nightherd.model.work.source import SourceStatus
from nightherd.testing.github_api import GithubApi
from nightherd.triggers.work.github import GithubTracker

QUARTER = 15 * MINUTE


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


@pytest.fixture
def herd(api: GithubApi) -> Herd:
    return Herd(api, [taking(source_at(api))])


def test_used_up_limit_is_left_alone_until_it_resets(api: GithubApi, herd: Herd) -> None:
    api.limit_primary(reset_in_s=100 * 60)
    slot = herd.slot()
    asked = len(api.asked)
    second = herd.slot()

    assert slot.outcome is second.outcome is SlotOutcome.SKIPPED
    assert "GitHub limits requests about acme/app" in (slot.reason or "")
    assert "not asked before" in (second.reason or "")
    assert len(api.asked) == asked
    assert herd.source_state().status is SourceStatus.LIMITED

    api.work()
    assert herd.slot().job_id is not None
    assert herd.source_state().status is SourceStatus.OK


def test_secondary_limit_stops_everything_of_its_source(api: GithubApi, herd: Herd) -> None:
    herd.slot()
    herd.finish(herd.jobs()[0])
    api.limit_secondary(retry_after_s=120)
    herd.settle()
    asked = len(api.asked)
    herd.settle(after=MINUTE)
    assert len(api.asked) == asked

    herd.settle(after=2 * MINUTE)
    assert herd.item().status is WorkStatus.DONE


def test_outage_is_asked_again_after_longer_and_longer_pauses(api: GithubApi, herd: Herd) -> None:
    herd.slot()
    herd.finish(herd.jobs()[0])
    api.fail("", 503, times=None)
    asked = len(api.asked)
    for _ in range(3600):
        herd.settle(after=MINUTE / 60)
    tried = len(api.asked) - asked
    assert 3 <= tried <= 12

    api.work()
    herd.settle(after=HOUR)
    assert herd.item().status is WorkStatus.DONE
    assert len(api.repository.texts(7)) == 1


@pytest.mark.parametrize("token", ["", "ghp_another_one"])
def test_missing_or_wrong_token_is_said_and_not_tried_at_every_slot(
    api: GithubApi, token: str
) -> None:
    herd = Herd(api, [taking(source_at(api))], token=token)
    slot = herd.slot()

    assert "GITHUB_TOKEN" in (slot.reason or "")
    assert "ghp_another_one" not in str((slot, herd.source_state()))
    assert herd.source_state().status is SourceStatus.REFUSED
    assert herd.jobs() == []


def test_source_that_refused_is_asked_again_once_the_fleet_is_loaded_anew(api: GithubApi) -> None:
    herd = Herd(api, [taking(source_at(api))], token="")
    herd.slot()
    better = herd.beside()
    source = better.schedules[0].work
    assert source is not None
    anyio.run(forgive_refusals, [source], better.context)

    assert herd.source_state().blocked_until is None
    assert better.slot().job_id is not None


def test_claim_that_fails_midway_is_given_back_and_taken_later(api: GithubApi, herd: Herd) -> None:
    api.fail("POST /repos/acme/app/issues/7/labels", 502)
    slot = herd.slot()
    assert "502" in (slot.reason or "")
    assert herd.item().status is WorkStatus.SETTLING

    herd.settle(after=MINUTE)
    herd.look()
    assert herd.item().status is WorkStatus.RELEASED
    assert api.repository.labels(7) == ["ready"]
    assert api.repository.refs == {}
    assert herd.slot(after=HOUR - MINUTE).job_id is not None


def test_issue_whose_claim_is_refused_does_not_keep_others_from_their_turn(
    api: GithubApi,
) -> None:
    often = taking(source_at(api), rule=Interval(every=MINUTE))
    herd = Herd(api, [often])
    api.repository.open_issue(8, "The gate too", "ready")
    api.fail("POST /repos/acme/app/issues/7/labels", 422, message="Too many labels")
    slot = herd.slot(after=MINUTE)
    herd.settle()

    assert slot.job_id is not None
    assert herd.item(8).status is WorkStatus.WORKING
    assert herd.item(7).status is WorkStatus.RELEASED
    assert herd.source_state().status is SourceStatus.OK


def test_token_that_may_not_write_blocks_the_source_after_a_few_issues(
    api: GithubApi, herd: Herd
) -> None:
    for number in range(8, 20):
        api.repository.open_issue(number, "Mend", "ready")
    api.fail("/labels", 403, message="Resource not accessible", times=None)
    slot = herd.slot()

    assert "may not label issues of acme/app" in (slot.reason or "")
    assert len(api.lines("/labels")) == 3
    assert herd.source_state().status is SourceStatus.REFUSED


def test_slot_does_not_wait_for_a_tracker_that_never_answers(api: GithubApi) -> None:
    class Silent(GithubTracker):
        async def list_issues(self, label: str, page: int) -> IssuePage:
            await anyio.sleep_forever()
            raise AssertionError(label, page)

    herd = Herd(api, [taking(source_at(api))], patience_s=0.05)
    herd.context.open_tracker = Silent
    slot = herd.slot()

    assert "no issue was found within 0.05s" in (slot.reason or "")


def test_missing_repository_is_said(api: GithubApi, herd: Herd) -> None:
    api.repository.name = "acme/other"
    slot = herd.slot()

    assert "GitHub knows no repository acme/app" in (slot.reason or "")
    assert herd.source_state().status is SourceStatus.MISSING


def test_trouble_of_one_source_is_not_anothers(api: GithubApi) -> None:
    with GithubApi() as broken:
        broken.fail("", 503, times=None)
        other = taking(source_at(broken), name="others")
        herd = Herd(api, [taking(source_at(api)), other])
        herd.slot()

        assert [job.schedule for job in herd.jobs()] == ["issues"]
        assert len(herd.reader.list_work_sources()) == 2
