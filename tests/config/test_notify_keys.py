"""`notify` in fleet files: targets of the fleet, agents and schedules, and what is wrong with them."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from config.folder import Folder
from nightherd.model.hooks import ChatMessage
from nightherd.model.notifications.routing import targets_for, targets_of
from nightherd.model.notifications.target import DEFAULT_EVENTS, Digest, NotifyEvent
from nightherd.model.secrets import secrets_of

URL = "ntfys://ntfy.example/topic-4f8a91c2"
AGENTS = "agents: [{name: a, runtime: scripted, script: [{say: x}]}]\n"
FLEET = """\
notify:
  - {name: phone, url: "${PHONE_URL}", digest: {at: "07:30", timezone: Europe/Berlin}}
  - {name: mail, url_env: MAIL_URL, events: [completed], give_up_after: 1h}
agents:
  - name: a
    runtime: scripted
    script: [{say: x}]
    notify:
      - {name: phone, events: [lost], title: "${notice.agent}"}
      - {name: own, url: "${PHONE_URL}/own"}
    schedules:
      nightly: {interval: 1d, prompt: x, notify: [{name: phone, events: []}]}
"""


def test_targets_of_all_levels_have_their_address(folder: Folder) -> None:
    folder.write("nightherd.yaml", FLEET)

    fleet = folder.load(PHONE_URL=URL).fleet

    assert list(targets_of(fleet)) == ["phone", "mail", "a/own"]
    phone, mail = fleet.notify
    assert phone.digest == Digest(at=time(7, 30), timezone="Europe/Berlin")
    assert phone.events == DEFAULT_EVENTS | {NotifyEvent.DIGEST}
    assert (mail.url_env, mail.give_up_after) == ("MAIL_URL", timedelta(hours=1))
    agent = targets_for(fleet, "a", None)
    assert agent["phone"].events == frozenset({NotifyEvent.LOST})
    assert agent["phone"].url == URL
    assert agent["a/own"].url == f"{URL}/own"
    assert targets_for(fleet, "a", "nightly")["phone"].events == frozenset()
    assert targets_for(fleet, None, None).keys() == {"phone", "mail"}


def test_addresses_are_known_as_secrets(folder: Folder) -> None:
    folder.write("nightherd.yaml", FLEET)
    environ = {"PHONE_URL": URL, "MAIL_URL": "mailtos://bot:pass-word-1@mail.example"}

    secrets = secrets_of(folder.load(**environ).fleet, environ)

    masked = secrets.mask(f"{URL} topic-4f8a91c2 pass-word-1 ntfy.example")
    assert "topic-4f8a91c2" not in masked
    assert "pass-word-1" not in masked
    assert "ntfy.example" in masked


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: phone}", "needs 'url' or 'url_env'"),
        ("{name: phone, url: 'ntfys://ntfy.example/topic'}", "comes from the environment"),
        ("{name: phone, url: '${X}', url_env: X}", "both name the address"),
        ("{name: phone, url_env: X, events: [digest]}", "needs 'digest'"),
        ("{name: phone, url_env: X, events: [exploded]}", "exploded"),
        ("{name: phone, url_env: X, digest: {at: '7:30'}}", "not a time of the day"),
        ("{name: phone, url_env: X, template: '${notice.titel}'}", "notice.titel"),
        ("{name: phone, url_env: X, timeout: 0s}", "greater than 0"),
        ("{name: phone, url_env: X, allow_hosts: [10.0.0.0/8]}", "is not a host"),
        ("{name: phone, url_env: X, allow_hosts: ['*.lan']}", "is not a host"),
    ],
)
def test_what_is_wrong_with_a_target_is_said_where_it_stands(
    folder: Folder, entry: str, message: str
) -> None:
    folder.write("nightherd.yaml", f"notify:\n  - {entry}\n{AGENTS}")

    (problem, *_) = folder.check(X="json://x").problems

    assert message in problem.message
    assert problem.place.line == 2


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: phon}", "the fleet has no notify target 'phon'"),
        ("{name: phone, events: [digest]}", "only targets of the fleet have a digest"),
        ("{name: own, url: 'json://host/x'}", "comes from the environment"),
    ],
)
def test_an_agent_names_a_target_of_the_fleet_or_an_address(
    folder: Folder, entry: str, message: str
) -> None:
    text = f"""\
notify: [{{name: phone, url_env: X}}]
agents:
  - name: a
    runtime: scripted
    script: [{{say: x}}]
    notify: [{entry}]
"""
    folder.write("nightherd.yaml", text)

    (problem, *_) = folder.check(X="json://x").problems

    assert message in problem.message
    assert problem.place.line == 6


def test_hooks_of_slack_and_discord_are_active(folder: Folder) -> None:
    folder.write(
        "nightherd.yaml",
        """\
agents:
  - name: a
    runtime: scripted
    script: [{say: x}]
    hooks:
      after_run:
        - {type: slack, channel_id: C1}
        - {type: discord, channel_id: "1", bot_token_env: DISCORD_BOT_TOKEN}
""",
    )

    loaded = folder.load()

    assert loaded.notices == ()
    assert [one.action for one in loaded.fleet.agents["a"].hooks] == [
        ChatMessage(service="slack", channel="C1", token_env="SLACK_BOT_TOKEN"),
        ChatMessage(service="discord", channel="1", token_env="DISCORD_BOT_TOKEN"),
    ]
