"""Several processes and several fleets at one repository: each issue is worked on once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import anyio
import pytest

from engine.work.herd_of_issues import HOUR, LOCKS, MINUTE, Herd, source_at, taking
from nightherd.engine.work.claim import find_issue
from nightherd.engine.work.found import BusyIssue, FoundIssue, NoIssue
from nightherd.engine.work.left import release_left
from nightherd.model.schedules.rule import Interval
from nightherd.model.work.item import WorkStatus
from nightherd.model.work.source import WorkSource
from nightherd.testing.github_api import GithubApi


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


@pytest.fixture
def source(api: GithubApi) -> WorkSource:
    return source_at(api)


def test_processes_of_one_fleet_take_one_issue_for_one_slot(
    api: GithubApi, source: WorkSource
) -> None:
    api.repository.open_issue(8, "The gate too", "ready")
    herd = Herd(api, [taking(source)])
    crowd = [herd, *(herd.beside(by=f"worker-{number}") for number in range(4))]
    for one in crowd:
        one.look()
    herd.clock.advance(HOUR)

    async def all_at_once() -> None:
        for one in crowd:
            await one.scheduler.look()
        answered = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for one in crowd:
                one.intake.wake_with(answered.set)
                tasks.start_soon(one.intake.look, tasks)
            await answered.wait()
            tasks.cancel_scope.cancel()
        herd.clock.advance(timedelta(seconds=1))
        for one in crowd:
            await one.scheduler.look()

    anyio.run(all_at_once)

    assert len(herd.jobs()) == len(herd.slots()) == 1
    assert api.repository.labels(8) == ["ready"]
    assert list(api.repository.refs) == [f"{LOCKS}/7"]


def test_process_that_comes_late_for_a_slot_takes_nothing(
    api: GithubApi, source: WorkSource
) -> None:
    api.repository.open_issue(8, "The gate too", "ready")
    herd = Herd(api, [taking(source, max_overlap=5)])
    late = herd.beside(by="worker-bbbbbbbb")
    herd.look()
    late.look()
    herd.clock.advance(HOUR)
    late.look()
    herd.decide()
    late.take_in()

    assert len(herd.jobs()) == 1
    assert api.repository.labels(8) == ["ready"]
    assert [item.issue for item in herd.reader.list_work_items(9)] == [7]


def test_issue_that_lost_its_slot_is_for_the_next_one_or_given_back(
    api: GithubApi, source: WorkSource
) -> None:
    herd = Herd(api, [taking(source, rule=Interval(every=timedelta(seconds=5)))])
    other = herd.beside(by="worker-bbbbbbbb")
    herd.look()
    other.look()
    herd.clock.advance(timedelta(seconds=5))
    herd.look()
    herd.take_in()
    herd.clock.advance(timedelta(seconds=5))
    other.look()  # has skipped the slot as missed
    assert herd.item().status is WorkStatus.HELD
    herd.look()
    herd.clock.advance(timedelta(seconds=1))
    herd.look()

    assert herd.item().status is WorkStatus.WORKING
    assert len(herd.jobs()) == 1


def test_of_two_fleets_one_has_the_issue(api: GithubApi, source: WorkSource) -> None:
    barn = Herd(api, [taking(source)])
    stable = barn.other_fleet()
    # Both have seen the list before either writes.
    stable.look()
    barn.slot()
    api.repository.issues[7]["labels"] = ["ready"]  # an old list
    slot = stable.slot(after=timedelta())

    assert len(barn.jobs()) == 1
    assert stable.jobs() == []
    assert "#7: barn has it" in (slot.reason or "")
    assert stable.item().status is WorkStatus.LOST


def test_fleets_that_race_for_every_issue_share_them(api: GithubApi, source: WorkSource) -> None:
    for number in range(8, 20):
        api.repository.open_issue(number, "Mend", "ready")
    fleets = [
        Herd(api, [taking(source, max_overlap=100)], by=f"worker-{number}", name=f"fleet {number}")
        for number in range(3)
    ]
    # Each has random text of its own: their claims differ.
    for number, one in enumerate(fleets):
        for _ in range(1000 * number):
            one.random_text(1)

    async def race(herd: Herd) -> list[int]:
        taken = []
        for number in range(6):
            found = await find_issue("coder", f"issues {number}", source, herd.context)
            if isinstance(found, FoundIssue):
                taken.append(found.issue.number)
        return taken

    taken: list[int] = []

    async def all_at_once() -> None:
        async def one_fleet(herd: Herd) -> None:
            taken.extend(await race(herd))

        async with anyio.create_task_group() as tasks:
            for herd in fleets:
                tasks.start_soon(one_fleet, herd)

    anyio.run(all_at_once)

    assert len(taken) == len(set(taken))
    assert len(taken) >= 10


def test_process_waits_for_another_one_that_claims_for_the_same_schedule(
    api: GithubApi, source: WorkSource
) -> None:
    herd = Herd(api, [taking(source)])
    other = herd.beside(by="worker-bbbbbbbb")
    found = anyio.run(find_issue, "coder", "issues", source, herd.context)
    assert isinstance(found, FoundIssue)
    busy = anyio.run(find_issue, "coder", "issues", source, other.context)
    assert isinstance(busy, BusyIssue)

    herd.clock.advance(2 * MINUTE)
    again = anyio.run(find_issue, "coder", "issues", source, other.context)
    assert isinstance(again, FoundIssue)
    assert again.item.claim == found.item.claim


def test_lock_of_a_fleet_that_has_finished_is_free(api: GithubApi, source: WorkSource) -> None:
    barn = Herd(api, [taking(source, max_overlap=1)])
    stable = barn.other_fleet()
    barn.slot()
    barn.finish(barn.jobs()[0], error="The hammer broke")
    barn.settle()

    assert stable.slot().job_id is not None


def test_without_locks_labels_alone_keep_fleets_apart(api: GithubApi) -> None:
    source = source_at(api, lock=False)
    barn = Herd(api, [taking(source)])
    barn.slot()
    found = anyio.run(find_issue, "coder", "issues", source, barn.other_fleet().context)

    assert isinstance(found, NoIssue)
    assert api.repository.tags == {}
    assert api.repository.labels(7) == ["agent-working"]


def test_issue_in_progress_that_nobody_has_is_made_ready(
    api: GithubApi, source: WorkSource
) -> None:
    api.repository.issues[7]["labels"] = ["agent-working"]
    herd = Herd(api, [taking(source)])

    assert anyio.run(release_left, source, herd.context) == [7]
    assert api.repository.labels(7) == ["ready"]


class EndedError(Exception):
    """The process ended here."""


def test_process_that_ends_while_it_makes_an_issue_ready_is_followed_by_another(
    api: GithubApi, source: WorkSource
) -> None:
    api.repository.issues[7]["labels"] = ["agent-working"]
    ended, next_one = Herd(api, [taking(source)]), Herd(api, [taking(source)])

    def end(point: str) -> None:
        if point == "work.left":
            raise EndedError

    ended.context.probe = end
    with pytest.raises(EndedError):
        anyio.run(release_left, source, ended.context)
    assert sorted(api.repository.labels(7)) == ["agent-working", "ready"]
    early = anyio.run(find_issue, "coder", "issues", source, next_one.context)
    assert isinstance(early, NoIssue), "it still says that somebody works on it"

    assert anyio.run(release_left, source, next_one.context) == [7]
    assert api.repository.labels(7) == ["ready"]


def test_issue_in_progress_that_a_fleet_has_is_left_to_it(
    api: GithubApi, source: WorkSource
) -> None:
    barn = Herd(api, [taking(source)])
    barn.slot()
    stable = barn.other_fleet()

    for herd in (barn, stable):
        assert anyio.run(release_left, source, herd.context) == []
    assert api.repository.labels(7) == ["agent-working"]


def test_left_issues_are_looked_for_where_the_source_says_so(api: GithubApi) -> None:
    api.repository.issues[7]["labels"] = ["agent-working"]
    left_alone = Herd(api, [taking(source_at(api))])
    cleaning = Herd(api, [taking(source_at(api, cleanup_in_progress=True))])

    async def rounds(herd: Herd) -> None:
        herd.settler.leave()
        await herd.settler.run()

    anyio.run(rounds, left_alone)
    assert api.repository.labels(7) == ["agent-working"]
    anyio.run(rounds, cleaning)
    assert api.repository.labels(7) == ["ready"]
