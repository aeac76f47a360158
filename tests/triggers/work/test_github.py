"""The GitHub adapter against a loopback API: pages, 304, locks, labels, comments, limits and refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import TypeVar

import anyio
import pytest

from nightherd.errors import WorkSourceError
from nightherd.model.work.source import WorkSource
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.state_values import BEGINNING
from nightherd.triggers.work.github import GithubTracker

T = TypeVar("T")
REF = "refs/nightherd/issues/7"


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


def tracker(api: GithubApi, token: str = TOKEN) -> GithubTracker:
    return GithubTracker(WorkSource(repo="acme/app", base_url=api.url), lambda: token)


def run(call: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await call()

    return anyio.run(main)


def refused(call: Callable[[], Awaitable[object]]) -> WorkSourceError:
    with pytest.raises(WorkSourceError) as caught:
        run(call)
    return caught.value


def test_issue_is_read_with_its_labels_and_author(api: GithubApi) -> None:
    page = run(lambda: tracker(api).list_issues("ready", 1))

    (issue,) = page.issues
    assert (issue.number, issue.labels, issue.author) == (7, ("ready",), "rosa")
    assert not page.has_more


def test_oldest_issues_come_first_page_by_page(api: GithubApi) -> None:
    for number in range(100, 310):
        api.repository.open_issue(number, "Mow", "ready")

    async def numbers() -> list[tuple[int, bool]]:
        here = tracker(api)
        pages = [await here.list_issues("ready", page) for page in (1, 2, 3)]
        return [(page.issues[0].number, page.has_more) for page in pages]

    assert run(numbers) == [(7, True), (199, True), (299, False)]


def test_unchanged_list_is_not_sent_again(api: GithubApi) -> None:
    async def twice() -> bool:
        here = tracker(api)
        first = await here.list_issues("ready", 1)
        api.repository.open_issue(8, "Other", "other")
        return first == await here.list_issues("ready", 1)

    assert run(twice)
    assert "if-none-match" in api.asked[-1].headers


def test_changed_list_is_read_anew(api: GithubApi) -> None:
    async def twice() -> int:
        here = tracker(api)
        await here.list_issues("ready", 1)
        api.repository.open_issue(8, "Other", "ready")
        return len((await here.list_issues("ready", 1)).issues)

    assert run(twice) == 2


def test_label_with_hostile_characters_stays_one_label(api: GithubApi) -> None:
    label = "a/b?c&d #e"
    api.repository.open_issue(8, "Odd", label)
    (issue,) = run(lambda: tracker(api).list_issues(label, 1)).issues
    run(lambda: tracker(api).remove_label(8, label))

    assert issue.number == 8
    assert api.repository.labels(8) == []


def test_one_of_two_locks_has_the_issue(api: GithubApi) -> None:
    first = run(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING))
    second = run(lambda: tracker(api).take_lock(7, "two", "stable", BEGINNING))

    assert first.is_ours
    assert (second.is_ours, second.holder) == (False, "barn")


def test_lock_whose_answer_was_lost_is_still_ours(api: GithubApi) -> None:
    api.fail("POST /repos/acme/app/git/refs", None, is_done=True)
    refused(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING))

    assert REF in api.repository.refs
    assert run(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING)).is_ours


def test_lock_of_another_is_not_dropped(api: GithubApi) -> None:
    run(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING))
    run(lambda: tracker(api).drop_lock(7, "two"))
    assert run(lambda: tracker(api).find_lock(7)) is not None

    run(lambda: tracker(api).drop_lock(7, "one"))
    assert run(lambda: tracker(api).find_lock(7)) is None
    run(lambda: tracker(api).drop_lock(7, "one"))


def test_ref_that_somebody_made_by_hand_is_another_holder(api: GithubApi) -> None:
    api.repository.refs[REF] = "0" * 40
    answer = run(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING))

    assert (answer.is_ours, answer.holder) == (False, "another fleet")


def test_repository_without_a_commit_cannot_be_locked(api: GithubApi) -> None:
    api.repository.is_empty = True
    error = refused(lambda: tracker(api).take_lock(7, "one", "barn", BEGINNING))

    assert error.kind == "refused"
    assert "lock: false" in error.message


def test_comment_is_found_by_its_marker(api: GithubApi) -> None:
    for number in range(150):
        api.repository.answer(
            "POST", "/repos/acme/app/issues/7/comments", {}, {"body": f"noise {number}"}
        )
    id = run(lambda: tracker(api).comment(7, "<!-- mine -->\nDone."))
    since = BEGINNING - timedelta(days=9_000)

    assert run(lambda: tracker(api).find_comment(7, "<!-- mine -->", since)) == id
    assert run(lambda: tracker(api).find_comment(7, "<!-- other -->", since)) is None


def test_issue_that_is_gone_takes_everything_and_nothing(api: GithubApi) -> None:
    here = tracker(api)

    assert run(lambda: here.find_issue(99)) is None
    run(lambda: here.add_label(99, "x"))
    run(lambda: here.remove_label(99, "x"))
    run(lambda: here.close(99))
    assert run(lambda: here.comment(99, "x")) == ""
    assert run(lambda: here.find_comment(99, "x", BEGINNING)) is None


def test_used_up_rate_limit_waits_until_it_resets(api: GithubApi) -> None:
    api.limit_primary(reset_in_s=600)
    error = refused(lambda: tracker(api).list_issues("ready", 1))

    assert error.kind == "limited"
    assert error.wait_s is not None
    assert 590 <= error.wait_s <= 610


def test_secondary_limit_waits_as_long_as_it_says(api: GithubApi) -> None:
    api.limit_secondary(retry_after_s=37)
    assert refused(lambda: tracker(api).list_issues("ready", 1)).wait_s == 37

    api.limit_secondary()
    unnamed = refused(lambda: tracker(api).list_issues("ready", 1))
    assert (unnamed.kind, unnamed.wait_s) == ("limited", 60)


def test_time_beyond_reason_is_taken_as_a_day(api: GithubApi) -> None:
    api.limit_secondary(retry_after_s=10**9)

    assert refused(lambda: tracker(api).list_issues("ready", 1)).wait_s == 86_400


@pytest.mark.parametrize(
    ("status", "kind", "word"),
    [
        (401, "refused", "does not accept the token in GITHUB_TOKEN"),
        (403, "refused", "may not list the issues"),
        (404, "missing", "knows no repository acme/app"),
        (301, "missing", "under another name"),
        (500, "unavailable", "500"),
        (502, "unavailable", "502"),
    ],
)
def test_refusal_says_what_is_wrong(api: GithubApi, status: int, kind: str, word: str) -> None:
    api.fail("", status, message="No.")
    error = refused(lambda: tracker(api).list_issues("ready", 1))

    assert error.kind == kind
    assert word in error.message


def test_wrong_token_is_refused_and_not_repeated(api: GithubApi) -> None:
    error = refused(lambda: tracker(api, "ghp_wrong").list_issues("ready", 1))

    assert error.kind == "refused"
    assert "ghp_wrong" not in str(error)


@pytest.mark.parametrize("token", ["", "  ", "two words", "line\nbreak", "käse"])
def test_token_that_no_header_can_hold_is_never_sent(api: GithubApi, token: str) -> None:
    error = refused(lambda: tracker(api, token).list_issues("ready", 1))

    assert error.kind == "refused"
    assert not token.strip() or token not in str(error)
    assert api.asked == []


def test_message_of_the_server_is_short_and_harmless(api: GithubApi) -> None:
    api.fail("", 500, message="\x1b[2J" + "x" * 5_000)
    error = refused(lambda: tracker(api).list_issues("ready", 1))

    assert "\x1b" not in error.message
    assert len(error.message) < 300


def test_answer_that_is_no_json_is_an_outage(api: GithubApi) -> None:
    api.fail("", 200, message="not a list")

    assert refused(lambda: tracker(api).list_issues("ready", 1)).kind == "unavailable"


def test_cut_connection_is_an_outage(api: GithubApi) -> None:
    api.fail("", None)

    assert refused(lambda: tracker(api).list_issues("ready", 1)).kind == "unavailable"


def test_server_that_is_not_there_is_an_outage() -> None:
    source = WorkSource(repo="acme/app", base_url="http://127.0.0.1:9")

    error = refused(lambda: GithubTracker(source, lambda: TOKEN).list_issues("ready", 1))
    assert error.kind == "unavailable"
