"""Watch: what looks at a run while it goes on: what it uses, and where a bookmark is due.

An execution asks its watch at the few places there are and obeys what it says; how limits are kept and
checkpoints are made is no matter of the execution's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nightherd.engine.recorder import Recorder
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Agent
from nightherd.model.change import Change
from nightherd.model.event import Event
from nightherd.model.job import Job, JobTexts
from nightherd.model.outcome import Outcome, Tally
from nightherd.model.suspension import Suspension
from nightherd.model.trigger_point import TriggerPoint


class Watch(Protocol):
    """Looks at one execution. What it returns stops the run: the job waits, or fails when `ends_job` says so."""

    async def before_start(self) -> Suspension | None:
        """Asked once, when the journal is open and before the runtime runs."""

    def time_left(self) -> float | None:
        """Seconds after which the run is to be stopped, asked once before it starts; None for no end."""

    def out_of_time(self) -> Suspension:
        """What the job comes to when that time has passed."""

    async def at(self, point: TriggerPoint) -> None:
        """Told by the runtime where it is (`RuntimeRequest.at`)."""

    async def after(self, event: Event, tally: Tally) -> Suspension | None:
        """Asked after every recorded event; `tally` is what the whole record comes to with it."""

    async def may_spend(self, microusd: int, tokens: int) -> Suspension | None:
        """Asked by the runtime before it asks a model, with the worst case (`RuntimeRequest.may_spend`)."""

    def closing(self, end: Suspension | Outcome) -> Sequence[Change]:
        """Asked once, after the run and before the journal's last line.

        What it returns belongs before the change that suspends or settles, in the same `apply`.
        """


class NoWatch:
    """Nothing is watched: nothing happens, and it costs nothing."""

    async def before_start(self) -> Suspension | None:
        return None

    def time_left(self) -> float | None:
        return None

    def out_of_time(self) -> Suspension:
        raise AssertionError("there is no end to what is not watched")

    async def at(self, point: TriggerPoint) -> None:
        return None

    async def after(self, event: Event, tally: Tally) -> Suspension | None:
        return None

    async def may_spend(self, microusd: int, tokens: int) -> Suspension | None:
        return None

    def closing(self, end: Suspension | Outcome) -> Sequence[Change]:
        return ()


def make_watch(
    job: Job, agent: Agent, texts: JobTexts, recorder: Recorder, workshop: Workshop
) -> Watch:
    """The watch of one execution of `job`, which this worker has taken."""
    return NoWatch()
