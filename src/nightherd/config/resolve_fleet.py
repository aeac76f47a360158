"""What a fleet file says about being reached from outside, as the API needs it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from nightherd.config.merge import like
from nightherd.config.resolve_agent import json_inputs, resolve_session
from nightherd.config.resolve_notify import resolve_targets
from nightherd.config.resolve_work import resolve_work
from nightherd.config.resolve_workspace import resolve_workspace
from nightherd.config.schema.fleet import WebhookEndpoint
from nightherd.config.schema.fleet import Webhooks as WebhooksSchema
from nightherd.config.schema.inbox import Approval
from nightherd.config.schema.limits import Limits as LimitsSchema
from nightherd.config.schema.limits import ModelPrice as PriceSchema
from nightherd.config.schema.limits import Outcomes
from nightherd.config.schema.schedule import Schedule as ScheduleSchema
from nightherd.config.schema.web import Web as WebSchema
from nightherd.config.schema.work import WorkSource as WorkSchema
from nightherd.model.access.web import Web
from nightherd.model.hooks import AgentSubmission, Hook, HookPoint
from nightherd.model.inbox.item import OnExpiry
from nightherd.model.inbox.review import ApprovalRule, ApprovalTerms
from nightherd.model.limits.limits import (
    NO_DAY_LIMITS,
    NO_LIMITS,
    DayLimits,
    LimitName,
    Limits,
    OnLimit,
)
from nightherd.model.limits.spending import ModelPrice
from nightherd.model.schedules.rule import UTC_NAME, CatchUp, Cron, Interval, Rule, Schedule
from nightherd.model.webhooks import Endpoint, SignatureKind, Webhooks
from nightherd.model.workspaces.repository import Repository


def resolve_web(web: WebSchema | None) -> Web:
    """Where the API is served."""
    return Web() if web is None else like(web, Web)


def resolve_webhooks(webhooks: WebhooksSchema | None) -> Webhooks:
    """What comes in by webhooks."""
    if webhooks is None:
        return Webhooks()
    return Webhooks(
        enabled=webhooks.enabled,
        host=webhooks.host,
        port=webhooks.port,
        body_limit=webhooks.body_limit,
        replay_window=webhooks.replay_window,
        endpoints={
            name: _endpoint(name, endpoint, webhooks.secret_env)
            for name, endpoint in webhooks.endpoints.items()
        },
    )


def _endpoint(name: str, endpoint: WebhookEndpoint, shared_secret: str | None) -> Endpoint:
    return Endpoint(
        name=name,
        agent=endpoint.agent,
        schedule=endpoint.schedule,
        prompt=endpoint.prompt,
        inputs=json_inputs(endpoint.inputs),
        channel=endpoint.channel,
        signature=SignatureKind(endpoint.signature),
        secret_env=endpoint.secret_env or shared_secret,
        events=frozenset(endpoint.events or ()),
    )


def resolve_schedules(
    schedules: Mapping[str, ScheduleSchema] | None,
    *,
    agent: str = "",
    repository: Repository | None = None,
    work: WorkSchema | None = None,
) -> dict[str, Schedule]:
    """The schedules of an agent, by name in their order; `repository` is what its `repo` names, `work` its source."""
    resolved = [
        resolve_schedule(key, one, agent, repository, work)
        for key, one in (schedules or {}).items()
    ]
    return {schedule.name: schedule for schedule in resolved}


def resolve_schedule(
    key: str,
    schedule: ScheduleSchema,
    agent: str = "",
    repository: Repository | None = None,
    work: WorkSchema | None = None,
) -> Schedule:
    """One schedule; what it does not say has its default here."""
    timezone = schedule.timezone or UTC_NAME
    rule = resolve_rule(schedule, timezone)
    source = resolve_work(schedule.work_source, work)
    directory = schedule.working_directory
    return Schedule(
        name=schedule.name or key,
        rule=rule,
        timezone=timezone,
        prompt=schedule.prompt,
        inputs=json_inputs(schedule.inputs or {}),
        enabled=schedule.enabled,
        jitter=schedule.jitter or timedelta(),
        max_overlap=1 if schedule.max_overlap is None else schedule.max_overlap,
        max_suspended=3 if schedule.max_suspended is None else schedule.max_suspended,
        catch_up=CatchUp(schedule.catch_up or "none"),
        pause_after=5 if schedule.pause_after is None else schedule.pause_after,
        job_timeout=schedule.job_timeout,
        workspace=None if directory is None else resolve_workspace(directory, repository),
        working_directory=None if directory is None else directory.root,
        session=None if schedule.session is None else resolve_session(schedule.session),
        resume_session=schedule.resume_session,
        limits=resolve_limits(schedule.limits),
        hooks=limit_hooks(schedule.limits, owner=f"schedules.{key}.limits"),
        approvals=resolve_approvals(schedule.approvals),
        notify=resolve_targets(schedule.notify, f"{agent}/{schedule.name or key}/"),
        work=None if rule is None else source,
        output_to_file=bool(schedule.output_to_file),
    )


def resolve_rule(schedule: ScheduleSchema, timezone: str) -> Rule | None:
    """When it is due; None for one that something else than time makes due."""
    trigger = schedule.trigger
    kind = schedule.type if trigger is None else trigger.type
    every = schedule.interval if trigger is None else trigger.every
    cron = schedule.cron if trigger is None else trigger.expression
    if kind in ("webhook", "chat"):
        return None
    if every is not None:
        return Interval(every=every)
    return Cron(expression=cron or "", timezone=timezone)


Amount = TypeVar("Amount", int, timedelta)
OF_ONE_JOB = frozenset({LimitName.SPAWNS, LimitName.DEPTH, LimitName.DURATION})
"""What does not add up over jobs: the fleet's limits of these are for each job of it."""


