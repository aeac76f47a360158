"""The platform in memory does what every platform does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.model.chat.platform import Platform, bot_id
from nightherd.testing.contracts.chat import CHAT_CHECKS, Check, OpenChat
from nightherd.testing.local_chat import HERE, LocalPlatform
from nightherd.testing.recording_receiver import RecordingReceiver

each_check = pytest.mark.parametrize("check", CHAT_CHECKS, ids=lambda check: check.__name__)


@each_check
async def test_local_chat_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    platform = LocalPlatform()

    await check(
        OpenChat(
            connection=platform.connect(bot_id(Platform.SLACK, "coder")),
            platform=platform,
            place=HERE,
            user_id=platform.user_id,
            user_name=platform.user_name,
            secrets=("no secret",),
            directory=tmp_path,
            receiver=RecordingReceiver(),
        )
    )
