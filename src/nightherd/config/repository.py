"""The repository an agent works on, and what has to be on disk where it works: checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from nightherd.config.merge import absolute_path, plain_value
from nightherd.config.report import Findings
from nightherd.config.schema.types import typed
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.config.working_directory import KEY, directories_of
from nightherd.errors import InvalidValueError
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, problem_at, with_entry
from nightherd.model.agents.agent import Agent
from nightherd.model.problem import Severity
from nightherd.model.text import quote
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.repository import (
    ACCESS_USER,
    LOCAL,
    Repository,
    parse_repository,
    without_credentials,
)

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
"""Variables with a token of GitHub; the first that is set counts."""


def hide_credentials(agent: MappingNode) -> MappingNode:
    """`agent` whose `repo` is shown without the credentials that are written in it."""
    node = agent.get("repo")
    if not isinstance(node, ScalarNode) or node.secret:
        return agent
    shown = without_credentials(node.text)
    if shown == node.text:
        return agent
    hidden = ScalarNode(node.spot, node.text, node.plain, shown, True)
    return with_entry(agent, "repo", hidden)


def repository_of(agent: MappingNode, environ: Mapping[str, str]) -> Repository | None:
    """Return what the agent's `repo` names; None for nothing that can be cloned.

    A path counts from the file that it is written in. `InvalidValueError` when its credentials cannot be used.
    """
    node = agent.get("repo")
    if not isinstance(node, ScalarNode) or plain_value(node) is None:
        return None
    is_path = node.text.startswith(LOCAL)
    repository = parse_repository(absolute_path(node, environ) if is_path else node.text)
    token = next((token for name in TOKENS if (token := environ.get(name, "").strip())), None)
    if repository is None or token is None or not repository.takes_github_token:
        return repository
    return Repository(url=repository.url, username=ACCESS_USER, password=token)


def check_repository(
    agent: MappingNode, environ: Mapping[str, str], findings: Findings, *, path: str
) -> Repository | None:
    """`repository_of`; an address that cannot be used is reported at its place, where it would be used."""
    try:
        return repository_of(agent, environ)
    except InvalidValueError as error:
        node = agent.get("repo")
        if node is not None and KEY in agent.entries:
            findings.add(problem_at(node, error.message, path=f"{path}.repo"))
        return None


def check_directories(
    agent: MappingNode, environ: Mapping[str, str], findings: Findings, *, path: str
) -> None:
    """A working directory that is named must be there, unless the first job clones it."""
    for where, entry in directories_of(agent):
        named: Node | None = entry.value
        if isinstance(named, MappingNode):
            named = named.get("root")
        if not isinstance(named, ScalarNode) or named.plain or "\0" in named.text:
            continue
        if os.path.isdir(named.text):  # noqa: PTH112 (any text is a question, never an exception)
            continue
        message = f"the directory {quote(named.shown, limit=SHOWN_PATH_LIMIT)} does not exist"
        url = _cloned_from(agent, entry.value, environ)
        severity = Severity.ERROR
        if url is not None and not os.path.lexists(named.text):
            message += f": the first job clones {url}"
            severity = Severity.NOTICE
        findings.add(problem_at(named, message, path=f"{path}.{where}", severity=severity))


def _cloned_from(agent: MappingNode, directory: Node, environ: Mapping[str, str]) -> str | None:
    """The address that a missing directory is cloned from, as people may see it."""
    clones = directory.get("auto_clone") if isinstance(directory, MappingNode) else None
    if isinstance(clones, ScalarNode) and typed(plain_value(clones)) is False:
        return None
    try:
        repository = repository_of(agent, environ)
    except InvalidValueError:
        return None
    if repository is None:
        return None
    repo = agent.get("repo")
    return repo.shown if isinstance(repo, ScalarNode) and repo.secret else repository.url


def check_worktrees(agent: Agent, node: MappingNode, findings: Findings, *, path: str) -> None:
    """Worktrees are made of a git repository: it must be one, or become one by cloning."""
    for where, entry in directories_of(node):
        mode = entry.value.entries.get("mode") if isinstance(entry.value, MappingNode) else None
        policy, root = _resolved(agent, where)
        if mode is None or policy.mode is not WorkspaceMode.WORKTREE:
            continue
        if not os.path.isdir(root) or is_in_repository(root):  # noqa: PTH112
            continue
        message = f"mode worktree needs a git repository, and {quote(root, limit=SHOWN_PATH_LIMIT)} is in none"
        hint, severity = "run `git init` there and commit, or use mode copy", Severity.ERROR
        if policy.clone is not None:
            hint = "it is not cloned because it exists: remove it, or name another directory"
            severity = Severity.NOTICE
        place = f"{path}.{where}.mode"
        findings.add(problem_at(mode.value, message, path=place, hint=hint, severity=severity))


def _resolved(agent: Agent, where: str) -> tuple[WorkspacePolicy, str]:
    """What an agent, or its schedule, says at a place of `directories_of`."""
    section, _, name = where.rpartition(".")[0].partition(".")
    schedule = agent.schedules.get(name) if section else None
    if schedule is None:
        return agent.workspace, agent.working_directory
    return (
        schedule.workspace or agent.workspace,
        schedule.working_directory or agent.working_directory,
    )


def is_in_repository(path: str) -> bool:
    """Whether a directory is a git repository or lies in one, as far as its files show."""
    if all(os.path.exists(os.path.join(path, name)) for name in ("HEAD", "objects", "refs")):  # noqa: PTH110, PTH118
        return True
    while True:
        if os.path.lexists(os.path.join(path, ".git")):  # noqa: PTH118
            return True
        parent = os.path.dirname(path)  # noqa: PTH120
        if parent == path:
            return False
        path = parent
