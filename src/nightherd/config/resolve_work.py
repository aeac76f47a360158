"""Work sources: what the agent and its schedule say, as one source; and what is wrong with the two together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from pydantic import BaseModel

from nightherd.config.report import Findings
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.work import WorkSource as WorkSchema
from nightherd.files.yaml_nodes import MappingNode, Node, problem_at
from nightherd.model.agents.agent import Agent
from nightherd.model.problem import Place, Problem, Severity
from nightherd.model.text import quote
from nightherd.model.work.source import GITHUB, PUBLIC_API, OnSuccess, WorkSource

PUBLIC_TOKENS = frozenset({"GITHUB_TOKEN", "GH_TOKEN"})
"""Variables whose token is for the public GitHub. Another server never gets it."""


def resolve_work(own: WorkSchema | None, inherited: WorkSchema | None) -> WorkSource | None:
    """The source of a schedule: what it says itself, over what its agent says. None without a source, or a repository."""
    layers = tuple(one for one in (own, inherited) if one is not None)
    if not layers or _first(layers, "type") != GITHUB:
        return None
    repo = _first(layers, "repo")
    labels, auth = _below(layers, "labels"), _below(layers, "auth")
    given = {
        "repo": repo,
        "base_url": _first(layers, "base_url"),
        "ready": _first(labels, "ready"),
        "in_progress": _first(labels, "in_progress"),
        "done": _first(labels, "done"),
        "failed": _first(labels, "failed"),
        "exclude_labels": _first(layers, "exclude_labels"),
        "cleanup_on_failure": _first(layers, "cleanup_on_failure"),
        "cleanup_in_progress": _first(layers, "cleanup_in_progress"),
        "max_attempts": _first(layers, "max_attempts"),
        "lock": _first(layers, "lock"),
        "token_env": _first(auth, "token_env"),
    }
    on_success = _first(layers, "on_success")
    if repo is None:
        return None
    said: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if on_success is not None:
        said["on_success"] = OnSuccess(on_success)
    return WorkSource(**said)


def _first(layers: Iterable[BaseModel], name: str) -> Any:
    """What the uppermost layer says that says something; None where none does."""
    return next((getattr(one, name) for one in layers if name in one.model_fields_set), None)


def _below(layers: Iterable[BaseModel], name: str) -> tuple[BaseModel, ...]:
    inner = (getattr(one, name) for one in layers)
    return tuple(one for one in inner if one is not None)


class _Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A source that is written down, with what it inherits."""

    path: str
    own: WorkSchema
    inherited: WorkSchema | None
    nodes: tuple[MappingNode, ...]
    """Where both are written, the uppermost first."""

    def at(self, key: str) -> Node:
        """Where the key is written; the source itself where it is not."""
        return next(
            (one for node in self.nodes if (one := node.get(key)) is not None), self.nodes[0]
        )


def check_work_sources(
    agent: Agent, checked: AgentSchema, node: MappingNode, findings: Findings, *, path: str
) -> None:
    """Every source is complete, its labels differ, and no token goes to a server that it is not for."""
    known: set[tuple[Place, str]] = set()
    for declared in _declared(checked, node, path):
        for problem in _problems(declared):
            # What a schedule inherits is wrong once.
            if (problem.place, problem.message) not in known:
                known.add((problem.place, problem.message))
                findings.add(problem)
    findings.extend(_unused(agent, node, path))


def _problems(declared: _Declared) -> Iterator[Problem]:
    path = declared.path
    source = resolve_work(declared.own, declared.inherited)
    if source is None:
        layers = [one for one in (declared.own, declared.inherited) if one is not None]
        if _first(layers, "type") == GITHUB:
            message = "a github work source needs 'repo'"
            yield problem_at(declared.at("type"), message, path=f"{path}.type")
        return
    yield from _alike_labels(source, declared)
    yield from _labels_with_commas(source, declared)
    if source.base_url.rstrip("/") != PUBLIC_API and source.token_env in PUBLIC_TOKENS:
        yield problem_at(
            declared.at("base_url"),
            f"{quote(source.token_env)} is for {PUBLIC_API}; another server needs a token of its own",
            path=f"{path}.base_url",
            hint="name its variable in 'auth.token_env'",
        )


