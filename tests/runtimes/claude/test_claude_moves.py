"""A session of the real `claude` that moves between this machine and a container, in both directions."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from components import Components
from docker_engine import DockerEngine
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.claude.test_claude_containers import QUIET
from runtimes.commanded import Commanded
from runtimes.container.container_herd import USER

pytestmark = pytest.mark.timeout(240)
MOVES = pytest.mark.parametrize("moves_in", [True, False], ids=["in", "out"])
PLACES = {True: "in a container", False: "on this machine"}
WAITS = 8
"""How a command ends whose job waits for a person."""
ASK = Call("mcp__people__ask_person", {"question": "Which colour?", "options": ["red"]})


class Mover(Commanded):
    """One agent with a session that its jobs share; each command says where the agent works."""

    def __init__(self, stage: ClaudeStage, engine: DockerEngine, image: str, claude: str) -> None:
        self.stage = stage
        self.docker = {
            "image": image,
            "socket": engine.socket_path,
            "network": "host",
            "volumes": [f"{claude}:/usr/local/bin/claude:ro"],
            "env": QUIET,
        }
        super().__init__(stage.root, "", {})
        os.chown(stage.work, USER, USER)

    def do(self, api: MessagesApi, *words: str, inside: bool) -> dict[str, Any]:
        """Run commands with the agent in a container, or on this machine; the last job."""
        agent = {
            "name": "mover",
            "runtime": self.stage.runtime,
            "permission_mode": "bypassPermissions",
            "working_directory": "work",
            "session": {"mode": "persistent"},
            "questions": True,
            "docker": {"enabled": inside, **self.docker},
        }
        (self.root / "nightherd.yaml").write_text(json.dumps({"agents": [agent]}))
        self.environment = self.stage.environment(api)
        for command in (("reload", "--accept"), words):
            done = self.nightherd(*command)
            assert done.returncode in (0, WAITS), (done.stdout, done.stderr)
        return self.job()

    def warnings(self, job: dict[str, Any]) -> dict[str, str]:
        """What the job's journal warns of, by its code."""
        lines = (self.root / ".nightherd/jobs" / job["output_file"]).read_text().splitlines()
        found = [line for line in map(json.loads, lines) if line.get("subtype") == "warning"]
        return {line["extra"]["code"]: line["content"] for line in found}

    def is_session_inside(self, job: dict[str, Any]) -> bool:
        """Whether the session of the job is in a container."""
        shown = self.nightherd("session", "show", job["session_id"], "--json")
        return bool(json.loads(shown.stdout)["data"]["docker_enabled"])


@pytest.fixture
def mover(
    stage: ClaudeStage, docker_engine: DockerEngine, container_image: str, components: Components
) -> Mover:
    return Mover(stage, docker_engine, container_image, str(components.claude()))


def api_at(engine: DockerEngine, *answers: Say, inside: bool) -> MessagesApi:
    """An API that is reached from a container with the engine's network, or from this machine."""
    return engine.in_network(lambda: MessagesApi(*answers)) if inside else MessagesApi(*answers)


def said(api: MessagesApi) -> list[str]:
    """What the last request had of the conversation, without what Claude itself adds."""
    return [text for text in api.asked[-1].texts if not text.startswith(("#", "<"))]


@MOVES
@pytest.mark.either_runtime
def test_next_job_of_an_agent_that_moved_begins_a_session_and_says_why(
    mover: Mover, docker_engine: DockerEngine, moves_in: bool
) -> None:
    with (
        api_at(docker_engine, Say(text="Noted."), inside=not moves_in) as before,
        api_at(docker_engine, Say(text="Who?"), inside=moves_in) as after,
    ):
        first = mover.do(before, "run", "mover", "-p", "I am Ada", inside=not moves_in)
        second = mover.do(after, "run", "mover", "-p", "who am I?", inside=moves_in)

    assert said(after) == ["who am I?"]
    assert first["session_id"] != second["session_id"]
    reason = (
        "the agent is in a container now, and it was not"
        if moves_in
        else "it was in a container, and the agent is not any more"
    )
    assert second["session_note"] == f"session {first['session_id']}: {reason}"
    assert mover.warnings(second) == {"session_not_resumed": second["session_note"]}


