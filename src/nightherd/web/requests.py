"""Bodies: what requests may say, checked where they enter."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, StringConstraints

from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.bulk import MOST_JOBS
from nightherd.model.limits.limits import LimitName
from nightherd.model.sessions.session import SessionMode

LIMITS = "Limits of the job, such as {'spend': '0.50', 'turns': '20', 'duration': '1h'}."
Line = Annotated[str, StringConstraints(min_length=1, max_length=200)]
CommitMessage = Annotated[str, StringConstraints(min_length=1, max_length=65_536)]
RemoteName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$")]
"""No address and no path: what a remote is, the user's own repository says."""
SessionName = Annotated[str, StringConstraints(max_length=1_000)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]
Place = Annotated[int, Field(ge=0, le=2**53)]
InputName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
InputText = Annotated[str, StringConstraints(max_length=100_000)]
InputNumber = (
    Annotated[int, Field(ge=-(2**53), le=2**53)] | Annotated[float, Field(allow_inf_nan=False)]
)
InputValue = InputText | bool | InputNumber | None


class Body(BaseModel):
    """What all bodies share: no unknown keys, no guessing of types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


LimitTexts = dict[
    Annotated[LimitName, Field(strict=False)], Annotated[str, StringConstraints(max_length=40)]
]


class NewJob(Body):
    """A piece of work for an agent."""

    agent: Line = Field(description="Agent that runs the job.")
    prompt: Prompt | None = Field(None, description="Prompt; by default the agent's own.")
    inputs: dict[InputName, InputValue] = Field({}, description="Values for ${inputs.NAME}.")
    priority: int = Field(0, ge=-1_000, le=1_000, description="More important ones go first.")
    channel: Line | None = Field(
        None, description="Channel of the job, for session mode per_channel."
    )
    session: SessionMode | None = Field(
        None, strict=False, description="Session mode to use instead of the agent's."
    )
    resume: Line | None = Field(None, description="Session to continue.")
    fork: Line | None = Field(None, description="Session to fork for the job.")
    at_message: Place | None = Field(None, description="The branch keeps messages 1 to this.")
    at_seq: Place | None = Field(None, description="Keep messages up to this event.")
    at_checkpoint: Place | None = Field(None, description="Keep messages up to this checkpoint.")
    at_job: Line | None = Field(
        None, description="Whose event or checkpoint; else the session's last job's."
    )
    branch: bool = Field(
        False, description="Run it in a branch of that session, at the last complete turn."
    )
    model: Line | None = Field(None, description="Another model than the agent's.")
    max_turns: int | None = Field(None, ge=1, le=1_000_000, description="Turns it may take.")
    job_timeout: Line | None = Field(None, description="How long it may run, as in 30m.")
    limits: LimitTexts = Field({}, description=LIMITS)


class NewBulk(Body):
    """Many jobs, and what to do to each."""

    verb: Literal["cancel", "retry"] = Field(description="What to do.")
    jobs: Annotated[list[Line], Field(min_length=1, max_length=MOST_JOBS)] | None = Field(
        None, description="Whole ids of jobs."
    )
    q: Annotated[str, StringConstraints(max_length=2_000)] | None = Field(
        None, description="Filter of jobs, instead of ids."
    )
    dry_run: bool = Field(False, description="Only say what would be done.")


class ReleasedIssue(Body):
    """An issue that is given back."""

    issue: Line = Field(description="OWNER/NAME#7, or #7 where that is clear.")
    force: bool = Field(
        False, description="Write nothing more to GitHub about an issue that cannot be settled."
    )


class RemovedLock(Body):
    """A lock of a fleet that is gone for good."""

    issue: Line = Field(description="OWNER/NAME#7, or #7 where that is clear.")
    lock: str = Field(max_length=200, description="The lock as it was listed.")


class NewApply(Body):
    """How a job's changes are made to the files in its agent's directory."""

    only_this_job: bool = Field(
        False, description="Leave out changes of earlier jobs in the same workspace."
    )
    dry_run: bool = Field(False, description="Only say what would change.")


class NewMerge(Body):
    """How a job's changes are merged."""

    into: Line | None = Field(None, description="Branch; by default the workspace's base.")
    message: CommitMessage | None = Field(None, description="Message of the commit.")
    fast_forward: bool = Field(True, description="False makes a merge commit in any case.")
    dry_run: bool = Field(False, description="Only say what would change.")


