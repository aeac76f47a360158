"""What only agents that run Claude have: helpers, plugins, and how their commands are confined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from nightherd.config.schema.agent import Subagent as SubagentSchema
from nightherd.config.schema.mcp import Plugin as PluginSchema
from nightherd.config.schema.sandbox import Sandbox, SandboxNetwork
from nightherd.model.subagent import Plugin, Subagent


def resolve_subagents(agents: Mapping[str, SubagentSchema] | None) -> dict[str, Subagent]:
    """The helpers by name."""
    return {
        name: Subagent(
            description=one.description, prompt=one.prompt, tools=one.tools, model=one.model
        )
        for name, one in (agents or {}).items()
    }


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
