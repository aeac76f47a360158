"""What only agents that run Claude have: helpers, plugins, and how their commands are confined."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from nightherd.config.schema.agent import Plugin as PluginSchema
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
from nightherd.config.schema.isolation import Sandbox, SandboxNetwork
from nightherd.config.schema.schedule import Session
from nightherd.model.agents.agent import Plugin
from nightherd.model.hooks import (
    Action,
    AgentSubmission,
    ChatMessage,
    Hook,
    HookPoint,
    HttpRequest,
    ShellCommand,
)
from nightherd.model.sessions.session import DEFAULT_CONTEXT_WINDOW, SessionMode, SessionTerms


def resolve_plugins(plugins: tuple[PluginSchema, ...] | None) -> tuple[Plugin, ...]:
    """The plugin directories."""
    return tuple(resolve_plugin(one) for one in plugins or ())


def resolve_plugin(plugin: PluginSchema) -> Plugin:
    """One of them."""
    match plugin.type:
        case "local":
            return Plugin(path=plugin.path, has_mcp_servers=not plugin.skip_mcp_discovery)
        case _:
            assert_never(plugin.type)


def resolve_sandbox(sandbox: Sandbox | None) -> dict[str, Any] | None:
    """The sandbox in Claude's words, saying only what the file says."""
    if sandbox is None:
        return None
    network = sandbox.network
    return _said(
        enabled=sandbox.enabled,
        autoAllowBashIfSandboxed=sandbox.auto_allow_bash_if_sandboxed,
        excludedCommands=_listed(sandbox.excluded_commands),
        allowUnsandboxedCommands=sandbox.allow_unsandboxed_commands,
        network=None if network is None else _network(network),
    )


def _network(network: SandboxNetwork) -> dict[str, Any]:
    return _said(
        allowUnixSockets=_listed(network.allow_unix_sockets),
        allowAllUnixSockets=network.allow_all_unix_sockets,
        allowLocalBinding=network.allow_local_binding,
        httpProxyPort=network.http_proxy_port,
        socksProxyPort=network.socks_proxy_port,
    )


def _listed(texts: tuple[str, ...] | None) -> list[str] | None:
    return None if texts is None else list(texts)


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
        yield Hook(
            id=f"{point}[{place}]",
            point=point,
            action=_action(hook),
            name=hook.name,
            on=frozenset(hook.on_events or ()),
            when=hook.when,
            continue_on_error=hook.continue_on_error,
            retry=hook.retry,
        )


def _action(hook: AnyHook) -> Action:
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
                body=None if hook.body is None else _json_value(hook.body),
            )
        case AgentHook(type="agent"):
            return AgentSubmission(agent=hook.directive, inputs=json_inputs(hook.inputs))
        case DiscordHook(type="discord") | SlackHook(type="slack"):
            return ChatMessage(
                service=hook.type, channel=hook.channel_id, token_env=hook.bot_token_env
            )
        case UnknownHook():
            raise AssertionError("a hook without a type passed the schema")
    raise AssertionError(f"a hook of type {hook.type} has no action")


def resolve_session(session: Session) -> SessionTerms:
    """What the section says, gaps filled."""
    window = session.context_window
    return SessionTerms(
        mode=SessionMode(session.mode),
        timeout=session.timeout,
        idle_timeout=session.idle_timeout,
        max_context_tokens=session.max_context_tokens,
        context_window=DEFAULT_CONTEXT_WINDOW if window is None else window,
        auto_resume=session.auto_resume,
        resume_timeout=session.resume_timeout,
        max_turns=session.max_turns,
        model=session.model,
    )
