"""Bodies: what requests may say, checked where they enter."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from nightherd.model.limits.limits import LimitName
from nightherd.model.sessions.session import SessionMode

LIMITS = "What it may use, as in {'spend': '0.50', 'turns': '20', 'duration': '1h'}."
Line = Annotated[str, StringConstraints(min_length=1, max_length=200)]
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

    agent: Line = Field(description="Who is to do it.")
    prompt: Prompt | None = Field(None, description="What is asked; else the agent's own prompt.")
    inputs: dict[InputName, InputValue] = Field({}, description="Values for ${inputs.NAME}.")
    priority: int = Field(0, ge=-1_000, le=1_000, description="More important ones go first.")
    channel: Line | None = Field(None, description="The conversation it belongs to.")
    session: SessionMode | None = Field(
        None, strict=False, description="How it shares its session, instead of how the agent says."
    )
    resume: Line | None = Field(None, description="The session it goes on in.")
    fork: Line | None = Field(None, description="The session it begins as a branch of.")
    at_message: Place | None = Field(None, description="The branch keeps messages 1 to this.")
    at_seq: Place | None = Field(None, description="The branch keeps what was said by this event.")
    at_checkpoint: Place | None = Field(None, description="The branch keeps what was said by then.")
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


class Resumption(Body):
    """How a job goes on."""

    prompt: Prompt | None = Field(None, description="What it is told besides.")
    limits: LimitTexts = Field({}, description=LIMITS)
    at_checkpoint: Place | None = Field(
        None, description="Go on from there; a new job in a branch, if it was left."
    )


class SessionResumption(Body):
    """How a session goes on."""

    agent: Line | None = Field(None, description="Who goes on in it, if it came from elsewhere.")
    prompt: Prompt | None = Field(None, description="What it is told besides.")


class Word(Body):
    """Somebody's word about a schedule."""

    by: Line | None = Field(None, description="Who says so.")


class NewRule(Word):
    """Another rule for a schedule."""

    rule: Line = Field(description="An interval such as 30m, or a cron expression.")


IF_HELD = "if-held"
WAIT: Final = "wait"
REFUSE: Final = "refuse"
