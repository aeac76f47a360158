"""A job suspended by a usage limit is shown with its reason and `resumes_at` in every surface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from nightherd import open_fleet
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Refuse, Say
from nightherd.wiring.fleets import load_fleet
from surfaces.drivers import Cli
from web.web_world import following, served

FLEET = """\
agents:
  - name: coder
    runtime: native
    model: "anthropic:claude-sonnet-5-5"
    default_prompt: go
    limits: {turns: 9}
    schedules:
      nightly: {type: cron, expression: "0 2 * * *"}
"""
HOUR = timedelta(hours=1)


@pytest.fixture
def waiting(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A job that waits for an hour because of a limit, as `run --json` shows it; the test stands in its fleet."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    with MessagesApi(Refuse(status=429, retry_after_s=3600), Say(text="never asked")) as api:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy-key-of-the-tests")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        ended = cli("run", "coder", "--json")
        yield {"code": ended.code, **ended.data}


def check(shown: Any, waiting: dict[str, Any]) -> None:
    """The document says that the job is suspended, why, and until when."""
    assert (shown["status"], shown["suspend_reason"]) == ("suspended", "rate_limit")
    assert shown["resumes_at"] == waiting["resumes_at"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def words_of(waiting: dict[str, Any]) -> str:
    """The time of the reset as people read it, to the second."""
    return f"{instant(waiting['resumes_at']):%Y-%m-%d %H:%M}"


def test_every_command_says_why_and_until_when(waiting: dict[str, Any], cli: Cli) -> None:
    job_id = waiting["job_id"]

    assert waiting["code"] == 8
    (listed,) = cli("jobs", "--json").data
    for shown in (waiting, listed, cli("jobs", "show", job_id, "--json").data):
        check(shown, waiting)
    (limit,) = cli("status", "--json").data["rate_limits"]
    assert (limit["agents"], instant(limit["until"])) == (
        ["coder"],
        instant(waiting["resumes_at"]),
    )
    until = words_of(waiting)
    for words in (("jobs",), ("jobs", "show", job_id), ("status",), ("agent", "show", "coder")):
        said = cli(*words).out
        assert until in said.replace("T", " "), (words, said)
        assert "rate" in said, (words, said)
    agent = cli("agent", "show", "coder", "--json").data
    (suspended,) = agent["suspended_jobs"]
    check({"status": "suspended", **suspended}, waiting)
    assert suspended["job_id"] == job_id


def test_files_say_why_and_until_when(waiting: dict[str, Any], cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / ".nightherd"
    job = yaml.safe_load((state / "jobs" / f"{waiting['job_id']}.yaml").read_text())
    thread = json.loads((state / "threads" / waiting["job_id"] / "state.json").read_text())
    lines = (state / "jobs" / f"{waiting['job_id']}.jsonl").read_text().splitlines()

    assert (job["status"], job["suspended"]) == ("running", "rate_limit")
    assert instant(str(job["resumes_at"])) == instant(waiting["resumes_at"])
    assert (thread["status"], thread["suspend_reason"]) == ("suspended", "rate_limit")
    assert instant(thread["suspend_metadata"]["resumes_at"]) == instant(waiting["resumes_at"])
    last = json.loads(lines[-1])
    assert (last["subtype"], last["extra"]["reason"]) == ("suspended", "rate_limit")
    assert instant(last["extra"]["until"]) == instant(waiting["resumes_at"])


def test_the_api_and_its_events_say_why_and_until_when(
    waiting: dict[str, Any], tmp_path: Path
) -> None:
    async def ask() -> None:
        fleet = load_fleet(tmp_path / "nightherd.yaml", environ={}, cwd=tmp_path).fleet
        async with served(tmp_path, fleet=fleet) as world:
            job_id = waiting["job_id"]
            (listed,) = (await world.get("/v1/jobs")).data
            for shown in (listed, (await world.get(f"/v1/jobs/{job_id}")).data):
                check(shown, waiting)
            status = (await world.get("/v1/status")).data
            assert len(status["rate_limits"]) == 1
            agent = (await world.get("/v1/agents/coder")).data
            assert agent["suspended_jobs"][0]["resumes_at"] == waiting["resumes_at"]
            async with following(world, job_id) as follower:
                await follower.hear(b'"suspended"')
                async for event in follower.events():
                    if event.get("subtype") == "suspended":
                        break
            assert event["extra"]["reason"] == "rate_limit"
            assert instant(event["extra"]["until"]) == instant(waiting["resumes_at"])

    anyio.run(ask)


def test_the_library_says_why_and_until_when(waiting: dict[str, Any], tmp_path: Path) -> None:
    async def ask() -> tuple[Any, Any]:
        async with open_fleet(tmp_path / "nightherd.yaml") as opened:
            return opened.job(waiting["job_id"]), opened.jobs()[0]

    for job in anyio.run(ask):
        assert (job.status.value, job.suspend_reason.value) == ("suspended", "rate_limit")
        assert job.resumes_at == instant(waiting["resumes_at"])
