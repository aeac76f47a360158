"""`session` in the fleet file, as the engine sees it."""

from __future__ import annotations

from datetime import timedelta

from config.folder import Folder
from nightherd.model.sessions.session import SessionMode, SessionTerms


def test_every_session_key_reaches_the_agent(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: cli
            session:
              mode: persistent
              timeout: 7d
              idle_timeout: 2h
              max_context_tokens: 100000
              context_window: 50
              auto_resume: false
              resume_timeout: 1h
              max_turns: 7
              model: small
        """)

    agent = folder.agent("a")

    assert agent.session == SessionTerms(
        mode=SessionMode.PERSISTENT,
        timeout=timedelta(days=7),
        idle_timeout=timedelta(hours=2),
        max_context_tokens=100_000,
        context_window=50,
        auto_resume=False,
        resume_timeout=timedelta(hours=1),
        max_turns=7,
        model="small",
    )
    assert (agent.max_turns, agent.model, agent.session_mode) == (7, "small", "persistent")


def test_what_the_agent_says_itself_comes_before_its_session(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - {name: a, runtime: cli, model: big, max_turns: 3, session: {model: small, max_turns: 7}}
        """)

    agent = folder.agent("a")

    assert (agent.model, agent.max_turns) == ("big", 3)


def test_the_timeout_of_fresh_sessions_bounds_the_job(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - {name: a, session: {timeout: 30m}}
          - {name: b, session: {timeout: 30m}, job_timeout: 10m}
          - {name: c, session: {timeout: 30m, mode: persistent}}
        """)

    agents = folder.load().fleet.agents

    assert [agents[name].job_timeout for name in "abc"] == [
        timedelta(minutes=30),
        timedelta(minutes=10),
        None,
    ]
