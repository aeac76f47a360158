"""`working_directory`: where jobs work, from what that is made, and how long it is kept."""

from __future__ import annotations

import posixpath
import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import (
    Filling,
    Flag,
    Model,
    Size,
    Span,
    Text,
    Whole,
    reading,
    refuse,
)
from nightherd.errors import InvalidValueError
from nightherd.model.workspaces.policy import LARGEST_FILE

ISOLATED_KEYS = ("scope", "base", "setup", "keep", "snapshot")
"""Keys that only a workspace of its own can have."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./]|[./]$|\.lock(/|$)|^@$")


def check_inner_path(text: str) -> str:
    """Return a path inside the workspace in its shortest spelling."""
    if text.startswith(("/", "~")):
        raise InvalidValueError(f"{text!r} is not relative to the workspace")
    if ".." in text.split("/"):
        raise InvalidValueError(f"{text!r} leads out of the workspace: '..' is not allowed")
    path = posixpath.normpath(text)
    if not text or path == "." or _CONTROL.search(text):
        raise InvalidValueError(f"{text!r} is not the path of a file or directory in the workspace")
    if path.split("/")[0].lower() == ".git":
        raise InvalidValueError(f"{text!r} belongs to git and differs in each workspace")
    return path


def check_revision(text: str) -> str:
    """Return the name of a branch, tag or commit."""
    if not text or text.startswith("-") or _CONTROL.search(text):
        raise InvalidValueError(f"{text!r} is not a branch, tag or commit")
    return text


def check_branch(text: str) -> str:
    """Return the name of a branch."""
    if not text or _NO_BRANCH.search(text):
        raise InvalidValueError(f"{text!r} is not the name of a branch")
    return text


InnerPath = Annotated[
    str, BeforeValidator(reading("shape", check_inner_path), json_schema_input_type=str)
]
Revision = Annotated[
    str, BeforeValidator(reading("shape", check_revision), json_schema_input_type=str)
]
Branch = Annotated[str, BeforeValidator(reading("shape", check_branch), json_schema_input_type=str)]


class SetupCommand(Model):
    """A command that prepares a workspace before the agent works in it."""

    run: Filling = Field(description="Shell command, run in the workspace.")
    files: tuple[InnerPath, ...] = Field(
        (), description="Files of the workspace: the command runs again only when one has changed."
    )
    paths: tuple[InnerPath, ...] = Field(
        (),
        description="What the command creates; copied to other workspaces whose `files` are the same.",
    )
    timeout: Span = Field(timedelta(minutes=10), description="How long the command may run.")


def from_command(value: object) -> object:
    """A bare text is the command."""
    return {"run": value} if isinstance(value, str) else value


def from_single(value: object) -> object:
    """A single text is a list of one command."""
    return (value,) if isinstance(value, str) else value


AnyCommand = Annotated[
    SetupCommand, BeforeValidator(from_command, json_schema_input_type=Text | SetupCommand)
]
Setup = Annotated[
    tuple[AnyCommand, ...],
    BeforeValidator(from_single, json_schema_input_type=tuple[AnyCommand, ...] | Text),
]


class SnapshotSettings(Model):
    """What a snapshot of a workspace contains."""

    ignored: Flag = Field(False, description="Whether it contains files that git ignores.")
    largest_file: Size = Field(LARGEST_FILE, description="Largest file that it contains.")


class WorkspaceSettings(Model):
    """A directory that jobs work in, or that their workspaces are made from."""

    root: Filling | None = Field(
        None, description="The directory; else that of the file that declares the agent."
    )
    mode: Literal["shared", "worktree", "copy", "empty"] = Field(
        "shared",
        description="shared: jobs work in the directory itself; worktree: in a git worktree on a branch of their own; copy: in a copy; empty: in an empty directory.",
    )
    scope: Literal["job", "session", "run"] | None = Field(
        None,
        description="What has a workspace of its own: each job (the default), each session, or a job with all its child jobs.",
    )
    base: Revision | None = Field(
        None,
        description="Branch, tag or commit a worktree begins at; else what is checked out, or the default branch of a clone.",
    )
    setup: Setup | None = Field(None, description="Commands that prepare a workspace.")
    keep: Literal["always", "on_failure", "until_merged", "never"] | None = Field(
        None,
        description="How long a workspace is kept; until_merged by default, always for mode empty.",
    )
    snapshot: SnapshotSettings | None = Field(
        None, description="What the snapshots of its files contain."
    )

    @model_validator(mode="after")
    def goes_with_its_mode(self) -> Self:
        """What is said of a workspace of its own needs a mode that makes one."""
        given = [key for key in ISOLATED_KEYS if getattr(self, key) is not None]
        if self.mode == "shared" and given:
            message = (
                f"{given[0]!r} needs a workspace of its own: set 'mode' to worktree, copy or empty"
            )
            raise refuse("conflict", message, key=given[0])
        if self.base is not None and self.mode != "worktree":
            message = f"'base' is where a git worktree begins: it does not go with mode {self.mode}"
            raise refuse("conflict", message, key="base")
        return self


class WorkingDirectory(WorkspaceSettings):
    """Where the agent works, and how to get it there."""

    auto_clone: Flag = Field(
        True,
        description="Whether `repo` is cloned when the directory is missing, and fetched before each job.",
    )
    clone_depth: Whole = Field(1, description="Commits to clone; 0 for all.")
    default_branch: Branch = Field(
        "main", description="Branch of `repo` that is checked out, and that worktrees begin at."
    )


class WorkflowDirectory(WorkspaceSettings):
    """Where the phases of a workflow work."""

    root: Filling | None = Field(None, description="The directory; else that of the fleet file.")
    scope: Literal["job", "session", "run"] | None = Field(
        None,
        description="What has a workspace of its own: the run with all its phases (the default), each session, or each job.",
    )


def from_root(value: object) -> object:
    """A bare text is the directory itself."""
    return {"root": value} if isinstance(value, str) else value


Directory = Annotated[
    WorkingDirectory, BeforeValidator(from_root, json_schema_input_type=Text | WorkingDirectory)
]
AnyWorkflowDirectory = Annotated[
    WorkflowDirectory, BeforeValidator(from_root, json_schema_input_type=Text | WorkflowDirectory)
]
