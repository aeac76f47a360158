"""Looks: the sizes and colours in which pages are tried."""

from __future__ import annotations

import zlib
from collections.abc import Callable
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

LOOKS = [DESKTOP, PHONE_DARK, DESKTOP_DARK, PHONE]
"""Both sizes in both colours: the whole matrix."""
TRIED = LOOKS[: often(2, soak=len(LOOKS))]

both_looks = pytest.mark.parametrize("look", TRIED, ids=str)
"""For tests of pages that are made for phones, which take `look` as an argument: in either size."""


def every_look(test: Callable[..., object]) -> Callable[..., object]:
    """For tests of a whole page, which take `look` as an argument: `make test` runs one look of each, `make soak` all."""
    marked: Callable[..., object] = pytest.mark.either_look(both_looks(test))
    return marked


def is_left_out(item: pytest.Item) -> bool:
    """Whether another look than the item's was chosen for its test, by the test's name."""
    if len(TRIED) == len(LOOKS) or item.get_closest_marker("either_look") is None:
        return False
    assert isinstance(item, pytest.Function)
    look = item.callspec.params["look"]
    name = item.nodeid.replace(str(look), "")
    return bool(look != TRIED[zlib.crc32(name.encode()) % len(TRIED)])
