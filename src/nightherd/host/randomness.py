"""The system's cryptographic random source."""

from __future__ import annotations

import secrets

from nightherd.model.ids import ALPHABET


def random_text(length: int) -> str:
    """`length` characters of the id alphabet, unpredictable and each as likely as any other."""
    # One draw for the whole text: a system call for each character costs more than all else about an id.
    number = secrets.randbelow(len(ALPHABET) ** length)
    characters = []
    for _ in range(length):
        number, place = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[place])
    return "".join(characters)
