"""Sessions that were exported by earlier versions are imported by this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.imports.session_file import read_session_file
from nightherd.model.journal.message import whole_messages

CORPUS = sorted((Path(__file__).parent.parent / "corpus" / "session-export").glob("*.json"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_exported_session_is_still_read(path: Path) -> None:
    found = read_session_file(path)

    said = [
        message.text
        for events in found.events.values()
        for message in whole_messages(events)
        if message.text
    ]
    assert found.session.parent_session_id == found.ancestors[0].id
    assert found.ancestors[0].name == "the fence"
    assert said[:3] == ["look at the fence", "answer 1 to look at the fence", "look again"]
    assert len(found.events) == 2


def test_there_is_a_corpus() -> None:
    assert [path.name for path in CORPUS] == ["v1-fork.json"]