def resolve_limits(limits: LimitsSchema | None) -> Limits:
    """What a `limits` section says."""
    if limits is None:
        return NO_LIMITS
    return Limits(
        spend=limits.spend,
        turns=limits.turns,
        tokens=limits.tokens,
        spawns=limits.spawns,
        depth=limits.depth,
        duration=limits.duration,
        per_day=NO_DAY_LIMITS if limits.per_day is None else like(limits.per_day, DayLimits),
        outcomes=_outcomes(limits.on_reached),
    )


def within_fleet(own: Limits, fleet: Limits) -> Limits:
    """No job of the fleet has more levels, children or time than the fleet says; who says less has less."""
    outcomes = {name: word for name, word in fleet.outcomes.items() if name in OF_ONE_JOB}
    return replace(
        own,
        spawns=lower(own.spawns, fleet.spawns),
        depth=lower(own.depth, fleet.depth),
        duration=lower(own.duration, fleet.duration),
        outcomes={**outcomes, **own.outcomes},
    )


def within_schedule(own: Limits, fleet: Limits) -> Limits:
    """The same for what a schedule says: what it leaves to the agent is within the fleet's already."""
    return replace(
        own,
        spawns=None if own.spawns is None else lower(own.spawns, fleet.spawns),
        depth=None if own.depth is None else lower(own.depth, fleet.depth),
        duration=None if own.duration is None else lower(own.duration, fleet.duration),
    )


def lower(own: Amount | None, bound: Amount | None) -> Amount | None:
    """The lower of both; None is no limit."""
    if own is None or bound is None:
        return bound if own is None else own
    return min(own, bound)


def resolve_approvals(approvals: tuple[Approval, ...] | None) -> tuple[ApprovalRule, ...]:
    """The calls that a person has to allow first."""
    return tuple(
        ApprovalRule(
            tool=one.tool,
            terms=ApprovalTerms(
                approvers=one.approvers,
                quorum=one.quorum,
                expires=one.expires,
                on_expiry=OnExpiry(one.on_expiry),
                remind=one.remind,
            ),
        )
        for one in approvals or ()
    )


def limit_hooks(limits: LimitsSchema | None, *, owner: str = "limits") -> tuple[Hook, ...]:
    """The agents that are submitted when something happens to a job, each known by its place."""
    if limits is None or limits.hooks is None:
        return ()
    return tuple(
        Hook(
            id=f"{owner}.hooks[{place}]",
            point=HookPoint.LIMITS,
            action=AgentSubmission(agent=hook.directive, inputs=json_inputs(hook.inputs)),
            on=frozenset({hook.event}),
        )
        for place, hook in enumerate(limits.hooks)
    )


def _outcomes(outcomes: Outcomes | None) -> dict[LimitName, OnLimit]:
    if outcomes is None:
        return {}
    words = {name: getattr(outcomes, name.value) for name in LimitName}
    return {name: OnLimit(word) for name, word in words.items() if word is not None}


def resolve_prices(prices: Mapping[str, PriceSchema] | None) -> dict[str, ModelPrice]:
    """Return the prices by model; what is not said of the cache is as `input`."""
    return {model: resolve_price(price) for model, price in (prices or {}).items()}


def resolve_price(price: PriceSchema) -> ModelPrice:
    """Return one of them."""
    write, read = price.cache_write, price.cache_read
    return ModelPrice(
        input=price.input,
        output=price.output,
        cache_write=price.input if write is None else write,
        cache_read=price.input if read is None else read,
    )
