"""Which values are masked: by the variable's name, by their form, or because the fleet file names the variable."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.hooks import Hook, HookPoint, HttpRequest
from nightherd.model.secrets import find_secrets, secrets_of
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.wiring.stores import known_secrets

VALUE = "s3cr3t-v4lue-of-it"


@pytest.mark.parametrize(
    "name",
    [
        "DB_PASS",
        "DBPASS",
        "dbPass",
        "PGPASSWORD",
        "MYSQL_PWD",
        "GH_PAT",
        "GITHUB_PAT_2",
        "JWT",
        "SESSION_JWT",
        "REDISCLI_AUTH",
        "SENTRY_DSN",
        "AZURE_STORAGE_CONNECTION_STRING",
        "SLACK_WEBHOOK_URL",
        "SSH_PRIVATE",
        "ROOT_PW",
        "AWS_CREDS",
        "ANTHROPIC_API_KEY",
    ],
)
def test_the_name_of_a_variable_says_that_it_is_secret(name: str) -> None:
    assert find_secrets({name: VALUE}).mask(f"it is {VALUE}") == f"it is [secret:{name}]"


@pytest.mark.parametrize(
    "name",
    ["PATH", "PWD", "OLDPWD", "HOME", "PATTERN", "PASSENGER_COUNT", "LANG", "SPAWN", "COMPAT"],
)
def test_other_variables_are_not(name: str) -> None:
    assert find_secrets({name: VALUE}).mask(VALUE) == VALUE


@pytest.mark.parametrize("value", ["/9j/4AAQSkZJRgABAQ", "/slashes+in/base64=="])
def test_a_secret_may_begin_with_a_slash(value: str) -> None:
    secrets = known_secrets(None, {"API_TOKEN": value}, None)

    assert secrets.mask(f"<{value}>") == "<[secret:API_TOKEN]>"


def test_a_path_that_exists_stays_readable(tmp_path: Path) -> None:
    key, gone = tmp_path / "id_ed25519", tmp_path / "not-there"
    key.write_text("-")
    secrets = known_secrets(None, {"SSH_KEY_PATH": str(key), "OTHER_KEY": str(gone)}, None)

    assert secrets.mask(f"{key} {gone}") == f"{key} [secret:OTHER_KEY]"


@pytest.mark.parametrize(
    ("value", "said", "shown"),
    [
        ("postgres://app:hunter22@db:5432/shop", "hunter22", "[secret:DATABASE_URL]"),
        (
            "postgres://app:hunter22@db:5432/shop",
            "cannot reach postgres://app:hunter22@db:5432/shop",
            "cannot reach [secret:DATABASE_URL]",
        ),
        (
            "postgres://app:hunter22@db/shop",
            "//app:hunter22@other",
            "//[secret:DATABASE_URL]@other",
        ),
        ("redis://:p%40ssw0rd@cache:6379/0", "p@ssw0rd", "[secret:DATABASE_URL]"),
        ("postgres://a:pw@db/shop", "postgres://a:pw@db/shop", "[secret:DATABASE_URL]"),
        ("host=db user=me password=hunter22", "it was hunter22", "it was [secret:DATABASE_URL]"),
        ("AccountName=me;AccountKey=aGVsbG8=;x=1", "aGVsbG8=", "[secret:DATABASE_URL]"),
        ("postgres://db:5432/shop", "postgres://db:5432/shop", "postgres://db:5432/shop"),
        ("https://example.com/a:b@c", "https://example.com/a:b@c", "https://example.com/a:b@c"),
    ],
)
def test_a_password_in_an_address_is_secret_whatever_the_variable_is_called(
    value: str, said: str, shown: str
) -> None:
    assert find_secrets({"DATABASE_URL": value}).mask(said) == shown


FLEET = """\
web: {enabled: true, token_env: DOOR}
webhooks:
  secret_env: SHARED
  endpoints:
    push: {agent: a, prompt: go, secret_env: OWN}
agents:
  - name: a
    runtime: scripted
    script: [{say: hi}]
    hooks:
      after_run:
        - {type: webhook, url: "https://example.com", secret_env: SIGNING}
        - {type: discord, channel_id: "1", bot_token_env: BOT}
    chat: {slack: {bot_token_env: SLACKER, channels: []}}
"""


def test_variables_that_the_fleet_file_names_are_secret(tmp_path: Path) -> None:
    fleet = Folder(tmp_path).fleet(FLEET).load().fleet
    names = ("DOOR", "SHARED", "OWN", "SIGNING", "BOT", "SLACKER")
    environment = {name: f"value {name.lower()}" for name in names}

    secrets = known_secrets(fleet, environment, None)

    for name in names:
        assert secrets.mask(f"value {name.lower()}") == f"[secret:{name}]"


def test_a_variable_that_the_fleet_file_names_may_be_short_and_hold_two_secrets() -> None:
    fleet = Fleet(file="x", agents={}, secret_variables=frozenset({"SHARED"}))
    secrets = secrets_of(fleet, {"SHARED": "new-1 old-2", "OTHER_TOKEN": "short"})

    assert secrets.mask("new-1, old-2, short") == "[secret:SHARED], [secret:SHARED], short"


def test_what_servers_and_hooks_are_told_is_secret() -> None:
    action = HttpRequest(
        url="https://me:hunter22@example.com",
        timeout=timedelta(seconds=1),
        headers={"Authorization": "Bearer abcdefgh"},
    )
    server = McpServer(
        name="db",
        transport=McpTransport.STDIO,
        command="x",
        args=("--to", "postgres://app:letmein99@db/shop", "--api-key", "in-the-arguments"),
        env={"DB_PASS": "in-the-environment"},
    )
    agent = Agent(
        name="a",
        runtime=SCRIPTED,
        working_directory="/",
        mcp_servers=(server,),
        hooks=(Hook(id="after_run[0]", point=HookPoint.AFTER_RUN, action=action),),
    )
    secrets = secrets_of(Fleet(file="x", agents={"a": agent}), {})

    assert secrets.mask("hunter22") == "[secret:after_run[0]]"
    assert secrets.mask("abcdefgh") == "[secret:Authorization]"
    assert secrets.mask("letmein99") == "[secret:db]"
    assert secrets.mask("in-the-arguments") == "[secret:--api-key]"
    assert secrets.mask("in-the-environment") == "[secret:DB_PASS]"


def test_every_line_of_a_private_key_is_secret() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    secrets = find_secrets({"SSH_KEY": key})

    assert secrets.mask(f"-----BEGIN PRIVATE KEY-----\n{lines[0]}\n") == (
        "-----BEGIN PRIVATE KEY-----\n[secret:SSH_KEY]\n"
    )
    assert secrets.mask(key) == "[secret:SSH_KEY]"
