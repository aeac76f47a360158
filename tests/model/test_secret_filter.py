"""The secret filter: the same as masking the whole text, wherever its pieces begin and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.secrets import NO_SECRETS, SecretFilter, knowing

SECRETS = knowing({"abcab": "A", "abcabcabc": "LONG", "é-é": "E"})
PIECES = st.lists(
    st.sampled_from(["abc", "ab", "c", "é", "-", "é-é", "abcabcabc", "x", "abcab"]), max_size=12
)


@given(PIECES, st.integers(min_value=1, max_value=7))
def test_pieces_are_masked_like_the_whole(words: list[str], size: int) -> None:
    text = "".join(words)
    data, masking = text.encode(), SecretFilter(SECRETS)

    masked = b"".join(masking.feed(data[at : at + size]) for at in range(0, len(data), size))

    assert (masked + masking.finish()).decode() == SECRETS.mask(text)


def test_without_secrets_nothing_is_held_back() -> None:
    assert SecretFilter(NO_SECRETS).feed(b"\xff as it is") == b"\xff as it is"
