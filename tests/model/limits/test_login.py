"""Logins: named without their secrets, the same for all that share one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Script
from nightherd.model.limits.login import limit_id, limits_that_stop, login_of
from nightherd.runtimes.claude import capabilities as claude
from nightherd.runtimes.native import capabilities as native

CLI = replace(AGENT, runtime=claude.CLI)
SDK = replace(AGENT, runtime=claude.SDK)
NATIVE = replace(AGENT, runtime=native.NATIVE, model="anthropic:claude-sonnet-5-5")
KEY = {"ANTHROPIC_API_KEY": "sk-secret-1", "HOME": "/home/ann"}
OAUTH = {"CLAUDE_CODE_OAUTH_TOKEN": "oat-secret-2", "HOME": "/home/ann"}


@pytest.mark.parametrize(
    ("agent", "environment", "kind"),
    [
        (CLI, KEY, "anthropic-key"),
        (SDK, OAUTH, "claude-token"),
        (CLI, {**OAUTH, **KEY}, "anthropic-key"),
        (CLI, {**OAUTH, "ANTHROPIC_API_KEY": ""}, "claude-token"),
        (CLI, {**KEY, "ANTHROPIC_AUTH_TOKEN": "x"}, "anthropic-token"),
        (CLI, {"HOME": "/home/ann"}, "claude-login"),
        (CLI, {**KEY, "CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "x"}, "bedrock"),
        (CLI, {**KEY, "CLAUDE_CODE_USE_BEDROCK": "0"}, "anthropic-key"),
        (NATIVE, KEY, "anthropic-key"),
        (replace(NATIVE, model="openai-chat:gpt"), {"OPENAI_API_KEY": "x"}, "openai-key"),
    ],
)
def test_login_is_named_by_its_kind(agent: Agent, environment: dict[str, str], kind: str) -> None:
    login = login_of(agent, environment)

    assert login is not None
    assert login.partition(":")[0] == kind
    assert not any(len(value) > 4 and value in login for value in environment.values())


def test_runtimes_with_the_same_key_share_a_login() -> None:
    assert login_of(CLI, KEY) == login_of(SDK, KEY) == login_of(NATIVE, KEY)


@pytest.mark.parametrize(
    "other",
    [
        {**KEY, "ANTHROPIC_API_KEY": "sk-secret-3"},
        {**KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
        OAUTH,
    ],
)
def test_other_keys_and_services_are_other_logins(other: dict[str, str]) -> None:
    assert login_of(CLI, KEY) != login_of(CLI, other)


def test_directory_of_claude_stands_for_the_login_made_in_it() -> None:
    ann, ben = {"HOME": "/home/ann"}, {"HOME": "/home/ben"}

    assert login_of(CLI, ann) == login_of(CLI, {**ben, "CLAUDE_CONFIG_DIR": "/home/ann/.claude"})
    assert login_of(CLI, ann) != login_of(CLI, ben)


@pytest.mark.parametrize(
    "agent",
    [
        AGENT,
        replace(NATIVE, model=None),
        replace(NATIVE, model="test"),
        replace(NATIVE, fallback_model="openai:gpt"),
        replace(NATIVE, script=Script(blocks=())),
    ],
)
def test_agents_that_no_limit_of_a_login_can_stop_have_none(agent: Agent) -> None:
    assert login_of(agent, KEY) is None
    assert limits_that_stop(agent, None) == ()


def test_limit_of_a_family_stops_only_agents_that_may_use_it() -> None:
    opus = limit_id("login", "seven_day_opus")

    assert limit_id("login", "five_hour") == limit_id("login", "seven_day") == "login"
    assert opus in limits_that_stop(CLI, "login")
    assert opus in limits_that_stop(replace(CLI, model="claude-opus-5"), "login")
    assert opus not in limits_that_stop(replace(CLI, model="sonnet"), "login")
    assert "login" in limits_that_stop(replace(CLI, model="sonnet"), "login")
