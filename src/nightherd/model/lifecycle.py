"""What a lifecycle is: a table of the steps that exist. Anything not in the table is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from nightherd.errors import TransitionError

Status = TypeVar("Status", bound=StrEnum)


class Lifecycle(msgspec.Struct, Generic[Status], frozen=True):
    """The statuses of one noun and the steps between them (INV-TERMINAL: a terminal status has none)."""

    noun: str
    steps: Mapping[Status, frozenset[Status]]

    def allows(self, current: Status, target: Status) -> bool:
        """Whether the table has the step."""
        return target in self.steps[current]

    def check(self, current: Status, target: Status) -> Status:
        """`target`, or `TransitionError` when the table does not have the step."""
        if not self.allows(current, target):
            raise TransitionError(self.noun, current.value, target.value)
        return target

    def is_terminal(self, status: Status) -> bool:
        """Whether nothing comes after `status`."""
        return not self.steps[status]

    @property
    def terminal(self) -> frozenset[Status]:
        """The statuses nothing comes after."""
        return frozenset(status for status, targets in self.steps.items() if not targets)
