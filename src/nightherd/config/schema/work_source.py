"""`work_source`: where work is taken from."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from nightherd.config.schema.types import Filling, Flag, Model, Text, Texts, refuse, shaped

Repository = Annotated[
    str, shaped(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", "a repository; write owner/repository")
]


class WorkLabels(Model):
    """Labels that say where an item of work stands."""

    ready: Text = Field("ready", description="Marks work that may be taken.")
    in_progress: Text = Field("agent-working", description="Marks work that was taken.")


class WorkAuth(Model):
    """How to sign in."""

    token_env: Filling = Field("GITHUB_TOKEN", description="Variable that holds the token.")


class WorkSource(Model):
    """Where work is taken from."""

    type: Filling = Field(description="Kind of source, such as github.")
    repo: Repository | None = Field(None, description="For github: owner/repository.")
    labels: WorkLabels | None = Field(None, description="Labels that say where work stands.")
    exclude_labels: Texts = Field((), description="Labels of work to leave alone.")
    cleanup_on_failure: Flag = Field(True, description="Whether failed work is given back.")
    cleanup_in_progress: Flag | None = Field(
        None, description="Whether work left taken by a crash is given back."
    )
    auth: WorkAuth | None = Field(None, description="How to sign in.")

    @model_validator(mode="after")
    def github_has_a_repository(self) -> Self:
        """GitHub work comes from one repository; other kinds have none of its keys."""
        if self.type == "github" and self.repo is None:
            raise refuse("incomplete", "a github work source needs 'repo'", key="type")
        return self
