"""Rows: what decisions may ask of the state as it is, inside the transaction that will write."""

from __future__ import annotations

from typing import Protocol, TypeVar

from nightherd.model.ids import JobId
from nightherd.model.job import Job
from nightherd.model.session import Session, SessionKey

RowT = TypeVar("RowT")


class Rows(Protocol):
    """The rows as they are now."""

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key."""

    def job_with_dedupe_key(self, key: str) -> Job | None: ...

    def current_session(self, key: SessionKey) -> Session | None:
        """The newest session of the key that is not over; None for `fresh_per_job`, which shares none."""

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        """The agent's running job that was submitted first, leaving out `besides`."""

    def has_open_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        """Whether the schedule has a job that has not ended, leaving out `besides`."""

    def next_job_number(self) -> int: ...
    def next_session_number(self) -> int: ...
    def next_checkpoint_number(self, job_id: JobId) -> int: ...
