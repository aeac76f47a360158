"""Killed around its end, a native job that fails, waits, tries again or is cancelled ends as it must, once.

Its provider fails for good, for a while, or for one question; or somebody cancels it while its child runs, and
who cancels is killed, or the worker that was told, or whoever comes after it. Cancelled stays cancelled, and
nothing of it runs any more, its child neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crash import native_trials
from crash.families import FLEET, TURN_COST, asked_in, edits_in, families, lay_counters
from crash.ground import (
    Ground,
    Place,
    check_calls,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
    whole_answers,
)
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.testing.fork_server import Ended
from nightherd.wiring.stores import open_reader
from soak import often

SEED = 20_261_115
WORK = ("worker", "--until-idle")
FAILING = 1
WAITING = 8
"""Exit codes of a run that fails, and of one that waits."""
EVERY = 10_000
"""Trials: as many as there are places."""
TRIALS = often(2, soak=EVERY)
"""For each way to end, at places that a seed chooses."""
KILLS = often(2, soak=100)
"""At least, for each way to end."""
CANCELLINGS = often(3, soak=EVERY)
"""Trials with a worker that is killed once a cancellation is on record, and with a canceller that is killed."""
CANCELLED = often(3, soak=30)
"""Workers at least that are killed, with those who come after them."""
TOLD = often(3, soak=5)
"""People who are killed: a cancellation has so many places."""

ENDING = """\
lease: 5m
mirror: false
limits: {per_day: 1000}
agents:
  - name: native
    runtime: native
    allowed_tools: [Edit]
    script:
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "one ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "two ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
"""
FAILED = "      - fail: {code: broken, message: no luck}\n"
DONE = "      - say: done\n      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}\n"

MakeGround = Callable[[str], Ground]


@dataclass(frozen=True)
class End:
    """A way to end: the fleet's last turn, what the provider does, and how the job then stands."""

    turn: str
    letters: str
    code: int
    status: JobStatus
    error_code: str | None
    turns: int
    trigger: TriggerPoint | None


ENDS = {
    "fails for good": End(
        FAILED, "", FAILING, JobStatus.FAILED, "broken", 2, TriggerPoint.ON_ERROR
    ),
    "fails for a while": End(
        DONE, ".x.xx", 0, JobStatus.COMPLETED, None, 3, None
    ),
    "fails for long": End(
        DONE, "." + "x" * 99, WAITING, JobStatus.SUSPENDED, "server_error", 1, TriggerPoint.ON_SUSPEND
    ),
}  # fmt: skip


def provider(ground: Ground) -> dict[str, Any]:
    return {"failing": str(ground.folder / "failing")}


def triggers_of(ground: Ground, job: Job) -> set[str]:
    reader = open_reader(ground.state)
    try:
        return {one.trigger for one in reader.list_checkpoints(job.id)}
    finally:
        reader.close()


def check_ended(ground: Ground, end: End) -> None:
    """As the way to end says, with nothing done twice and nothing paid twice."""
    job = ground.jobs()["a"]
    events = ground.journal(job)
    assert (job.status, job.error_code) == (end.status, end.error_code), job
    # Killed in its first turn, it asks for it once more: that may be when the provider fails already.
    is_short = job.status is JobStatus.SUSPENDED and job.turns < end.turns
    assert job.turns == end.turns or is_short, job
    assert whole_answers(events) == [*range(1, job.turns + 1)]
    check_calls(ground, "a", events)
    assert job.cost_microusd == asked_in(events) * TURN_COST
    check_rows_are_as_journals_say(ground)


