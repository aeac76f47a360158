"""The topics of a stream: what a client wants to hear of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId, parse_job_id
from nightherd.model.workflows.run import RUN_ID, RunId
from nightherd.views.streams.rows import (
    AGENT,
    ITEM,
    JOB,
    NODE,
    RUN,
    SCHEDULE,
    SESSION,
    Touched,
)

LISTS: Final[Mapping[str, str]] = {
    "jobs": JOB,
    "inbox": ITEM,
    "runs": RUN,
    "sessions": SESSION,
    "schedules": SCHEDULE,
    "agents": AGENT,
}
"""By topic, the kind of its rows."""
OF_RUN = frozenset({RUN, NODE, JOB, ITEM})
"""The kinds of rows that followers of one run get."""
MOST_FOLLOWED = 64
"""Jobs and runs that one stream follows."""


class Topics(msgspec.Struct, frozen=True, kw_only=True):
    """What one stream is about."""

    kinds: frozenset[str] = frozenset()
    jobs: Mapping[JobId, int | None] = msgspec.field(default_factory=dict)
    """By followed job, the event after which it is followed; None for the last one."""
    runs: frozenset[RunId] = frozenset()

    def wants(self, touched: Touched) -> bool:
        """Whether a changed row is sent."""
        if touched.kind in self.kinds or (touched.kind == JOB and touched.id in self.jobs):
            return True
        return touched.run_id in self.runs and touched.kind in OF_RUN

    @property
    def lists(self) -> list[str]:
        """The topics that are lists or runs: what a client fetches again when changes were left out."""
        return [
            *(topic for topic, kind in LISTS.items() if kind in self.kinds),
            *(f"run:{run_id}" for run_id in sorted(self.runs)),
        ]


def parse_topics(text: str) -> Topics:
    """Return the topics in `text`, apart by commas; `InvalidValueError` names the one that is none."""
    kinds: set[str] = set()
    jobs: dict[JobId, int | None] = {}
    runs: set[RunId] = set()
    for topic in filter(None, text.split(",")):
        name, _, value = topic.partition(":")
        if topic in LISTS:
            kinds.add(LISTS[topic])
        elif name == "job":
            job, at, seq = value.partition("@")
            if at and not (seq.isascii() and seq.isdecimal() and len(seq) <= 15):
                raise InvalidValueError(f"{topic[:100]!r}: after @ comes the number of an event")
            jobs[parse_job_id(job)] = int(seq) if at else None
        elif name == "run" and RUN_ID.fullmatch(value):
            runs.add(RunId(value))
        else:
            raise InvalidValueError(
                f"{topic[:100]!r} is not a topic",
                hint=f"topics are {', '.join(LISTS)}, job:JOB and run:RUN, with whole ids",
            )
    if not (kinds or jobs or runs):
        raise InvalidValueError("a stream needs a topic", hint="add ?topics=jobs,inbox")
    if len(jobs) + len(runs) > MOST_FOLLOWED:
        raise InvalidValueError(f"one stream follows at most {MOST_FOLLOWED} jobs and runs")
    return Topics(kinds=frozenset(kinds), jobs=jobs, runs=frozenset(runs))
