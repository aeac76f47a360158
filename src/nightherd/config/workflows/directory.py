"""`working_directory` of a workflow: where its phases work, absolute and checked to be there."""

from __future__ import annotations

import os

from nightherd.config.merge import absolute_path
from nightherd.config.report import Findings
from nightherd.config.repository import is_in_repository
from nightherd.config.resolve_workspace import resolve_policy
from nightherd.config.schema.workspace import WorkflowDirectory
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.config.workflows.sources import WorkflowHome
from nightherd.config.working_directory import KEY
from nightherd.files.yaml_nodes import MappingNode, ScalarNode, problem_at
from nightherd.model.text import quote
from nightherd.model.workspaces.policy import SHARED, WorkspaceMode, WorkspacePolicy, WorkspaceScope

Placed = tuple[str | None, WorkspacePolicy | None]
"""The directory, and whether phases work in it or in one made from it; nothing where each agent has its own."""


def resolve_directory(
    directory: WorkflowDirectory | None,
    node: MappingNode,
    *,
    home: WorkflowHome,
    findings: Findings,
    where: str,
) -> Placed:
    """Return where the phases of a workflow work; its phases share one workspace if nothing else is said.

    A path counts from the file that it is written in; without one it is the directory of the fleet file.
    """
    if directory is None:
        return None, None
    policy = resolve_policy(directory, scope=WorkspaceScope.RUN)
    policy = SHARED if policy.is_shared else policy
    given = node.get(KEY)
    named = given.get("root") if isinstance(given, MappingNode) else given
    root, path = home.directory, f"{where}.{KEY}"
    if isinstance(named, ScalarNode) and directory.root is not None:
        root = absolute_path(named, home.environ)
        if not os.path.isdir(root):  # noqa: PTH112 (any text is a question, never an exception)
            shown = quote(named.shown, limit=SHOWN_PATH_LIMIT)
            message = f"the directory {shown} does not exist"
            findings.add(problem_at(named, message, path=path))
            return root, policy
    mode = given.get("mode") if isinstance(given, MappingNode) else None
    if mode is not None and policy.mode is WorkspaceMode.WORKTREE and not is_in_repository(root):
        shown = quote(root, limit=SHOWN_PATH_LIMIT)
        message = f"mode worktree needs a git repository, and {shown} is in none"
        hint = "run `git init` there and commit, or use mode copy"
        findings.add(problem_at(mode, message, path=f"{path}.mode", hint=hint))
    return root, policy
