"""Where Claude cut the output of a tool, no half of a secret stays."""

from __future__ import annotations

import pytest

from nightherd.model.secrets import knowing

SECRET = "qwertyuiopasdfghjklzxcvbnm0123456789"
SECRETS = knowing({SECRET: "API_KEY", "something-else-that-is-long": "OTHER"})


@pytest.mark.parametrize("size", [9, 20, 35])
@pytest.mark.parametrize(
    "mark", ["\n\n... [12 lines truncated] ...\n\n", "\n... [1,234 characters truncated] ..."]
)
def test_the_beginning_and_the_end_of_a_secret_are_masked(mark: str, size: int) -> None:
    text = f"before {SECRET[:size]}{mark}{SECRET[-size:]} after"

    assert SECRETS.mask(text) == f"before [secret:API_KEY]{mark}[secret:API_KEY] after"


def test_a_preview_of_a_stored_output_is_masked() -> None:
    text = f"<persisted-output>\nPreview (first 2KB):\nkey={SECRET[:30]}\n...\n</persisted-output>"

    assert "key=[secret:API_KEY]\n...\n</persisted-output>" in SECRETS.mask(text)


@pytest.mark.parametrize(
    "text", [f"{SECRET[:20]}", f"{SECRET[:20]} ...", f"{SECRET[:4]}\n\n... [2 lines truncated] ..."]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert SECRETS.mask(text) == text
