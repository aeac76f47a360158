"""Hooks as the engine runs them. Messages to Discord and Slack are checked and left out: chat is not there yet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from nightherd.config.schema.agent import Identity as IdentitySchema
from nightherd.config.schema.hooks import (
    AgentHook,
    AnyHook,
    DiscordHook,
    Hooks,
    ShellHook,
    SlackHook,
    UnknownHook,
    WebhookHook,
)
from nightherd.model.hook import (
    Action,
    AgentSubmission,
    Hook,
    HookPoint,
    HttpRequest,
    Identity,
    ShellCommand,
)

LARGEST_WHOLE = 2**53
"""The largest whole number that every reader of JSON keeps exactly."""


def resolve_hooks(hooks: Hooks | None) -> tuple[Hook, ...]:
    """Every hook of an agent, list by list, each in its order."""
    if hooks is None:
        return ()
    lists = (
        (HookPoint.AFTER_RUN, hooks.after_run),
        (HookPoint.ON_ERROR, hooks.on_error),
        (HookPoint.ON_SUSPEND, hooks.on_suspend),
        (HookPoint.ON_CANCEL, hooks.on_cancel),
    )
    return tuple(one for point, found in lists for one in _of_list(point, found))


def resolve_identity(identity: IdentitySchema | None) -> Identity | None:
    """Who the agent is to people."""
    if identity is None:
        return None
    return Identity(name=identity.name, role=identity.role, personality=identity.personality)


def json_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Values for `${inputs.NAME}` with their types; a number that JSON does not keep exactly is text."""
    return {name: _json_value(value) for name, value in inputs.items()}


def _json_value(value: Any) -> Any:
    match value:
        case dict():
            return {key: _json_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_json_value(inner) for inner in value]
        case bool():
            return value
        case int():
            return value if abs(value) <= LARGEST_WHOLE else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case _:
            return value


def _of_list(point: HookPoint, hooks: Iterable[AnyHook]) -> Iterator[Hook]:
    for place, hook in enumerate(hooks):
        action = _action(hook)
        if action is not None:
            yield Hook(
                id=f"{point}[{place}]",
                point=point,
                action=action,
                name=hook.name,
                on=frozenset(hook.on_events or ()),
                when=hook.when,
                continue_on_error=hook.continue_on_error,
                retry=hook.retry,
            )


def _action(hook: AnyHook) -> Action | None:
    match hook:
        case ShellHook(type="shell"):
            return ShellCommand(command=hook.command, timeout=hook.timeout)
        case WebhookHook(type="webhook"):
            return HttpRequest(
                url=hook.url,
                method=hook.method,
                headers=hook.headers,
                timeout=hook.timeout,
                secret_env=hook.secret_env,
                attempts=hook.attempts,
            )
        case AgentHook(type="agent"):
            return AgentSubmission(agent=hook.directive, inputs=json_inputs(hook.inputs))
        case DiscordHook() | SlackHook():
            return None
        case UnknownHook():
            raise AssertionError("a hook without a type passed the schema")
    raise AssertionError(f"a hook of type {hook.type} has no action")
