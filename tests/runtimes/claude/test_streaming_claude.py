"""Streaming with the real `claude`: text is there before the answer ends, and is kept when it is cut off."""

from __future__ import annotations

import os
import signal
import threading

import anyio
import pytest

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.commanded import Commanded
from runtimes.stage import until

FLEET = """\
defaults: {{runtime: {runtime}}}
lease: 20s
heartbeat: 2s
agents:
  - name: helper
    permission_mode: bypassPermissions
    working_directory: work
"""
TEXT = "The answer is forty-two."
FIRST = "The answer is "


class Herd(Commanded):
    """A fleet on the stage, and the command to run it with."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi) -> None:
        super().__init__(stage.root, FLEET.format(runtime=stage.runtime), stage.environment(api))

    @property
    def live_text(self) -> str:
        """What the side file has."""
        return "".join(path.read_text() for path in self.root.glob(".nightherd/jobs/*.text"))

    def until_streamed(self) -> None:
        """The first words are there, and no line of the journal has them."""
        anyio.run(until, lambda: FIRST in self.live_text)
        assert not [line for line in self.journal() if line["type"] == "assistant"]

    def answers(self) -> list[tuple[str, bool]]:
        """The texts on record, and whether they are partial."""
        return [
            (line["content"], line.get("partial", False))
            for line in self.journal()
            if line["type"] == "assistant" and line.get("content")
        ]


def held(gate: threading.Event | None = None) -> Say:
    """An answer that stops after its first words until the gate is opened."""
    return Say(text=TEXT, hold=gate or threading.Event(), said_first=len(FIRST))


def test_text_is_there_before_the_answer_ends_and_on_record_once(stage: ClaudeStage) -> None:
    gate = threading.Event()
    with MessagesApi(held(gate)) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", "go") as run:
            herd.until_streamed()
            gate.set()
            assert run.wait(90) == 0

    assert herd.answers() == [(TEXT, False)]
    assert not list(herd.root.glob(".nightherd/jobs/*.text"))


def test_a_cancelled_answer_keeps_its_text_and_the_session_goes_on(stage: ClaudeStage) -> None:
    with MessagesApi(held(), Say(text="Forty-three.")) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", "go") as run:
            herd.until_streamed()
            herd.nightherd("jobs", "cancel", "@last")
            run.wait(90)
        cancelled = herd.job()
        answers = herd.answers()
        done = herd.nightherd("run", "helper", "--resume", cancelled["session_id"], "-p", "again")

    assert cancelled["status"] == "cancelled"
    assert cancelled["turns"] == 0
    assert answers == [(FIRST, True)]
    assert done.returncode == 0, done.stderr
    assert herd.job()["summary"] == "Forty-three."


def test_text_is_kept_when_claude_is_killed(cli_stage: ClaudeStage) -> None:
    with MessagesApi(held(), Say(text="Forty-three.")) as api:
        herd = Herd(cli_stage, api)
        with herd.started("run", "helper", "-p", "go") as run:
            herd.until_streamed()
            for pid in claudes(cli_stage):
                os.kill(pid, signal.SIGKILL)
            run.wait(90)

    assert herd.answers()[0] == (FIRST, True)
    assert [text for text, _ in herd.answers()].count(FIRST) == 1


@pytest.mark.either_runtime
def test_text_is_kept_when_the_worker_is_killed_and_the_job_completes(stage: ClaudeStage) -> None:
    with MessagesApi(held(), Say(text="Forty-three.")) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", "go") as run:
            herd.until_streamed()
            run.kill()
        done = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert done.returncode == 0, done.stderr
    assert job["status"] == "completed"
    assert herd.answers() == [(FIRST, True), ("Forty-three.", False)]
    assert not list(herd.root.glob(".nightherd/jobs/*.text"))


def claudes(stage: ClaudeStage) -> list[int]:
    """The processes of `claude` itself."""
    program = os.path.realpath(stage.programs / "claude")
    return [pid for pid in stage.processes() if os.path.realpath(f"/proc/{pid}/exe") == program]
