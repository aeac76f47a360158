"""The access token of the host's Claude: read anew for each run, and nothing of its file is changed."""

from __future__ import annotations

import json
from pathlib import Path

from nightherd.runtimes.container.credentials import access_token


def test_token_is_read_as_it_is_now_and_the_file_stays(tmp_path: Path) -> None:
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    file = tmp_path / ".credentials.json"
    assert access_token(environment) is None

    for token in ("first", "renewed"):
        text = json.dumps({"claudeAiOauth": {"accessToken": token, "refreshToken": "secret"}})
        file.write_text(text)
        assert access_token(environment) == token
        assert file.read_text() == text


def test_file_that_holds_no_token_is_none(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"claudeAiOauth": {}}', '{"claudeAiOauth": {"accessToken": 3}}'):
        (tmp_path / ".credentials.json").write_text(text)
        assert access_token({"CLAUDE_CONFIG_DIR": str(tmp_path)}) is None
