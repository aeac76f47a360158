"""A daemon that takes issues: from the fleet file to the comment, across a token that is missing and a SIGKILL."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from daemon.pasture import Pasture, wait_for
from daemon.test_reloading import rewrite
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.work.item import WorkStatus
from nightherd.model.work.source import SourceState, SourceStatus
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Cli

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]
FLEET = """\
reload: auto
lease: 5s
heartbeat: 500ms
agents:
  - name: mender
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    work_source: {type: github, repo: acme/app, base_url: "URL", labels: {done: done}, auth: {token_env: LOOPBACK_TOKEN}}
    schedules: {issues: {interval: 1s}}
    script:
      - tool: Bash
        input: {command: "WAIT"}
      - say: "Mended #${inputs.issue_number} of ${repo}."
"""
AT_ONCE, WHEN_TOLD = "true", "touch began; while [ ! -e go ]; do sleep 0.05; done"


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        yield api


def fleet(api: GithubApi, wait: str = AT_ONCE) -> str:
    return FLEET.replace("URL", api.url).replace("WAIT", wait)


def is_done(api: GithubApi, number: int) -> bool:
    return not api.repository.is_open(number) and not api.repository.refs


def sources(pasture: Pasture) -> list[SourceState]:
    reader = open_reader(pasture.state)
    try:
        return list(reader.list_work_sources())
    finally:
        reader.close()


def test_daemon_works_on_issues_one_after_the_other(
    make_pasture: MakePasture, api: GithubApi
) -> None:
    for number in (7, 8):
        api.repository.open_issue(number, "The fence is broken", "ready", "bug")
    pasture = make_pasture(fleet(api))
    trial = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    wait_for(lambda: is_done(api, 7) and is_done(api, 8), "both issues are closed")
    trial.send(signal.SIGTERM)
    assert trial.wait().status == 0

    for number in (7, 8):
        (text,) = api.repository.texts(number)
        assert f"Mended #{number} of acme/app." in text
        assert sorted(api.repository.labels(number)) == ["bug", "done"]
    kept = [one.read_bytes() for one in pasture.state.rglob("*") if one.is_file()]
    assert not any(TOKEN.encode() in one for one in kept)


def test_issue_of_a_daemon_that_was_killed_is_finished_by_the_next_one(
    make_pasture: MakePasture, api: GithubApi
) -> None:
    api.repository.open_issue(7, "The fence is broken", "ready")
    pasture = make_pasture(fleet(api, WHEN_TOLD))
    first = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    wait_for((pasture.folder / "began").exists, "the job has begun")
    first.send(signal.SIGKILL)
    first.wait()
    (pasture.folder / "go").touch()
    second = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    wait_for(lambda: is_done(api, 7), "the issue is closed")
    second.send(signal.SIGTERM)
    assert second.wait().status == 0

    assert len(api.repository.texts(7)) == 1
    reader = open_reader(pasture.state)
    jobs = reader.list_jobs(JobQuery(limit=50))
    (item,) = reader.list_work_items(5)
    reader.close()
    assert [job.status for job in jobs] == [JobStatus.COMPLETED]
    assert item.status is WorkStatus.DONE


def test_missing_token_is_told_and_the_next_start_has_it(
    make_pasture: MakePasture, api: GithubApi
) -> None:
    api.repository.open_issue(7, "The fence is broken", "ready")
    pasture = make_pasture(fleet(api))
    first = pasture.daemon()
    wait_for(
        lambda: [one.status for one in sources(pasture)] == [SourceStatus.REFUSED], "it is refused"
    )
    first.send(signal.SIGTERM)
    assert first.wait().status == 0
    assert api.asked == []

    second = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    wait_for(lambda: is_done(api, 7), "the issue is closed")
    second.send(signal.SIGTERM)
    second.wait()


def test_source_that_comes_with_a_reload_is_used_and_one_that_goes_is_settled(
    make_pasture: MakePasture, api: GithubApi
) -> None:
    api.repository.open_issue(7, "The fence is broken", "ready")
    without = "".join(
        line
        for line in fleet(api, WHEN_TOLD).splitlines(keepends=True)
        if "work_source" not in line
    ).replace("interval: 1s", 'cron: "0 0 1 1 *"')
    pasture = make_pasture(without.replace("#${inputs.issue_number} of ", "one of "))
    trial = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    rewrite(pasture, trial, fleet(api, WHEN_TOLD))
    wait_for((pasture.folder / "began").exists, "the job has begun")
    rewrite(pasture, trial, without.replace("#${inputs.issue_number} of ", "one of "))
    (pasture.folder / "go").touch()
    wait_for(lambda: is_done(api, 7), "the issue is closed")
    trial.send(signal.SIGTERM)
    assert trial.wait().status == 0

    assert len(api.repository.texts(7)) == 1
    assert api.repository.labels(7) == ["done"]


def test_daemon_takes_an_issue_on_request_and_once_more(
    make_pasture: MakePasture, api: GithubApi, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon alone has the token: it is the one that asks."""
    api.repository.open_issue(7, "The fence is broken", "ready")
    pasture = make_pasture(fleet(api).replace("interval: 1s", "interval: 1h"))
    trial = pasture.daemon(environ={"LOOPBACK_TOKEN": TOKEN})
    pasture.wait_until_ready(trial)
    monkeypatch.chdir(pasture.folder)
    made = cli("schedule", "run", "mender/issues", "--json").data
    wait_for(lambda: is_done(api, 7), "the issue is closed")
    again = cli("jobs", "retry", made["id"], "--json").data
    wait_for(lambda: len(api.repository.texts(7)) == 2 and is_done(api, 7), "it is told again")
    trial.send(signal.SIGTERM)
    assert trial.wait().status == 0

    first, second = api.repository.texts(7)
    assert made["id"] in first
    assert again["id"] in second
    assert api.repository.labels(7) == ["done"]
