"""What a fleet file says about notifications, resolved: every target with its address, by one name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from nightherd.config.not_active import entries_at
from nightherd.config.report import Findings
from nightherd.config.schema.notify import FleetTarget
from nightherd.config.schema.notify import NotifyTarget as TargetSchema
from nightherd.config.wording import did_you_mean
from nightherd.files.yaml_nodes import Entry, MappingNode, ScalarNode, problem_at, text_of
from nightherd.model.agents.agent import Agent
from nightherd.model.notifications.target import (
    DEFAULT_EVENTS,
    Digest,
    NotifyEvent,
    NotifyTarget,
    parse_time,
)
from nightherd.model.text import quote


def resolve_targets(
    targets: Iterable[TargetSchema] | None, owner: str = ""
) -> tuple[NotifyTarget, ...]:
    """The targets that `owner` declares; one without an address stands for the fleet's of its name."""
    return tuple(_target(one, owner) for one in targets or ())


def _target(target: TargetSchema, owner: str) -> NotifyTarget:
    is_own = target.url is not None or target.url_env is not None
    events = (
        DEFAULT_EVENTS
        if target.events is None
        else frozenset(NotifyEvent(one) for one in target.events)
    )
    digest = target.digest if isinstance(target, FleetTarget) else None
    return NotifyTarget(
        id=f"{owner}{target.name}" if is_own else target.name,
        url=target.url,
        url_env=target.url_env,
        events=events if digest is None else events | {NotifyEvent.DIGEST},
        title=target.title,
        template=target.template,
        allow_hosts=target.allow_hosts,
        approver=target.approver,
        timeout=target.timeout,
        give_up_after=target.give_up_after,
        digest=None
        if digest is None
        else Digest(at=parse_time(digest.at), timezone=digest.timezone),
    )


def with_addresses(agent: Agent, fleet: Mapping[str, NotifyTarget]) -> Agent:
    """The agent whose targets that stand for the fleet's have the address of those."""
    if not agent.notify and not any(one.notify for one in agent.schedules.values()):
        return agent
    return replace(
        agent,
        notify=tuple(_addressed(one, fleet) for one in agent.notify),
        schedules={
            name: replace(one, notify=tuple(_addressed(each, fleet) for each in one.notify))
            for name, one in agent.schedules.items()
        },
    )


def _addressed(target: NotifyTarget, fleet: Mapping[str, NotifyTarget]) -> NotifyTarget:
    known = fleet.get(target.id)
    if known is None or target.url is not None or target.url_env is not None:
        return target
    return replace(
        target,
        url=known.url,
        url_env=known.url_env,
        allow_hosts=known.allow_hosts,
        approver=target.approver or known.approver,
        title=target.title or known.title,
        template=target.template or known.template,
    )


TARGETS = ("notify[]", "schedules.*.notify[]")
LITERAL = "the address of a notify target holds secrets, so it comes from the environment"


def check_targets(
    fleet: MappingNode, agents: Iterable[tuple[Agent, MappingNode]], findings: Findings
) -> None:
    """Every target has an address, which is not written into the file."""
    names = [
        text for entry, _ in entries_at(fleet, "notify[].name") if (text := text_of(entry.value))
    ]
    _check_urls(fleet, "notify[].url", findings)
    for agent, node in agents:
        for key in TARGETS:
            path = f"agents.{agent.name}"
            _check_urls(node, f"{key}.url", findings, path)
            own = {_owner(dotted) for dotted in _addresses(node, key)}
            for entry, dotted in entries_at(node, f"{key}.name"):
                name = text_of(entry.value) or ""
                if name in names or _owner(dotted) in own:
                    continue
                message = f"the fleet has no notify target {quote(name)}, and this one has no url"
                hint = did_you_mean(name, names)
                where = f"{path}.{dotted}"
                findings.add(problem_at(entry.value, message, path=where, hint=hint))


def _addresses(node: MappingNode, key: str) -> Iterator[str]:
    for word in ("url", "url_env"):
        for _, dotted in entries_at(node, f"{key}.{word}"):
            yield dotted


def _owner(dotted: str) -> str:
    return dotted.rpartition(".")[0]


def _check_urls(node: MappingNode, key: str, findings: Findings, path: str = "") -> None:
    for entry, dotted in entries_at(node, key):
        if _is_literal(entry):
            where = f"{path}.{dotted}" if path else dotted
            hint = "write url: ${NAME}, or url_env: NAME, and set NAME in .env"
            findings.add(problem_at(entry.value, LITERAL, path=where, hint=hint))


def _is_literal(entry: Entry) -> bool:
    return isinstance(entry.value, ScalarNode) and entry.value.written is None
