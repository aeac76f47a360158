"""The connection to Slack does what every connection to a chat platform does, by Socket Mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.testing.contracts.chat import CHAT_CHECKS, Check
from nightherd.testing.slack_api import SlackApi
from triggers.chat.slack_bot import connect, opened

each_check = pytest.mark.parametrize("check", CHAT_CHECKS, ids=lambda check: check.__name__)


@each_check
async def test_slack_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with SlackApi() as slack:
        await check(opened(slack, connect(slack), tmp_path))