@MOVES
@pytest.mark.either_runtime
def test_session_that_is_resumed_at_the_other_place_goes_on_with_all_that_was_said(
    mover: Mover, docker_engine: DockerEngine, moves_in: bool
) -> None:
    one, two, three, four = (Say(text=text) for text in ("Noted.", "Ada.", "Still.", "Yes."))
    with (
        api_at(docker_engine, one, three, inside=not moves_in) as here,
        api_at(docker_engine, two, four, inside=moves_in) as there,
    ):
        first = mover.do(here, "run", "mover", "-p", "I am Ada", inside=not moves_in)
        resume = "session", "resume", first["session_id"], "-p"
        second = mover.do(there, *resume, "who am I?", inside=moves_in)
        at_second, is_inside = said(there), mover.is_session_inside(second)
        third = mover.do(here, *resume, "sure?", inside=not moves_in)
        # It is where its last job ran: the next one there continues in it unasked.
        again = mover.do(here, "run", "mover", "-p", "again?", inside=not moves_in)

    assert len({job["runtime_session_id"] for job in (first, second, third, again)}) == 1
    assert at_second == ["I am Ada", "Noted.", "who am I?"]
    assert said(here) == [*at_second, "Ada.", "sure?", "Still.", "again?"]
    assert is_inside is moves_in
    for job, inside in ((second, moves_in), (third, not moves_in)):
        warnings = mover.warnings(job)
        moved = f"session {first['session_id']} was {PLACES[not inside]} before, and continues {PLACES[inside]}"
        assert set(warnings) == {"session_moved", "transcript_put_back"}
        assert warnings["session_moved"] == moved
    assert mover.warnings(again) == {}


@MOVES
@pytest.mark.either_runtime
def test_job_that_waited_for_an_answer_continues_at_the_other_place(
    mover: Mover, docker_engine: DockerEngine, moves_in: bool
) -> None:
    with (
        api_at(docker_engine, Say(text="?", calls=(ASK,)), inside=not moves_in) as before,
        api_at(docker_engine, Say(text="Red it is."), inside=moves_in) as after,
    ):
        asked = mover.do(before, "run", "mover", "-p", "paint it", inside=not moves_in)
        mover.do(after, "inbox", "reply", "@last", "-m", "red", inside=moves_in)
        done = mover.do(after, "worker", "--until-idle", inside=moves_in)

    assert (asked["status"], asked["suspend_reason"]) == ("suspended", "approval")
    assert (done["id"], done["status"], done["summary"]) == (
        asked["id"],
        "completed",
        "Red it is.",
    )
    assert "paint it" in said(after)
    assert "red" in str(after.asked[-1].body["messages"])
    assert "session_moved" in mover.warnings(done)
    assert mover.is_session_inside(done) is moves_in


@pytest.mark.either_runtime
def test_session_of_a_container_is_continued_by_hand_out_here_and_inside_again(
    mover: Mover, docker_engine: DockerEngine, components: Components
) -> None:
    program = str(components.claude())

    def by_hand(session: str, prompt: str) -> str:
        mover.environment = mover.stage.environment(outside)
        taken = mover.nightherd("session", "takeover", session, "--json")
        assert "runs on this machine itself" in taken.stderr
        found = json.loads(taken.stdout)["data"]
        words = [program, *found["command"][1:], "-p", prompt]
        environment, place = mover.environment, found["directory"]
        done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    with (
        api_at(docker_engine, Say(text="Noted."), Say(text="Blue."), inside=True) as inside,
        api_at(docker_engine, Say(text="Noted too."), Say(text="Bye."), inside=False) as outside,
    ):
        session = mover.do(inside, "run", "mover", "-p", "I am Ada", inside=True)["session_id"]
        answer = by_hand(session, "I like blue")
        last = mover.do(inside, "session", "resume", session, "-p", "which colour?", inside=True)
        bye = by_hand(session, "thanks")

    spoken = ["I am Ada", "Noted.", "I like blue", "Noted too.", "which colour?", "Blue.", "thanks"]
    assert (answer, bye) == ("Noted too.", "Bye.")
    assert [text for text in said(inside) if text in spoken] == spoken[:5]
    assert [text for text in said(outside) if text in spoken] == spoken
    assert set(mover.warnings(last)) == {"transcript_put_back"}
    journal = (mover.root / ".nightherd/jobs" / last["output_file"]).read_text()
    added = [line for line in map(json.loads, journal.splitlines()) if is_by_hand(line)]
    assert [line["content"] for line in added] == ["I like blue", "Noted too."]


def is_by_hand(line: dict[str, Any]) -> bool:
    """Whether a person said it, or was told it, outside nightherd."""
    return (line.get("extra") or {}).get("by") == "hand"
