"""What a job of a work source is asked: the schedule's prompt with the issue, whose texts are other people's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.overrides import ISSUE_REPO
from nightherd.model.schedules.rule import Schedule
from nightherd.model.tagged_text import mark_untrusted
from nightherd.model.text import PLACE, input_values, neutralise, render, shorten
from nightherd.model.work.issue import Issue
from nightherd.model.work.source import PUBLIC_API, WorkSource

BODY_LIMIT = 65_536
"""Characters of an issue's text; GitHub has no longer ones."""
TITLE_LIMIT = 1_000
NAME_LIMIT = 100
DEFAULT_PROMPT = "Work on the issue below."
ISSUE_TEXTS = frozenset({"inputs.issue_title", "inputs.issue_body"})
ANY_ISSUE = Issue(number=1, title="A title", body="A text.")
"""Stands for the issue that will come, where a prompt is only checked."""


class IssueRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the job of an issue is asked, and its inputs."""

    prompt: str
    inputs: Mapping[str, Any]


def issue_request(
    agent: Agent, schedule: Schedule, source: WorkSource, issue: Issue
) -> IssueRequest:
    """Return what the job is asked. `InvalidValueError` when its prompt uses a value that there is not.

    The issue's texts are marked as untrusted in the inputs themselves, so they are marked wherever those are used. What
    the prompt does not place is put below it. Nothing in the texts is filled in.
    """
    inputs = {**schedule.inputs, **issue_inputs(source, issue)}
    template = schedule.prompt if schedule.prompt is not None else agent.default_prompt
    if template is None or not template.strip():
        template = DEFAULT_PROMPT
    prompt = render(template, {**input_values(inputs), "repo": source.repo})
    placed = {match[1] for match in PLACE.finditer(template)}
    if not placed & ISSUE_TEXTS:
        prompt = f"{prompt.rstrip()}\n\n{issue_block(source, issue)}"
    return IssueRequest(prompt=prompt, inputs=inputs)


def issue_inputs(source: WorkSource, issue: Issue) -> dict[str, Any]:
    """Return the inputs that a job of an issue has; texts of other people are marked."""
    where = _where(source, issue)
    return {
        "issue_number": issue.number,
        ISSUE_REPO: source.repo,
        "issue_url": issue_url(source, issue.number),
        "issue_title": mark_untrusted(shorten(issue.title, TITLE_LIMIT), where),
        "issue_body": mark_untrusted(issue.body[:BODY_LIMIT], where),
        "issue_author": _name(issue.author),
        "issue_labels": mark_untrusted(", ".join(_name(label) for label in issue.labels), where),
    }


def issue_block(source: WorkSource, issue: Issue) -> str:
    """Return the issue as a prompt has it."""
    text = f"\n{shorten(issue.title, TITLE_LIMIT)}\n\n{issue.body[:BODY_LIMIT]}\n"
    marked = mark_untrusted(text, _where(source, issue))
    return f"Issue #{issue.number} of {source.repo}, as its author wrote it:\n{marked}"


def issue_url(source: WorkSource, number: int) -> str:
    """Return where people read the issue."""
    if source.base_url.rstrip("/") == PUBLIC_API:
        return f"https://github.com/{source.repo}/issues/{number}"
    server = source.base_url.rstrip("/").removesuffix("/api/v3")
    return f"{server}/{source.repo}/issues/{number}"


def _where(source: WorkSource, issue: Issue) -> str:
    author = _name(issue.author)
    by = f" by {author}" if author else ""
    return f"issue {source.repo}#{issue.number}{by}"


def _name(text: str) -> str:
    return shorten(" ".join(neutralise(text).split()), NAME_LIMIT)
