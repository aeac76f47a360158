"""Hooks as the engine runs them. Messages to Discord and Slack are checked and left out: chat is not there yet."""

from __future__ import annotations

import json
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


def texts(inputs: dict[str, Any]) -> dict[str, str]:
    """Values for `${inputs.NAME}`: texts as they are, everything else as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in inputs.items()
    }


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
            return AgentSubmission(agent=hook.directive, inputs=texts(hook.inputs))
        case DiscordHook() | SlackHook():
            return None
        case UnknownHook():
            raise AssertionError("a hook without a type passed the schema")
    raise AssertionError(f"a hook of type {hook.type} has no action")
