"""Results of tools as text: pictures are named, never printed."""

from __future__ import annotations

from typing import Any

import pytest

from nightherd.model.journal.message import plain_result

DATA = "aGVsbG8h" * 1000


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([], "[]"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (
            [
                {"type": "text", "text": "a picture:"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": DATA},
                },
            ],
            "a picture:\n[image/png, 5.9 KiB]",
        ),
        ([{"type": "image", "data": DATA, "mimeType": "image/jpeg"}], "[image/jpeg, 5.9 KiB]"),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "blob": DATA}}],
            "[resource, 5.9 KiB]",
        ),
        ([{"type": "other", "n": 1}], '[{"type":"other","n":1}]'),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_result_is_text_and_never_base64(result: Any, text: str) -> None:
    assert plain_result(result) == text
