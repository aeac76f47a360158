"""Ids and names: how they look, how they are made from a given time and random source, how they are checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NewType

from nightherd.errors import InvalidValueError

JobId = NewType("JobId", str)
SessionId = NewType("SessionId", str)
ExecutionId = NewType("ExecutionId", str)
WorkerId = NewType("WorkerId", str)

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
JOB_ID = re.compile(r"job-[0-9]{4}-[0-9]{2}-[0-9]{2}-[a-z0-9]{6}")
SESSION_ID = re.compile(r"sess-[a-z0-9]{8}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
NAME_LIMIT = 100

RandomText = Callable[[int], str]
"""Gives that many characters of `ALPHABET`, from a cryptographic source in production."""


def generate_job_id(at: datetime, random_text: RandomText) -> JobId:
    """A fresh job id; its date is the UTC date of `at`. Uniqueness is the store's to check."""
    return JobId(f"job-{at.astimezone(UTC):%Y-%m-%d}-{random_text(6)}")


def generate_session_id(random_text: RandomText) -> SessionId:
    """A fresh session id. Uniqueness is the store's to check."""
    return SessionId(f"sess-{random_text(8)}")


def generate_execution_id(job_id: JobId, epoch: int) -> ExecutionId:
    """The id of a job's execution: one per epoch, so it needs no randomness to be unique."""
    return ExecutionId(f"{job_id}.{epoch}")


def generate_worker_id(random_text: RandomText) -> WorkerId:
    """A fresh worker id."""
    return WorkerId(f"worker-{random_text(8)}")


def parse_job_id(text: str) -> JobId:
    """`text` as a job id, or `InvalidValueError`."""
    if JOB_ID.fullmatch(text) is None:
        raise InvalidValueError(f"{text!r} is not a job id (job-YYYY-MM-DD-xxxxxx)")
    return JobId(text)


def parse_session_id(text: str) -> SessionId:
    """`text` as a session id, or `InvalidValueError`."""
    if SESSION_ID.fullmatch(text) is None:
        raise InvalidValueError(f"{text!r} is not a session id (sess-xxxxxxxx)")
    return SessionId(text)


def check_name(text: str) -> str:
    """`text` if it can name an agent, fleet or schedule: it becomes part of file names.

    Dots separate fleet from agent, so a name has none; letters, digits, `_` and `-` are what is left.
    """
    if len(text) > NAME_LIMIT:
        raise InvalidValueError(
            f"a name of {len(text)} characters; at most {NAME_LIMIT} are allowed"
        )
    if NAME.fullmatch(text) is None:
        raise InvalidValueError(
            f"{text!r} is not a name: letters, digits, '_' and '-', beginning with a letter or digit"
        )
    return text
