"""Looks: the sizes and colours in which pages are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from soak import often


@dataclass(frozen=True)
class Look:
    """What a person sees the dashboard on."""

    width: int
    height: int
    colours: Literal["light", "dark"]

    @property
    def is_phone(self) -> bool:
        """Whether it is held in a hand: it has a touch screen."""
        return self.width < 600

    def __str__(self) -> str:
        return f"{self.width}-{self.colours}"

    @property
    def options(self) -> dict[str, Any]:
        """Of a browser context."""
        return {
            "viewport": {"width": self.width, "height": self.height},
            "color_scheme": self.colours,
            "is_mobile": self.is_phone,
            "has_touch": self.is_phone,
        }


DESKTOP = Look(1440, 900, "light")
DESKTOP_DARK = Look(1440, 900, "dark")
PHONE = Look(390, 844, "light")
PHONE_DARK = Look(390, 844, "dark")

LOOKS = [DESKTOP, PHONE_DARK, DESKTOP_DARK, PHONE][: often(2, soak=4)]
"""Both sizes and both colours are always among them; all four of the matrix in the soak."""

every_look = pytest.mark.parametrize("look", LOOKS, ids=str)
"""For tests of a whole page, which takes `look` as an argument."""
