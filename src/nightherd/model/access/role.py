"""Roles: what a person may do through the API and the dashboard."""

from __future__ import annotations

from enum import StrEnum

from nightherd.errors import InvalidValueError


class Role(StrEnum):
    """A viewer reads; an operator also starts, cancels, answers and raises limits; an admin may do everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, needed: Role) -> bool:
        """Whether this role may do what `needed` may do."""
        return _RANKS[self] >= _RANKS[needed]


_RANKS = {role: rank for rank, role in enumerate(Role)}

ABILITIES: dict[str, Role] = {
    "read": Role.VIEWER,
    "start": Role.OPERATOR,
    "cancel": Role.OPERATOR,
    "answer": Role.OPERATOR,
    "raise": Role.OPERATOR,
    "reload": Role.ADMIN,
    "schedules": Role.ADMIN,
    "retention": Role.ADMIN,
    "tokens": Role.ADMIN,
}
"""The role that each group of actions needs; a page shows only what the person may do."""


def abilities(role: Role) -> dict[str, bool]:
    """Return which groups of actions the role allows."""
    return {name: role.includes(needed) for name, needed in ABILITIES.items()}


def parse_role(text: str) -> Role:
    """`text` as a role, or `InvalidValueError`."""
    try:
        return Role(text)
    except ValueError:
        known = ", ".join(role.value for role in Role)
        raise InvalidValueError(f"{text!r} is not a role; use one of {known}") from None