def _alike_labels(source: WorkSource, declared: _Declared) -> Iterator[Problem]:
    """Labels that could not be told apart; one that says how work ended may stand for both ends."""
    taken: dict[str, str] = {}
    for key in ("ready", "in_progress", "done", "failed"):
        label = getattr(source, key)
        if label is None:
            continue
        other = taken.setdefault(label.casefold(), key)
        if other != key and other != "done":
            message = f"'labels.{other}' and 'labels.{key}' are both {quote(label)}"
            where = f"{declared.path}.labels.{key}"
            yield problem_at(declared.at("labels"), message, path=where)


def _labels_with_commas(source: WorkSource, declared: _Declared) -> Iterator[Problem]:
    """Labels that GitHub cannot list issues by: a comma separates several."""
    for key in ("ready", "in_progress"):
        label = getattr(source, key)
        if "," in label:
            message = (
                f"'labels.{key}' is {quote(label)}: GitHub lists no issues by a label with a comma"
            )
            where = f"{declared.path}.labels.{key}"
            yield problem_at(declared.at("labels"), message, path=where)


def _unused(agent: Agent, node: MappingNode, path: str) -> Iterator[Problem]:
    """The sources of schedules that no time makes due."""
    for schedule in agent.schedules.values():
        own = _of_schedule(node, schedule.name)
        if own is not None and schedule.rule is None:
            message = (
                "'work_source' has no effect here: schedules of type interval and cron take issues"
            )
            where = f"{path}.schedules.{schedule.name}.work_source"
            yield problem_at(own, message, path=where, severity=Severity.NOTICE)


def _declared(checked: AgentSchema, node: MappingNode, path: str) -> Iterator[_Declared]:
    of_agent = node.get("work_source")
    below = (of_agent,) if isinstance(of_agent, MappingNode) else ()
    if checked.work_source is not None:
        yield _Declared(
            path=f"{path}.work_source", own=checked.work_source, inherited=None, nodes=below
        )
    for key, schedule in (checked.schedules or {}).items():
        written = _of_schedule(node, key)
        if schedule.work_source is not None and written is not None:
            yield _Declared(
                path=f"{path}.schedules.{key}.work_source",
                own=schedule.work_source,
                inherited=checked.work_source,
                nodes=(written, *below),
            )


def _of_schedule(node: MappingNode, name: str) -> MappingNode | None:
    """Where the schedule of that name writes its source."""
    section = node.get("schedules")
    entry = section.entries.get(name) if isinstance(section, MappingNode) else None
    value = entry.value if entry is not None else None
    written = value.get("work_source") if isinstance(value, MappingNode) else None
    return written if isinstance(written, MappingNode) else None


def check_work_tokens(
    agents: Iterable[tuple[Agent, MappingNode]], environment: Mapping[str, str], findings: Findings
) -> None:
    """No token is used for two servers, and a variable that has none is told about once."""
    servers: dict[str, str] = {}
    missing: set[str] = set()
    for agent, node in agents:
        for schedule in agent.schedules.values():
            source = schedule.work
            if source is None:
                continue
            server = source.base_url.rstrip("/")
            known = servers.setdefault(source.token_env, server)
            place = _of_schedule(node, schedule.name) or node.get("work_source") or node
            path = f"agents.{agent.name}.schedules.{schedule.name}.work_source"
            if known != server:
                message = f"the token in {source.token_env} is used for {known}; {server} needs one of its own"
                findings.add(problem_at(place, message, path=path))
            if (
                not environment.get(source.token_env, "").strip()
                and source.token_env not in missing
            ):
                missing.add(source.token_env)
                message = f"no issue of {source.repo} is taken: {source.token_env} is not set"
                hint = f"put {source.token_env} into the environment, or into .env"
                findings.add(
                    problem_at(place, message, path=path, hint=hint, severity=Severity.NOTICE)
                )
