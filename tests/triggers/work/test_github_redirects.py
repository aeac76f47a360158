"""Repositories that are renamed, issues that are moved or deleted, and tokens that lose their rights in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest

from nightherd.errors import WorkSourceError
from nightherd.model.work.source import WorkSource
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.state_values import BEGINNING
from nightherd.triggers.work.github import GithubTracker

MARKER = "<!-- nightherd:job-1 -->"


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


def tracker(api: GithubApi) -> GithubTracker:
    return GithubTracker(WorkSource(repo="acme/app", base_url=api.url), lambda: TOKEN)


def refused(call: Callable[[], Awaitable[object]]) -> WorkSourceError:
    async def main() -> object:
        return await call()

    with pytest.raises(WorkSourceError) as caught:
        anyio.run(main)
    return caught.value


async def everything(here: GithubTracker) -> None:
    """All that a claim and its end write."""
    await here.take_lock(7, "one", "barn", BEGINNING)
    await here.add_label(7, "agent-working")
    await here.remove_label(7, "ready")
    await here.comment(7, f"{MARKER}\nDone.")
    await here.close(7)
    await here.drop_lock(7, "one")


def test_renamed_repository_is_followed(api: GithubApi) -> None:
    api.repository.rename("acme/barn")

    async def main() -> None:
        here = tracker(api)
        assert [one.number for one in (await here.list_issues("ready", 1)).issues] == [7]
        await everything(here)
        assert await here.find_comment(7, MARKER, BEGINNING) is not None

    anyio.run(main)
    assert api.repository.labels(7) == ["agent-working"]
    assert len(api.repository.texts(7)) == 1
    assert not api.repository.is_open(7)
    assert api.repository.refs == {}
    assert len(api.lines("/repos/acme/app/")) == 1, "the new address is remembered"


def test_repository_that_is_renamed_in_between_loses_nothing(api: GithubApi) -> None:
    async def main() -> None:
        here = tracker(api)
        await here.take_lock(7, "one", "barn", BEGINNING)
        api.repository.rename("acme/barn")
        assert await here.comment(7, "Done.") != ""
        await here.drop_lock(7, "one")

    anyio.run(main)
    assert api.repository.texts(7) == ["Done."]
    assert api.repository.refs == {}


def test_issue_that_was_moved_is_gone_and_nothing_is_written_elsewhere(api: GithubApi) -> None:
    api.repository.transfer(7)

    async def main() -> None:
        here = tracker(api)
        assert await here.find_issue(7) is None
        assert not await here.add_label(7, "x")
        await here.remove_label(7, "x")
        await here.close(7)
        assert await here.comment(7, "Done.") == ""

    anyio.run(main)
    assert api.lines("/repositories/") == []


@pytest.mark.parametrize("place", ["http://127.0.0.2:1/repositories/1", "https://evil.example/repositories/1", "//evil.example/repositories/1", "", "http://[/"])  # fmt: skip
def test_redirect_to_another_server_is_not_followed(api: GithubApi, place: str) -> None:
    api.fail("", 301, message="Moved", headers={"location": place}, times=None)
    error = refused(lambda: tracker(api).list_issues("ready", 1))

    assert error.kind == "missing"
    assert "under another name" in error.message


def test_redirects_in_a_circle_end(api: GithubApi) -> None:
    place = f"{api.url}/repos/acme/app"
    api.fail("", 301, message="Moved", headers={"location": place}, times=None)
    other = f"{api.url}/repos/acme/other"
    error = refused(lambda: tracker(api).list_issues("ready", 1))
    assert error.kind == "missing"

    api.work()
    api.fail("/repos/acme/app", 301, message="Moved", headers={"location": other}, times=None)
    api.fail("/repos/acme/other", 301, message="Moved", headers={"location": place}, times=None)
    assert refused(lambda: tracker(api).list_issues("ready", 1)).kind == "missing"
    assert len(api.asked) < 20


@pytest.mark.parametrize(
    "call",
    [
        lambda here: here.find_issue(7),
        lambda here: here.add_label(7, "x"),
        lambda here: here.remove_label(7, "x"),
        lambda here: here.comment(7, "Done."),
        lambda here: here.find_comment(7, MARKER, BEGINNING),
        lambda here: here.close(7),
        lambda here: here.drop_lock(7, "one"),
        lambda here: here.find_lock(7),
    ],
)
def test_404_of_a_token_that_lost_its_rights_does_not_mean_that_an_issue_is_gone(
    api: GithubApi, call: Callable[[GithubTracker], Awaitable[object]]
) -> None:
    api.fail("", 404, message="Not Found", times=None)
    error = refused(lambda: call(tracker(api)))

    assert error.kind == "missing"
    assert "may not see it" in error.message


def test_server_below_a_path_is_asked_there() -> None:
    with GithubApi(prefix="/api/v3") as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        api.repository.rename("acme/barn")

        async def main() -> None:
            here = tracker(api)
            assert len((await here.list_issues("ready", 1)).issues) == 1
            await everything(here)

        anyio.run(main)
        assert len(api.repository.texts(7)) == 1
        assert all(one.path.startswith("/api/v3/") for one in api.asked)


def test_issues_that_are_switched_off_are_said(api: GithubApi) -> None:
    api.fail("/issues", 410, message="Issues has been disabled in this repository.")
    error = refused(lambda: tracker(api).list_issues("ready", 1))

    assert error.kind == "missing"
    assert "Issues has been disabled" in error.message
