"""`claude`, its worker or both are killed in a worktree: the job goes on in it, and nothing it wrote is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from contextlib import suppress
from itertools import product
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.approval_places import Victim
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage, make_stage
from runtimes.claude.test_claude_versions import claude_processes
from runtimes.claude.test_claude_workspaces import CLERK, MOVED, bash, copies, persistent
from runtimes.claude.workspace_shop import FIRST, Shop, files_in
from runtimes.stage import until
from soak import often

EVERYTHING = [*product(("tool", "result"), Victim, ("cli", "sdk"))]
USUAL = [
    ("tool", Victim.CLAUDE, "cli"),
    ("tool", Victim.BOTH, "sdk"),
    ("result", Victim.WORKER, "cli"),
]
TRIALS = USUAL if often(1, soak=2) == 1 else EVERYTHING
ROUNDS = often(1, soak=5)
CALM = bash("echo calm-1 >> times")
LAST = bash("echo calm-2 >> times; rm half; echo whole > whole")


def fatal(place: str) -> Call:
    """Write two files, and go on for ever where the kill comes in the middle of it."""
    hang = "touch ../../began; tail -f /dev/null" if place == "tool" else "true"
    return bash(f"echo fatal-1 >> times; echo half > half; {hang}")


class StubbornModel(MessagesApi):
    """A model that makes every planned call which the conversation does not mention.

    Its first answer to the result of the second call never comes.
    """

    def __init__(self, place: str) -> None:
        super().__init__(Say(text="All done."))
        self._plan = {"calm-1": CALM, "fatal-1": fatal(place), "calm-2": LAST}
        self._place = place

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The next call that nothing in the request speaks of; the end when there is none."""
        done, name = super().take(asked)
        conversation = json.dumps(asked.body["messages"])
        for mark, call in self._plan.items():
            if mark not in conversation:
                is_held = self._place == "result" and len(self.asked) == 3
                hold = threading.Event() if is_held else None
                return Say(text="Next.", calls=(call,), hold=hold), name
        return done, name


def kill(victim: Victim, worker: subprocess.Popen[bytes], stage: ClaudeStage) -> None:
    if victim is not Victim.CLAUDE:
        worker.kill()
    if victim is not Victim.WORKER:
        for pid in claude_processes(stage):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def run_until_killed(herd: Shop, api: StubbornModel, place: str, victim: Victim) -> None:
    with herd.started("run", "clerk", "-p", "make it") as worker:
        if place == "tool":
            anyio.run(until, (herd.root / "began").exists)
        else:
            assert api.wait_until_asked(3, PATIENCE_S)
        kill(victim, worker, herd.stage)
        if victim is Victim.CLAUDE:
            worker.wait()
    anyio.run(until, lambda: herd.stage.processes() == {})
    herd.nightherd("worker", "--until-idle")


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize(("place", "victim", "runtime"), TRIALS)
@pytest.mark.timeout(300)
def test_job_goes_on_in_its_workspace_and_no_tool_runs_twice(
    tmp_path: Path,
    components: Components,
    slot: None,
    place: str,
    victim: Victim,
    runtime: str,
    number: int,
) -> None:
    stage = make_stage(tmp_path, components.claude(), runtime)
    with StubbornModel(place) as api:
        herd = Shop(stage, api, CLERK)
        run_until_killed(herd, api, place, victim)
        job = herd.job()
        diff = herd.data("jobs", "diff", job["id"])
        second = herd.data("jobs", "diff", job["id"], "--turn", "2")

    assert (job["status"], job["summary"]) == ("completed", "All done."), job
    files = files_in(herd.directory(job["id"]))
    assert files["times"].split() == [b"calm-1", b"fatal-1", b"calm-2"]
    assert len({line["extra"]["directory"] for line in herd.lines(job["id"], "workspace")}) == 1
    calls = [
        line["tool_use_id"] for line in herd.journal_of(job["id"]) if line["type"] == "tool_use"
    ]
    assert len(set(calls)) == len(calls) == 3
    taken = herd.lines(job["id"], "snapshot")
    held = [herd.files_at(snapshot) for snapshot in taken]
    cut = [one for one, files in zip(taken, held, strict=True) if files.get("half") == b"half\n"]
    assert len({one["extra"]["tree"] for one in cut}) == 1, "what the killed turn wrote, no more"
    if victim is not Victim.CLAUDE:
        assert (cut[-1]["epoch"], cut[-1]["extra"]["at"]) == (2, "start")
    began = {name: text.encode() for name, text in FIRST.items()}
    assert (held[0], held[-1]) == (began, files)
    assert {file["path"]: file["status"] for file in diff["files"]} == {
        "times": "added",
        "whole": "added",
    }
    assert [file["path"] for file in second["files"]] == ["half", "times"]
    assert stage.processes() == {}


CUT = "The conversation was cut right after you had called"
AGAIN = {
    "fork": ("session", "fork", "@last", "--at-message", "2", "--run", "-p", "OTHERWISE"),
    "job": ("run", "clerk", "-p", "OTHERWISE"),
}


@pytest.mark.either_runtime
@pytest.mark.parametrize("way", AGAIN)
@pytest.mark.timeout(240)
def test_agent_that_is_killed_before_it_answers_hears_once_of_its_new_directory(
    stage: ClaudeStage, way: str
) -> None:
    answers = (
        Say(text="I begin", calls=(bash("echo one > one"),)),
        Say(text="done"),
        Say(text="never heard", hold=threading.Event()),
        Say(text="I see"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(stage, api, persistent("clerk", scope="job"))
        first = herd.run("run", "clerk", "-p", "ORIGINAL")
        with herd.started(*AGAIN[way]) as worker:
            assert api.wait_until_asked(3, PATIENCE_S)
            worker.kill()
        anyio.run(until, lambda: stage.processes() == {})
        herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert (job["status"], job["summary"]) == ("completed", "I see")
    uses = [line["extra"]["origin"] for line in herd.lines(job["id"], "workspace")]
    assert uses == ["snapshot" if way == "fork" else "base", "kept"]
    told = [api.asked[-1].texts, *(asked.texts for asked in api.asked[2:3])]
    notices = {
        text[text.find(MOVED) :].split(")")[0] for texts in told for text in texts if MOVED in text
    }
    assert len(notices) == 1, "the same in both executions"
    assert str(herd.directory(first["id"])) in notices.pop()
    assert [copies(api.asked[-1], text) for text in (MOVED, "OTHERWISE", "ORIGINAL")] == [1, 1, 1]
    assert copies(api.asked[-1], CUT) == (1 if way == "fork" else 0)
    assert herd.by_hand(job["id"]) == []
