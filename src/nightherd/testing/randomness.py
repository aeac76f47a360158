"""Dice that always fall the same way."""

from __future__ import annotations

from itertools import count

from nightherd.model.ids import ALPHABET


class CountingText:
    """Random text that counts: the first call gives `aaa...a`, the next `aaa...b`, and so on."""

    def __init__(self) -> None:
        self._numbers = count()

    def __call__(self, length: int) -> str:
        number = next(self._numbers)
        letters = []
        for _ in range(length):
            number, letter = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[letter])
        return "".join(reversed(letters))
