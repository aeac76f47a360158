"""What needs a person: approvals."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nightherd.config.schema.types import Count, DenyRule, Model, Name, Span


class Approval(Model):
    """Calls that a person has to allow first."""

    tool: DenyRule = Field(
        description="Rule for the calls, as in allowed_tools: `Bash(git push:*)`, `mcp__github__*`."
    )
    approvers: tuple[Name, ...] = Field(
        (),
        description="Who may answer, by the name of their token; else everybody who may use the fleet.",
    )
    quorum: Count = Field(1, description="How many different people have to approve.")
    expires: Span | None = Field(None, description="How long to wait for an answer; else for ever.")
    on_expiry: Literal["reject", "fail"] = Field(
        "reject", description="What happens then: the call is rejected, or the job fails."
    )
    remind: tuple[Span, ...] = Field((), description="When to remind people, counted from asking.")
