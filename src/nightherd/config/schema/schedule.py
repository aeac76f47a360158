"""`schedules`: rules in time, each a reason for a job."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Self

from pydantic import Field, model_validator

from nightherd.config.schema.inbox import Approval
from nightherd.config.schema.limits import Limits
from nightherd.config.schema.notify import NotifyTarget
from nightherd.config.schema.types import (
    Count,
    Cron,
    Duration,
    Flag,
    Inputs,
    Model,
    Name,
    Span,
    Text,
    TimeZone,
    Whole,
    refuse,
)
from nightherd.config.schema.work import WorkSource
from nightherd.config.schema.workspace import Directory
from nightherd.model.schedules.due import SHORTEST
from nightherd.model.sessions.session import SessionMode

ScheduleType = Literal["interval", "cron", "webhook", "chat"]


class ScheduleTrigger(Model):
    """When a schedule is due, in the nested spelling."""

    type: ScheduleType = Field(description="What makes it due.")
    every: Span | None = Field(None, description="For interval: the time between two jobs.")
    expression: Cron | None = Field(None, description="For cron: the expression.")

    @model_validator(mode="after")
    def has_its_rule(self) -> Self:
        """The type and the rule must go together."""
        check_rule(self.type, every=self.every, cron=self.expression, names=("every", "expression"))
        return self


class Schedule(Model):
    """One rule in time and the job it makes."""

    name: Name | None = Field(None, description="Its name, in the list form.")
    trigger: ScheduleTrigger | None = Field(
        None, description="When it is due, as a nested mapping."
    )
    type: ScheduleType | None = Field(None, description="What makes it due.")
    interval: Span | None = Field(None, description="For interval: the time between two jobs.")
    cron: Cron | None = Field(
        None, description="For cron: five fields, six with seconds, or @daily and the like."
    )
    prompt: Text | None = Field(
        None, description="Prompt of the job; by default the agent's default_prompt."
    )
    inputs: Inputs | None = Field(None, description="Values for ${inputs.NAME} in the prompt.")
    enabled: Flag = Field(True, description="Whether it fires.")
    timezone: TimeZone | None = Field(None, description="Time zone of the cron expression.")
    jitter: Duration | None = Field(None, description="Spread each slot by up to this much.")
    max_overlap: Count | None = Field(
        None, description="How many of its jobs may run at the same time."
    )
    max_suspended: Count | None = Field(
        None, description="How many of its jobs may be suspended, where each has its own session."
    )
    catch_up: Literal["none", "one", "all"] | None = Field(
        None, description="Which missed slots are run later."
    )
    pause_after: Whole | None = Field(
        None, description="Failures in a row after which it pauses itself; 0 means never."
    )
    job_timeout: Span | None = Field(None, description="How long each of its jobs may run.")
    working_directory: Directory | None = Field(
        None, description="Where its jobs work; what is not set is as the agent sets it."
    )
    session: Session | None = Field(None, description="Session settings for its jobs alone.")
    limits: Limits | None = Field(None, description="Limits for its jobs alone.")
    approvals: tuple[Approval, ...] | None = Field(
        None, description="Calls of its jobs that a person has to allow first, besides the agent's."
    )
    notify: tuple[NotifyTarget, ...] | None = Field(
        None, description="Where people are told what happens to its jobs."
    )
    work_source: WorkSource | None = Field(
        None, description="Where its work comes from; what is not set is as the agent sets it."
    )
    resume_session: Flag | None = Field(
        None, description="Whether its jobs continue the agent's session."
    )
    output_to_file: Flag | None = Field(
        None, alias="outputToFile", description="Whether each job also writes a plain text log."
    )

    @model_validator(mode="after")
    def says_one_thing_about_sessions(self) -> Self:
        """`resume_session` and `session.mode` must not contradict each other."""
        if self.session is not None and self.resume_session is not None:
            is_shared = self.session.mode != "fresh_per_job"
            if is_shared != self.resume_session:
                word = "true" if self.resume_session else "false"
                message = (
                    f"'resume_session: {word}' contradicts 'session.mode: {self.session.mode}'"
                )
                raise refuse("conflict", message, key="resume_session")
        return self

    @model_validator(mode="after")
    def is_due_somehow(self) -> Self:
        """One spelling of when it is due, complete."""
        flat = [key for key in ("type", "interval", "cron") if getattr(self, key) is not None]
        if self.trigger is not None:
            if flat:
                message = f"'trigger' and {flat[0]!r} both set when it is due; use only one"
                raise refuse("incomplete", message, key=flat[0])
            return self
        if not flat:
            message = "a schedule needs 'type' with 'interval' or 'cron', or a 'trigger'"
            raise refuse("incomplete", message)
        kind = self.type or ("interval" if self.interval is not None else "cron")
        check_rule(kind, every=self.interval, cron=self.cron, names=("interval", "cron"))
        return self


class NamedSchedule(Schedule):
    """A schedule in the list form."""

    name: Name = Field(description="Its name.")


def check_rule(kind: str, *, every: object, cron: object, names: tuple[str, str]) -> None:
    """Refuse a rule that its type does not go with."""
    if isinstance(every, timedelta) and every < SHORTEST:
        raise refuse("incomplete", "an interval is at least 1s", key=names[0])
    given = {names[0]: every is not None, names[1]: cron is not None}
    wanted = {"interval": names[0], "cron": names[1]}.get(kind)
    for name, is_given in given.items():
        if is_given and name != wanted:
            raise refuse("incomplete", f"{name!r} does not go with type {kind}", key=name)
    if wanted is not None and not given[wanted]:
        raise refuse("incomplete", f"a schedule of type {kind} needs {wanted!r}", key="type")


Mode = Literal["fresh_per_job", "persistent", "per_channel"]


class Session(Model):
    """How jobs share context, and how long that context lives."""

    mode: Mode = Field(
        SessionMode.FRESH_PER_JOB.value,
        description="fresh_per_job starts every job clean, persistent keeps one session for all jobs, per_channel one for each chat channel.",
    )
    timeout: Span | None = Field(
        None,
        description="How old a session may grow before a new one begins; without idle_timeout, how long it may go unused; under fresh_per_job, how long a job may run.",
    )
    idle_timeout: Span | None = Field(
        None,
        description="How long a session may be unused before a new one starts; a day if neither is set.",
    )
    max_context_tokens: Count | None = Field(
        None, description="Tokens of context beyond which older messages are summarised."
    )
    context_window: Count | None = Field(
        None,
        description="How many of the latest messages a summary leaves as they are; 20 when absent.",
    )
    auto_resume: Flag = Field(True, description="Whether an interrupted job resumes by itself.")
    resume_timeout: Span | None = Field(
        None, description="How long after an interruption a job still resumes by itself."
    )
    max_turns: Count | None = Field(
        None, description="Maximum turns of a job if the agent sets none."
    )
    model: Text | None = Field(None, description="Model when the agent does not name one itself.")
