"""Every key of the schema is compared when a fleet file changes, or is named here as one that grants nothing.

A new key fails these tests until it has a row in one of the tables. A row in `COMPARED` needs a case in
`tests/model/permissions/test_widening.py`; a row in `GRANTS_NOTHING` needs a reason. Workflows are compared as a whole
(`tests/model/permissions/test_workflow_grants.py`).
"""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from nightherd.config.json_schema import schema_of
from nightherd.config.reference import keys_of
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import FleetSettings
from nightherd.config.schema.workflow import WorkflowFile

LIMITS = ("limits.spend", "limits.turns", "limits.tokens", "limits.spawns", "limits.depth",
          "limits.duration", "limits.per_day", "limits.hooks")  # fmt: skip
DIRECTORIES = tuple(
    f"{owner}{name}"
    for owner in ("", "schedules.*.")
    for name in ("working_directory", "workspace")
)
COMPARED_OF_AGENTS = (
    "name", "repo", "runtime", "job_timeout", "max_turns", "max_budget_usd",
    "permission_mode", "tools", "allowed_tools", "denied_tools", "operation", "approvals", "schedules.*.approvals", "required_caps", "add_dirs", "sandbox",
    "setting_sources", "instances.max_concurrent", "session.max_turns", "session.timeout",
    *(
        f"docker.{key}"
        for key in ("enabled", "image", "base_image", "socket", "network", "allowed_hosts", "private_hosts", "user", "volumes", "env", "ports",
                    "labels", "host_config", "allow_unsafe", "workspace_mode", "memory", "pids_limit", "max_containers",
                    "cpu_shares", "cpu_period", "cpu_quota")
    ),
    "mcp_servers.*.command", "mcp_servers.*.args", "mcp_servers.*.env", "mcp_servers.*.url",
    "mcp_servers.*.headers", "mcp_servers.*.type", "plugins", "schedules.*.session.max_turns",
    "schedules.*.session.timeout", "schedules.*.job_timeout",
    *LIMITS, *(f"schedules.*.{key}" for key in LIMITS),
    *(
        f"{directory}.{key}"
        for directory in DIRECTORIES
        for key in ("root", "mode", "setup", "auto_clone", "default_branch")
    ),
    *(
        f"hooks.{point}[].{key}"
        for point in ("after_run", "on_error", "on_suspend", "on_cancel")
        for key in ("type", "command", "timeout", "url", "method", "headers", "secret_env", "attempts",
                    "directive", "inputs", "retry", "body", "channel_id", "bot_token_env")
    ),
    *(
        f"{owner}work_source.{key}"
        for owner in ("", "schedules.*.")
        for key in ("type", "repo", "base_url", "labels", "exclude_labels", "on_success", "lock", "auth")
    ),
    *(
        f"chat.{platform}.{key}"
        for platform, own in (("slack", ("mode", "app_token_env", "signing_secret_env")), ("discord", ("guilds", "command_registration")))
        for key in (*own, "bot_token_env", "channels", "dm", "users", "approvers", "attachments", "voice")
    ),
    *(f"{owner}notify[].{key}" for owner in ("", "schedules.*.") for key in ("url", "url_env", "allow_hosts", "approver")),
)  # fmt: skip
TEXTS = "what an agent is told and how it presents itself"
TIMES = "when jobs run; what each may do and use is compared"
CONTEXT = "how conversations are shared and how long; the same tools and limits hold"
MODEL = "which model answers; money is compared by the limits"
STOP = (
    "how a job that met its limit waits or ends; the limit and the hooks that it asks are compared"
)
WHEN = "when an accepted hook runs, and what it is called"
TOLD = "what accepted targets are told, and when"
PLACE = "where a workspace of its own begins, and how long it and its snapshots are kept"
ATTEMPTS = "how often an issue is tried; each job is held to its limits"
CHAT = "how a bot presents itself, and how its people share context"
GRANTS_NOTHING_TO_AGENTS = {
    "description": TEXTS, "script": TEXTS, "default_prompt": TEXTS, "system_prompt": TEXTS,
    "identity": TEXTS, "metadata_file": TEXTS,
    "session": CONTEXT, "schedules.*.session": CONTEXT, "schedules.*.resume_session": CONTEXT,
    "model": MODEL, "fallback_model": MODEL, "effort": MODEL,
    "agents": "helpers are held to the tools, rules and limits of the agent",
    "questions": "it may ask a person, who decides what to answer",
    "idempotent_tools": "calls that are made again; they have to be allowed anyway",
    "limits.on_reached": STOP, "schedules.*.limits.on_reached": STOP,
    "mcp_servers.*.timeout": TIMES, "mcp_servers.*.alwaysLoad": TEXTS,
    "schedules.*.name": TIMES, "schedules.*.trigger": TIMES, "schedules.*.type": TIMES,
    "schedules.*.interval": TIMES, "schedules.*.cron": TIMES, "schedules.*.expression": TIMES,
    "schedules.*.prompt": TEXTS, "schedules.*.inputs": TEXTS, "schedules.*.enabled": TIMES,
    "schedules.*.timezone": TIMES, "schedules.*.jitter": TIMES, "schedules.*.catch_up": TIMES,
    "schedules.*.max_overlap": TIMES, "schedules.*.max_suspended": TIMES, "schedules.*.pause_after": TIMES,
    "schedules.*.outputToFile": TEXTS, **{
        f"{owner}work_source.{key}": ATTEMPTS
        for owner in ("", "schedules.*.")
        for key in ("max_attempts", "cleanup_on_failure", "cleanup_in_progress")
    },
    "docker.ephemeral": "whether a container is new; it gives the same", "docker.tmpfs": "memory, which is compared",
    **{
        f"{directory}.{key}": PLACE
        for directory in DIRECTORIES
        for key in ("scope", "base", "keep", "snapshot", "clone_depth")
    },
    "chat": CHAT, "hooks": WHEN, "notify": TOLD, "schedules.*.notify": TOLD,
}  # fmt: skip
COMPARED_OF_FLEETS = (
    *LIMITS, "prices", "max_concurrent", "reload", "web.enabled", "web.port", "web.host",
    "web.token_env", "web.hosts", "webhooks.enabled", "webhooks.host", "webhooks.port", "webhooks.secret_env",
    "webhooks.replay_window", "webhooks.endpoints", "notify[].url", "notify[].url_env", "notify[].allow_hosts",
    "notify[].approver", "web.public_url", "web.tls", "web.trusted_proxy", "web.identity_header", "web.people",
    "web.base_path", "web.session_expiry_hours", "web.push",
)  # fmt: skip
SHOWN = "what the dashboard shows, and whether it is opened"
KEEPING = "how work is kept, retried and taken over"
GRANTS_NOTHING_TO_FLEETS = {
    "version": TEXTS, "fleet": TEXTS, "lease": KEEPING, "heartbeat": KEEPING, "cancel_grace": KEEPING,
    "max_restarts": KEEPING, "retry": KEEPING, "durability": KEEPING, "mirror": KEEPING,
    "limits.on_reached": STOP, "web": SHOWN, "notify": TOLD,
    "webhooks.body_limit": "how much one delivery may hold; it needs the same signature",
}  # fmt: skip
WORDS = "words that only people read"
COMPARED_OF_WORKFLOWS = (
    "name", "inputs.*.type", "inputs.*.required", "inputs.*.default", "limits", "working_directory", "concurrency",
    "on", "phases",
)  # fmt: skip
GRANTS_NOTHING_TO_WORKFLOWS = {
    "description": WORDS, "inputs.*.description": WORDS, "phases[].label": WORDS, "phases[].messages": WORDS,
}  # fmt: skip
TABLES = {
    AgentSchema: (COMPARED_OF_AGENTS, GRANTS_NOTHING_TO_AGENTS),
    FleetSettings: (COMPARED_OF_FLEETS, GRANTS_NOTHING_TO_FLEETS),
    WorkflowFile: (COMPARED_OF_WORKFLOWS, GRANTS_NOTHING_TO_WORKFLOWS),
}


def leaves(model: type[BaseModel]) -> list[str]:
    return [key.path for key in keys_of(schema_of(model)) if key.is_leaf]


def covers(row: str, path: str) -> bool:
    return path == row or path.startswith((f"{row}.", f"{row}["))


@pytest.mark.parametrize("model", TABLES)
def test_every_key_is_compared_or_grants_nothing(model: type[BaseModel]) -> None:
    rows = [row for table in TABLES[model] for row in table]

    forgotten = [path for path in leaves(model) if not any(covers(row, path) for row in rows)]

    assert forgotten == []


@pytest.mark.parametrize("model", TABLES)
def test_no_row_is_left_of_a_key_that_is_gone(model: type[BaseModel]) -> None:
    rows = [row for table in TABLES[model] for row in table]

    gone = [row for row in rows if not any(covers(row, path) for path in leaves(model))]

    assert gone == []
