"""Bodies: what requests may say, checked where they enter."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Line = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]
InputName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
InputText = Annotated[str, StringConstraints(max_length=100_000)]


class Body(BaseModel):
    """What all bodies share: no unknown keys, no guessing of types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class NewJob(Body):
    """A piece of work for an agent."""

    agent: Line = Field(description="Who is to do it.")
    prompt: Prompt | None = Field(None, description="What is asked; else the agent's own prompt.")
    inputs: dict[InputName, InputText] = Field({}, description="Values for ${inputs.NAME}.")
    priority: int = Field(0, ge=-1_000, le=1_000, description="More important ones go first.")
    channel: Line | None = Field(None, description="The conversation it belongs to.")


class Resumption(Body):
    """How a job goes on."""

    prompt: Prompt | None = Field(None, description="What it is told besides.")
