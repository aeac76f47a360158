"""Which model an agent means, with whose key it is reached, and what every request says."""

from __future__ import annotations

import pytest

from nightherd.errors import UsageError
from nightherd.model.agents.agent import Agent
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.provider import (
    MAX_OUTPUT_TOKENS,
    THOUGHTS,
    members,
    model_of,
    provider_of,
    settings_of,
)
from nightherd.runtimes.native.script_model import WholeAnswers
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Say
from runtimes.native.native_stage import NativeStage, Replies

KEYS = {"ANTHROPIC_API_KEY": "key-of-anthropic", "OPENAI_API_KEY": "key-of-openai"}


def agent(**more: str) -> Agent:
    return Agent(name="a", runtime=NATIVE, working_directory="/", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        ("anthropic", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "http://127.0.0.1:1"),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:2/v1"}, "http://127.0.0.1:2/v1/"),
        ("openai-chat", {"OPENAI_BASE_URL": "http://127.0.0.1:3/v1"}, "http://127.0.0.1:3/v1/"),
        ("ollama", {"OLLAMA_BASE_URL": "http://127.0.0.1:4/v1"}, "http://127.0.0.1:4/v1/"),
    ],
)
def test_a_provider_is_reached_where_the_environment_says(
    name: str, environment: dict[str, str], address: str
) -> None:
    assert provider_of(name, environment={**KEYS, **environment}).base_url == address


def test_a_provider_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="'nobody'"):
        provider_of("nobody", environment={})


def test_the_key_is_that_of_the_agents_environment(stage: NativeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        environment = {**stage.environment(api), "ANTHROPIC_API_KEY": "the-agents-own"}
        request = stage.request(
            agent={"model": "anthropic:claude-sonnet-5-5"}, environment=environment
        )
        stage.run(None, request)

    assert "the-agents-own" in str(api.asked[0].headers)


def test_effort_reaches_the_model(stage: NativeStage) -> None:
    with MessagesApi(Say(text="x")) as api:
        told = {"model": "anthropic:claude-sonnet-5-5", "effort": "high"}
        stage.run(None, stage.request(api=api, agent=told))

    body = api.asked[0].body
    assert body["output_config"] == {"effort": "high"}
    assert body["max_tokens"] == MAX_OUTPUT_TOKENS + THOUGHTS["high"]


@pytest.mark.parametrize("effort", ["low", "medium", "high", "max"])
def test_an_answer_has_room_beside_its_thoughts(stage: NativeStage, effort: str) -> None:
    """Anthropic refuses a request whose `max_tokens` is not above the budget for thoughts."""
    with MessagesApi(Say(text="x")) as api:
        told = {"model": "anthropic:claude-haiku-4-5", "effort": effort}
        stage.run(None, stage.request(api=api, agent=told))

    body = api.asked[0].body
    assert body["max_tokens"] - body["thinking"]["budget_tokens"] == MAX_OUTPUT_TOKENS


def test_a_client_never_tries_again_by_itself() -> None:
    model = model_of(agent(model="anthropic:claude-sonnet-5-5"), KEYS)

    settings = settings_of(agent(), model)

    assert settings["max_retries"] == 0
    assert settings["max_tokens"] == MAX_OUTPUT_TOKENS


def test_what_a_model_cannot_be_told_it_is_not_told() -> None:
    assert settings_of(agent(), Replies()) == {"max_tokens": MAX_OUTPUT_TOKENS}


def test_two_models_of_different_providers_stand_in_for_each_other() -> None:
    model = model_of(
        agent(model="anthropic:claude-sonnet-5-5", fallback_model="openai:gpt-5"), KEYS
    )

    assert [one.system for one in members(model)] == ["anthropic", "openai"]
    settings = settings_of(agent(), model)
    assert settings["max_retries"] == 0


def test_one_model_is_its_own_only_member() -> None:
    model = WholeAnswers(lambda messages, info: None)  # type: ignore[arg-type,return-value]

    assert list(members(model)) == [model]
