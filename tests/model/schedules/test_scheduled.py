"""What a schedule means for its jobs: their agent, their session, their prompt, and the text they leave."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from config.folder import Folder
from engine.bench import AGENT
from nightherd.errors import InvalidValueError, NotFoundError
from nightherd.model.limits.limits import Limits
from nightherd.model.schedules.jobs import find_schedule, for_schedule, prompt_text, session_terms
from nightherd.model.schedules.rule import CatchUp, Cron, Interval, Schedule
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.model.units import MicroUsd
from surfaces.drivers import Cli

NIGHTLY = Schedule(name="nightly", rule=Interval(every=timedelta(hours=1)))
PERSISTENT = replace(AGENT, session=SessionTerms(mode=SessionMode.PERSISTENT))


def test_a_job_of_no_schedule_has_the_agent_as_it_is() -> None:
    agent = replace(AGENT, schedules={"nightly": NIGHTLY})

    assert for_schedule(agent, None) is agent
    assert for_schedule(agent, "gone") is agent


def test_the_stricter_time_limit_counts() -> None:
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    strict = replace(AGENT, job_timeout=minute, schedules={"n": replace(NIGHTLY, job_timeout=hour)})
    loose = replace(AGENT, job_timeout=hour, schedules={"n": replace(NIGHTLY, job_timeout=minute)})

    assert for_schedule(strict, "n").job_timeout == minute
    assert for_schedule(loose, "n").job_timeout == minute


def test_limits_of_the_schedule_stand_before_those_of_the_agent() -> None:
    limited = replace(NIGHTLY, limits=Limits(spend=MicroUsd(5)))
    agent = replace(AGENT, limits=Limits(spend=MicroUsd(9), turns=3), schedules={"n": limited})

    limits = for_schedule(agent, "n").limits

    assert (limits.spend, limits.turns) == (5, 3)


def test_turns_of_the_schedule_stand_before_the_agents_other_spelling_of_them() -> None:
    own = replace(NIGHTLY, limits=Limits(turns=9))
    session = replace(own, session=SessionTerms(max_turns=4))
    agent = replace(AGENT, max_turns=2, schedules={"own": own, "session": session, "n": NIGHTLY})

    assert for_schedule(agent, "own").max_turns is None
    assert for_schedule(agent, "session").max_turns == 4
    assert for_schedule(agent, "n").max_turns == 2


@pytest.mark.parametrize(
    ("agent", "schedule", "mode"),
    [
        (AGENT, NIGHTLY, None),
        (PERSISTENT, NIGHTLY, None),
        (PERSISTENT, replace(NIGHTLY, resume_session=True), None),
        (PERSISTENT, replace(NIGHTLY, resume_session=False), SessionMode.FRESH_PER_JOB),
        (AGENT, replace(NIGHTLY, resume_session=True), SessionMode.PERSISTENT),
        (AGENT, replace(NIGHTLY, session=PERSISTENT.session), SessionMode.PERSISTENT),
        (PERSISTENT, replace(NIGHTLY, session=AGENT.session), SessionMode.FRESH_PER_JOB),
    ],
)
def test_a_schedule_shares_the_agents_session_unless_it_says_otherwise(
    agent: object, schedule: Schedule, mode: SessionMode | None
) -> None:
    assert isinstance(agent, type(AGENT))
    terms = session_terms(agent, schedule)

    assert (None if terms is None else terms.mode) == mode


def test_the_prompt_is_the_schedules_else_the_agents() -> None:
    assert (
        prompt_text(AGENT, replace(NIGHTLY, prompt="go ${inputs.x}"), {"inputs.x": "on"}) == "go on"
    )
    assert prompt_text(replace(AGENT, default_prompt="look"), NIGHTLY, {}) == "look"
    with pytest.raises(InvalidValueError, match="no 'prompt'"):
        prompt_text(replace(AGENT, default_prompt=None), NIGHTLY, {})


def test_schedules_are_found_by_agent_and_name() -> None:
    agents = {"coder": replace(AGENT, schedules={"nightly": NIGHTLY})}

    assert find_schedule(agents, "coder/nightly")[1] is NIGHTLY
    for wrong, error in (
        ("coder", InvalidValueError),
        ("coder/x", NotFoundError),
        ("x/y", NotFoundError),
    ):
        with pytest.raises(error):
            find_schedule(agents, wrong)


def test_both_spellings_of_a_schedule_mean_the_same(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.fleet("""\
        agents:
          - name: a
            default_prompt: go
            schedules:
              flat: {cron: "0 9 * * 1", timezone: Europe/Zurich, catch_up: all, max_overlap: 2, pause_after: 0}
              nested: {trigger: {type: interval, every: 30m}, jitter: 1m, inputs: {n: 3}}
              hand: {type: webhook}
        """)

    schedules = folder.load().fleet.agents["a"].schedules

    flat, nested = schedules["flat"], schedules["nested"]
    assert flat.rule == Cron(expression="0 9 * * 1", timezone="Europe/Zurich")
    assert (flat.catch_up, flat.max_overlap, flat.pause_after) == (CatchUp.ALL, 2, 0)
    assert nested.rule == Interval(every=timedelta(minutes=30))
    assert (nested.jitter, nested.inputs) == (timedelta(minutes=1), {"n": 3})
    assert (nested.max_overlap, nested.catch_up, nested.pause_after) == (1, CatchUp.NONE, 5)
    assert schedules["hand"].rule is None


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("{interval: 500ms, prompt: go}", "an interval is at least 1s"),
        ("{interval: 1h}", "schedule 'x' has no 'prompt', and its agent no 'default_prompt'"),
        ("{interval: 1h, prompt: '${inputs.y}'}", "${inputs.y} is used but this job has no"),
        (
            "{interval: 1h, prompt: go, resume_session: true, session: {mode: fresh_per_job}}",
            "'resume_session: true' contradicts 'session.mode: fresh_per_job'",
        ),
        ("{interval: 1h, prompt: go, name: y}", "has the different name 'y'"),
    ],
)
def test_a_schedule_that_could_not_work_is_a_located_mistake(
    tmp_path: Path, schedule: str, said: str
) -> None:
    folder = Folder(tmp_path)
    folder.fleet(f"agents: [{{name: a, schedules: {{x: {schedule}}}}}]\n")

    (error,) = folder.errors()

    assert error.startswith("nightherd.yaml:1:")
    assert said in error


def test_a_job_leaves_its_record_as_text_where_its_schedule_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    (tmp_path / "nightherd.yaml").write_text("""\
agents:
  - name: a
    runtime: scripted
    default_prompt: go
    schedules:
      told: {interval: 1d, outputToFile: true}
      quiet: {interval: 1d}
    script: [{say: All quiet.}]
""")
    monkeypatch.chdir(tmp_path)
    told = cli("schedule", "run", "a/told", "--json").data["id"]
    quiet = cli("schedule", "run", "a/quiet", "--json").data["id"]

    assert cli("worker", "--until-idle").code == 0

    jobs = tmp_path / ".nightherd" / "jobs"
    assert "All quiet." in (jobs / told / "output.log").read_text()
    assert not (jobs / quiet / "output.log").exists()