class NewPush(Body):
    """How a job's changes are pushed."""

    remote: RemoteName | None = Field(None, description="Name of a remote; by default origin.")
    message: CommitMessage | None = Field(None, description="Message of the commit.")
    force: bool = Field(
        False, description="Replace the remote's branch if it is as it was last seen."
    )
    dry_run: bool = Field(False, description="Only say what would change.")


class Resumption(Body):
    """How a job continues."""

    prompt: Prompt | None = Field(None, description="Prompt text.")
    limits: LimitTexts = Field({}, description=LIMITS)
    at_checkpoint: Place | None = Field(
        None, description="Checkpoint to resume from; later messages are left out."
    )


class NewAnswer(Body):
    """What a person says to an item of the inbox."""

    verdict: Verdict = Field(strict=False, description="One of the item's verdicts, or comment.")
    text: Annotated[str, StringConstraints(max_length=65_536)] | None = Field(
        None, description="Reply, reason or comment."
    )
    input: dict[str, JsonValue] | None = Field(
        None, description="Arguments to run an approved call with, instead of the agent's."
    )
    seen_hash: Line | None = Field(None, description="Hash of the item as the person was shown it.")
    limits: LimitTexts = Field({}, description="New maxima, for raise.")


class SessionResumption(Body):
    """How a session continues."""

    agent: Line | None = Field(None, description="Agent to continue an imported session.")
    prompt: Prompt | None = Field(None, description="Prompt text.")


class NewSessionFork(Body):
    """Where a session is forked, and what is asked in the fork."""

    at_message: Place | None = Field(None, description="The fork keeps messages 1 to this.")
    at_seq: Place | None = Field(None, description="Keep messages up to this event.")
    at_checkpoint: Place | None = Field(None, description="Keep messages up to this checkpoint.")
    at_job: Line | None = Field(
        None, description="Whose event or checkpoint; else the session's last job's."
    )
    name: SessionName | None = Field(None, description="Name of the fork.")
    prompt: Prompt | None = Field(None, description="Prompt of a job that starts in the fork.")
    agent: Line | None = Field(None, description="Agent of that job, for an imported session.")


class NewJobFork(Body):
    """Where a job is forked, and what is asked there."""

    prompt: Prompt | None = Field(None, description="Prompt text.")
    inputs: dict[InputName, InputValue] = Field({}, description="Values for ${inputs.NAME}.")
    at_message: Place | None = Field(None, description="Keep messages 1 to this of the session.")
    at_seq: Place | None = Field(None, description="Keep messages up to this event of the job.")
    at_checkpoint: Place | None = Field(None, description="Keep messages up to this checkpoint.")


class SessionUpdate(Body):
    """What is different about a session from now on."""

    name: SessionName | None = Field(description="Name; null removes it.")


class NewSessionCleanup(Body):
    """Which sessions are cleaned up."""

    older_than: Line | None = Field(
        None, description="Every ended session that was not used for so long, as in 7d."
    )
    dry_run: bool = Field(False, description="Only say what would be cleaned up.")


class NewSessionImport(Body):
    """A session that was exported."""

    document: dict[str, JsonValue] = Field(
        description="What `session export` and `GET /v1/sessions/SESSION/export` give as JSON."
    )
    dry_run: bool = Field(False, description="Only say what would be imported.")


class Nothing(Body):
    """No settings. Who makes a change is the caller, whatever a body says."""


class NewRule(Body):
    """Another rule for a schedule."""

    rule: Line = Field(description="An interval such as 30m, or a cron expression.")


class NewRun(Body):
    """A run of a workflow."""

    inputs: dict[InputName, JsonValue] = Field({}, description="Values of the declared inputs.")


class NewFork(Body):
    """Where a run is forked."""

    at: Line = Field(description="Phase to run anew, with all that depends on it.")
    inputs: dict[InputName, JsonValue] | None = Field(
        None, description="Inputs other than the run had; the rest stay."
    )


class NewSignal(Body):
    """An event for a run."""

    event: Line = Field(description="Name of the event.")
    payload: JsonValue = Field(None, description="Value of the event.")


class NewLimits(Body):
    """More for a run."""

    limits: Annotated[LimitTexts, Field(min_length=1)] = Field(
        description="New maxima, such as {'spend': '5'}."
    )


class Scratch(RootModel[dict[Line, JsonValue]]):
    """Values of a run's scratch; null removes one."""

    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)


class WorkflowSwitch(Body):
    """Whether a workflow may be started."""

    enabled: bool | None = Field(description="Null lets the workflow's file count again.")


WAIT: Final = "wait"
REFUSE: Final = "refuse"
