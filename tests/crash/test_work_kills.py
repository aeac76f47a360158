"""A process that takes issues, killed at each of its steps: the next one finishes them, and nothing is done twice."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from engine.work.work_trials import REQUESTS, STEPS
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.github_api import GithubApi

POINTS = {
    "work.reserved", "work.locked", "work.noted", "work.labelled", "work.unready", "work.held", "work.ended",
    "work.commenting", "work.commented", "work.relabelled", "work.closed", "work.unlocked", "work.settled",
}  # fmt: skip


def order_of(folder: Path, api: GithubApi, **more: Any) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "url": api.url,
        "nth": 0,
        "hours": 0,
        "by": "a",
        "fails": False,
        **more,
    }


def open_issue(api: GithubApi) -> None:
    api.repository.open_issue(7, "The fence is broken", "ready", "bug")


def new_folder(parent: Path, name: str) -> Path:
    folder = parent / name
    init_state_directory(folder)
    return folder


def points_of(fork_server: ForkServer, folder: Path, *, fails: bool) -> list[str]:
    with GithubApi() as api:
        open_issue(api)
        ended = fork_server.run(STEPS, order_of(folder, api, fails=fails))
    assert (ended.status, ended.error) == (0, "")
    return ended.said


@pytest.mark.parametrize("fails", [False, True])
def test_issue_of_a_killed_process_is_finished_by_the_next_one(
    fork_server: ForkServer, quick_path: Path, fails: bool
) -> None:
    points = points_of(fork_server, new_folder(quick_path, "whole"), fails=fails)
    assert set(points) >= (POINTS - {"work.closed"} if fails else POINTS)

    for nth in range(1, len(points) + 1):
        folder = new_folder(quick_path, str(nth))
        with GithubApi() as api:
            open_issue(api)
            killed = fork_server.run(STEPS, order_of(folder, api, nth=nth, fails=fails))
            assert killed.status == -signal.SIGKILL, (nth, killed)
            # The next processes come hours later, when nobody has the issue in hand any more.
            for hours in (3, 5):
                later = fork_server.run(STEPS, order_of(folder, api, hours=hours, by=f"b{hours}"))
                assert (later.status, later.error) == (0, ""), (nth, points[nth - 1], later.error)

            where = (nth, points[nth - 1])
            reader = SqliteReader(folder)
            jobs = list(reader.list_jobs(JobQuery(limit=100)))
            open_items = list(reader.open_work_items())
            reader.close()
            assert open_items == [], where
            assert api.repository.refs == {}, where
            assert sorted(api.repository.labels(7)) == ["bug", "done"], where
            assert not api.repository.is_open(7), where
            succeeded = [job for job in jobs if job.status is JobStatus.COMPLETED]
            assert len(succeeded) == 1, where
            texts = api.repository.texts(7)
            assert len(texts) == len(jobs), (where, texts)
            for job in jobs:
                assert sum(job.id in text for text in texts) == 1, (where, texts)


def test_issue_of_a_killed_command_is_finished_by_the_next_process(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    """A command that takes an issue, retries its job and settles it, killed after each write to GitHub."""
    with GithubApi() as api:
        open_issue(api)
        whole = fork_server.run(REQUESTS, order_of(new_folder(tmp_path, "whole"), api))
        assert (whole.status, whole.error) == (0, "")
        assert len(api.repository.texts(7)) == 1
    calls = whole.said
    assert len(calls) >= 15

    for nth, call in enumerate(calls, 1):
        if call.startswith("GET"):
            continue
        folder, where = new_folder(tmp_path, str(nth)), (nth, call)
        with GithubApi() as api:
            open_issue(api)
            killed = fork_server.run(REQUESTS, order_of(folder, api, nth=nth))
            assert killed.status == -signal.SIGKILL, (where, killed)
            later = fork_server.run(STEPS, order_of(folder, api, hours=3, by="b"))
            assert later.status == 0, (where, later.error)

            reader = SqliteReader(folder)
            jobs = list(reader.list_jobs(JobQuery(limit=100)))
            open_items = list(reader.open_work_items())
            reader.close()
            assert open_items == [], where
            assert api.repository.refs == {}, where
            texts = api.repository.texts(7)
            for job in jobs:
                told = sum(job.id in text for text in texts)
                # What failed before it was retried is told by the end of its retry.
                assert told == 1 or (told == 0 and job.status is JobStatus.FAILED), (where, texts)
            assert any(job.status is JobStatus.COMPLETED for job in jobs), where
            assert sorted(api.repository.labels(7)) == ["bug", "done"], where
