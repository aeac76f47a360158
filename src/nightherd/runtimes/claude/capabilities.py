"""What Claude Code can do, through its own program (`cli`) and through the Agent SDK (`sdk`)."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.agents.runtime import CostSource, LoginKind, RuntimeCapabilities, RuntimeName

_NAMES = frozenset({RuntimeName("cli"), RuntimeName("sdk")})

CLI = RuntimeCapabilities(
    name=RuntimeName("cli"),
    needs_claude=True,
    login=LoginKind.CLAUDE,
    cost=CostSource.REPORTED,
    checks_tools=True,
    asks_people=True,
    keeps_transcript=True,
    resumes=_NAMES,
    takeover_program="claude",
    compact_prompt="/compact",
    takes_servers=True,
    supports_sandbox=True,
    supports_plugins=True,
    supports_subagents=True,
    supports_setting_sources=True,
)
SDK = replace(
    CLI,
    name=RuntimeName("sdk"),
    package="claude_agent_sdk",
    extra="claude",
    wants_api_key=True,
)