def check_goes_on_when_the_provider_is_back(ground: Ground) -> None:
    job = ground.jobs()["a"]
    (ground.folder / "failing").write_text("")
    assert job.suspend_reason is SuspendReason.ERROR
    assert ground.command("jobs", "resume", job.id, "--quiet").status == 0, ground.shown()
    assert ground.command(*WORK).status == 0, ground.shown()
    check_ended(ground, ENDS["fails for a while"])


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", ENDS)
def test_killed_at_any_point_a_job_whose_provider_fails_ends_as_it_must(
    make_ground: MakeGround, name: str
) -> None:
    end = ENDS[name]
    ground = make_ground(ENDING + end.turn)
    ground.lay_counter("a")
    (ground.folder / "failing").write_text(end.letters)
    with ground.copied() as trial:
        ended = trial.run("native", "a", **provider(trial))
        assert ended.status == end.code, trial.shown()
        ways = places(ended.said)
        check_ended(trial, end)
        assert end.trigger is None or end.trigger in triggers_of(trial, trial.jobs()["a"])
    with ground.copied() as trial:
        assert is_killed(trial.run("native", "a", ways[len(ways) // 4], **provider(trial)))
        goings_on = places(trial.command(*WORK, **provider(trial)).said)

    # A sample is of the second half, where the end is; what comes before is killed elsewhere too.
    random = Random(SEED)
    late = ways if len(ways) <= TRIALS else ways[len(ways) // 2 :]
    chosen = random.sample(late, min(TRIALS, len(late)))
    kills = 0
    for number, first in enumerate(chosen):
        second = random.choice(goings_on)
        print(f"seed {SEED}, trial {number} of {len(chosen)}: {first}, then {second}")
        with ground.copied() as trial:
            both = [
                trial.run("native", "a", first, **provider(trial)),
                trial.command(*WORK, place=second, **provider(trial)),
            ]
            kills += sum(map(is_killed, both))
            assert trial.command(*WORK, **provider(trial)).status == 0, trial.shown()
            if not trial.jobs():
                continue
            check_ended(trial, end)
            if number % 3 == 0:
                check_doctor_leaves_nothing(trial)
            if end.status is JobStatus.SUSPENDED:
                check_goes_on_when_the_provider_is_back(trial)

    print(f"seed {SEED}, {name}: {kills} kills at {len(chosen)} of {len(ways)} places")
    assert kills >= KILLS


@dataclass(frozen=True)
class Cancelling:
    """A worker with a parent and its child, and people who cancel the parent while the child is held."""

    ground: Ground

    def path(self, name: str) -> Path:
        return self.ground.folder / name

    def order(self, name: str, *arguments: str, **more: Any) -> dict[str, Any]:
        return {
            "folder": str(self.ground.folder),
            "shown": str(self.path(f"shown-{name}")),
            "arguments": arguments,
            **more,
        }

    def run(self, worker: dict[str, Any], first: dict[str, Any]) -> tuple[Ended, Ended]:
        """The worker works as ordered and is told to stop by the first; where that one is killed, once more."""
        self.path("held").touch()
        job, _ = families(self.ground)["a"]
        cancel = ("jobs", "cancel", job.id)
        held = {"held": str(self.path("held")), "reached": str(self.path("reached"))}
        orders = [
            self.order("worker", *WORK, **held, **worker),
            self.order("first", *cancel, after=str(self.path("reached")), **first),
        ]
        if first:
            orders.append(self.order("again", *cancel, after=str(self.path("told"))))
        working, telling, *again = self.ground.server.begin(native_trials.COMMAND, *orders)
        told = telling.wait()
        self.path("told").touch()
        for one in again:
            one.wait()
        worked = working.wait()
        self.path("held").unlink()
        return worked, told

    def check_is_over(self) -> None:
        """Cancelled, with its child; what the child had still to do is not done."""
        parent, child = families(self.ground)["a"]
        assert child is not None
        for job in (parent, child):
            assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED), job
            assert job.cost_microusd == asked_in(self.ground.journal(job)) * TURN_COST
        assert self.ground.counted("a") == {"one": 1}
        assert self.ground.counted("a-child") == {"early": 1}
        calls = edits_in(self.ground.journal(parent))
        check_calls(self.ground, "a", calls)
        check_rows_are_as_journals_say(self.ground)


def held_family(make_ground: MakeGround) -> Ground:
    ground = make_ground(FLEET)
    lay_counters(ground, "a")
    arguments = ("run", "boss", "-p", "go", "--input", "tag=a", "--detach")
    assert ground.command(*arguments).status == 0, ground.shown()
    return ground


def ways_after_cancelling(ground: Ground) -> tuple[list[Place], list[Place]]:
    """The places that a worker passes from the held child on, and those of who cancels."""
    with ground.copied() as trial:
        cancelling = Cancelling(trial)
        worked, told = cancelling.run({}, {})
        assert (worked.status, told.status) == (0, 0), trial.shown()
        cancelling.check_is_over()
        parent, _ = families(trial)["a"]
        assert TriggerPoint.ON_CANCEL in triggers_of(trial, parent)
    with ground.copied() as trial:
        # Until it is held it passes as many as without anybody cancelling: what the rest is, is after that.
        alone = places(trial.command(*WORK).said)
    ways = places(worked.said)
    common = next(n for n, one in enumerate(ways) if n >= len(alone) or one != alone[n])
    return ways[common:], places(told.said)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_worker_killed_once_it_was_told_leaves_a_family_that_is_cancelled(
    make_ground: MakeGround,
) -> None:
    ground = held_family(make_ground)
    ways, _ = ways_after_cancelling(ground)

    random = Random(SEED)
    chosen = random.sample(ways, min(CANCELLINGS, len(ways)))
    kills = 0
    for number, place in enumerate(chosen):
        after = random.randint(1, 40)
        print(f"seed {SEED}, trial {number} of {len(chosen)}: {place}, then point {after}")
        with ground.copied() as trial:
            cancelling = Cancelling(trial)
            worked, told = cancelling.run({"point": place.point, "nth": place.nth}, {})
            assert told.status == 0, cancelling.path("shown-first").read_text()
            next_one = trial.command(*WORK, nth=after)
            kills += is_killed(worked) + is_killed(next_one)
            assert trial.command(*WORK).status == 0, trial.shown()
            cancelling.check_is_over()
            check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills at {len(chosen)} of {len(ways)} places")
    assert kills >= CANCELLED


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_killed_while_cancelling_somebody_cancels_all_or_nothing(make_ground: MakeGround) -> None:
    ground = held_family(make_ground)
    _, ways = ways_after_cancelling(ground)

    chosen = Random(SEED).sample(ways, min(CANCELLINGS, len(ways)))
    for place in chosen:
        print(f"seed {SEED}: {place}")
        with ground.copied() as trial:
            cancelling = Cancelling(trial)
            worked, told = cancelling.run({}, {"point": place.point, "nth": place.nth})
            assert (worked.status, is_killed(told)) == (0, True)
            cancelling.check_is_over()
            check_doctor_leaves_nothing(trial)
    assert len(chosen) >= TOLD
