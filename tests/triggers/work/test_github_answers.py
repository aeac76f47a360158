"""Answers of GitHub that are odd: short pages, copied comments, half characters, waits that are over, slow servers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import anyio
import pytest

from nightherd.errors import WorkSourceError
from nightherd.model.work.source import WorkSource
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.github_repository import Reply
from nightherd.testing.state_values import BEGINNING
from nightherd.triggers.work.github import GithubTracker
from nightherd.triggers.work.http import HttpAnswer, make_exchange

MARKER = "<!-- nightherd:job-1 -->"
LONG_AGO = BEGINNING - timedelta(days=9_000)


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready")
        yield api


def tracker(api: GithubApi, token: str = TOKEN) -> GithubTracker:
    return GithubTracker(WorkSource(repo="acme/app", base_url=api.url), lambda: token)


def found(api: GithubApi) -> str | None:
    return anyio.run(tracker(api).find_comment, 7, MARKER, LONG_AGO)


def test_comment_with_a_copied_mark_is_not_ours(api: GithubApi) -> None:
    api.repository.say(7, f"{MARKER}\nI say that it is done.")
    assert found(api) is None

    id = anyio.run(tracker(api).comment, 7, f"{MARKER}\nDone.")
    assert found(api) == id


def test_comment_that_quotes_the_mark_is_not_ours(api: GithubApi) -> None:
    api.repository.say(7, f"> {MARKER}\n> Done.", user=1)

    assert found(api) is None


def test_own_user_is_asked_for_once_and_only_where_there_is_a_mark(api: GithubApi) -> None:
    async def main() -> None:
        here = tracker(api)
        assert await here.find_comment(7, MARKER, LONG_AGO) is None
        assert api.lines("/user") == []
        for _ in range(2):
            api.repository.say(7, f"{MARKER}\nCopied.")
            assert await here.find_comment(7, MARKER, LONG_AGO) is None

    anyio.run(main)
    assert len(api.lines("/user")) == 1


@pytest.mark.parametrize(("type", "is_ours"), [("Bot", True), ("User", False)])
def test_token_of_an_app_cannot_tell_who_it_is_and_takes_no_persons_comment(
    api: GithubApi, type: str, is_ours: bool
) -> None:
    api.fail("GET /user", 403, message="Resource not accessible by integration", times=None)
    api.repository.say(7, f"{MARKER}\nDone.", user=9, type=type)

    assert (found(api) is not None) == is_ours


def test_limit_while_it_asks_who_it_is_is_a_limit(api: GithubApi) -> None:
    api.repository.say(7, f"{MARKER}\nDone.", user=1)
    api.fail("GET /user", 429, message="Slow down", headers={"retry-after": "9"})
    with pytest.raises(WorkSourceError) as caught:
        found(api)

    assert (caught.value.kind, caught.value.wait_s) == ("limited", 9)


def test_page_that_github_left_some_out_of_is_not_the_last_one(
    api: GithubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100, 250):
        api.repository.open_issue(number, "Mow", "ready")
    for number in range(150):
        api.repository.say(7, f"noise {number}")
    api.repository.say(7, f"{MARKER}\nDone.", user=1)
    whole = api.repository.answer

    def with_holes(*asked: object) -> Reply:
        reply: Reply = whole(*asked)  # type: ignore[arg-type]
        if "link" in reply.headers:
            del reply.body[50]
        return reply

    monkeypatch.setattr(api.repository, "answer", with_holes)

    assert anyio.run(tracker(api).list_issues, "ready", 1).has_more
    assert found(api) is not None


def test_lists_keep_no_texts(api: GithubApi) -> None:
    (issue,) = anyio.run(tracker(api).list_issues, "ready", 1).issues

    assert issue.body == ""


def test_half_characters_keep_no_issue_from_being_read(api: GithubApi) -> None:
    api.repository.open_issue(8, "A \ud83d fence", "ready", body="Half \ude00 and \x00 nothing")
    listed = anyio.run(tracker(api).list_issues, "ready", 1)
    issue = anyio.run(tracker(api).find_issue, 8)

    assert [one.number for one in listed.issues] == [7, 8]
    assert issue is not None
    (issue.title + issue.body).encode()


def test_document_that_is_nested_too_deeply_is_an_outage() -> None:
    body = b"[" * 100_000

    async def exchange(*_: object) -> HttpAnswer:
        return HttpAnswer(status=200, headers={}, body=body)

    here = GithubTracker(WorkSource(repo="acme/app"), lambda: TOKEN, exchange)
    with pytest.raises(WorkSourceError, match="cannot be read"):
        anyio.run(here.find_issue, 7)


def test_reset_that_is_over_is_no_reason_to_ask_at_once(api: GithubApi) -> None:
    api.limit_primary(reset_in_s=-3_600)
    with pytest.raises(WorkSourceError) as caught:
        anyio.run(tracker(api).list_issues, "ready", 1)

    assert caught.value.kind == "limited"
    assert caught.value.wait_s == 1


def test_outage_that_says_how_long_it_lasts_is_waited_for(api: GithubApi) -> None:
    api.fail("", 503, headers={"retry-after": "120"})
    with pytest.raises(WorkSourceError) as caught:
        anyio.run(tracker(api).list_issues, "ready", 1)

    assert (caught.value.kind, caught.value.wait_s) == ("unavailable", 120)


def test_locks_of_all_fleets_are_listed(api: GithubApi) -> None:
    async def main() -> None:
        here = tracker(api)
        for number in range(1, 120):
            await here.take_lock(number, f"claim-{number}", "barn\x1b[2J", BEGINNING)
        api.repository.refs["refs/nightherd/issues/200"] = "0" * 40
        api.repository.refs["refs/nightherd/issues/odd"] = "0" * 40
        first, second = await here.list_locks(1), await here.list_locks(2)
        assert (len(first.locks), first.has_more, second.has_more) == (100, True, False)
        locks = {one.number: one for one in (*first.locks, *second.locks)}
        assert sorted(locks) == [*range(1, 120), 200]
        assert locks[7].lock == "claim-7"
        assert "\x1b" not in locks[7].fleet
        assert locks[200].fleet == ""

    anyio.run(main)


def test_thread_of_an_answer_that_comes_drop_by_drop_ends() -> None:
    """Else such a server would take one thread after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        is_over = threading.Event()

        def drip() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
                try:
                    while not is_over.wait(0.01):
                        client.sendall(b" ")
                except OSError:
                    is_over.set()

        dripping = threading.Thread(target=drip)
        dripping.start()
        port = server.getsockname()[1]
        exchange = make_exchange(f"http://127.0.0.1:{port}", timeout_s=0.2)
        with pytest.raises(WorkSourceError, match="did not answer within"):
            anyio.run(exchange, "GET", "/", {}, None)

        assert is_over.wait(10), "the connection is cut"
        dripping.join()
