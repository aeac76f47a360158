"""Job options: what one job has other than its agent, stored with it so that every execution has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.decoding import convert
from nightherd.model.ids import JobId
from nightherd.model.units import format_duration, parse_duration

KEPT_KEYS = 16
"""How many keys of earlier requests a job keeps."""


class FollowUp(msgspec.Struct, frozen=True, kw_only=True):
    """The new prompt of a resumed job, and the epoch after which it was given."""

    text: str
    after_epoch: int


class ParentLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of a job above this one, as they were when it made this one."""

    job: JobId
    limits: Mapping[str, int]
    fail: tuple[str, ...] = ()
    """The limits at which that job fails instead of waiting."""


class JobOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What replaces the agent's own settings for one job; None leaves them."""

    model: str | None = None
    max_turns: int | None = None
    job_timeout: timedelta | None = None
    limits: Mapping[str, int] | None = None
    """Maxima by the name of the limit: whole numbers, a duration in milliseconds."""
    required_caps: tuple[str, ...] | None = None
    within: tuple[ParentLimits, ...] = ()
    """The jobs above it, the topmost first."""
    follow_up: FollowUp | None = None
    resume_keys: tuple[str, ...] = ()
    """The dedupe keys of the latest requests that resumed the job or raised its limits."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> JobOptions:
        """Read options as they are stored; unknown keys are passed over. `ValueError` for what no job can have."""
        if not document:
            return NO_OPTIONS
        fields = {**document}
        timeout = fields.pop("job_timeout", None)
        options = convert(fields, cls, strict=False)
        if timeout is None:
            return options
        return msgspec.structs.replace(options, job_timeout=parse_duration(str(timeout)))

    def document(self) -> dict[str, Any]:
        """The options as they are stored: only what is set."""
        document: dict[str, Any] = msgspec.to_builtins(self, builtin_types=(timedelta,))
        if self.job_timeout is not None:
            document["job_timeout"] = format_duration(self.job_timeout)
        return document

    def merged(self, other: JobOptions) -> JobOptions:
        """These options with what `other` sets in place of their own."""
        return msgspec.structs.replace(
            self,
            **{
                name: value
                for name, value in msgspec.structs.asdict(other).items()
                if value is not None and value != ()
            },
        )

    def for_retry(self) -> JobOptions:
        """The options for a new job with the same work: all but the prompts it was resumed with."""
        return msgspec.structs.replace(self, within=(), follow_up=None, resume_keys=())

    def with_resume_key(self, key: str | None) -> JobOptions:
        """These options with the key of a request that resumed the job or raised its limits."""
        if key is None:
            return self
        return msgspec.structs.replace(self, resume_keys=(*self.resume_keys, key)[-KEPT_KEYS:])


NO_OPTIONS = JobOptions()
