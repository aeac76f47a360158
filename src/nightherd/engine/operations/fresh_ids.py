"""Ids that are taken: a change that brings a new row is made again with another id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nightherd.errors import NightherdError
from nightherd.model.change import Answer, Refused, Why

ID_TRIES = 8
"""How often a taken id is replaced by a new one; two in a row is already a one in a thousand million."""

ChangeT = TypeVar("ChangeT")


async def apply_with_fresh_ids(
    changes: Sequence[ChangeT],
    renew: Callable[[ChangeT], ChangeT],
    apply: Callable[[Sequence[ChangeT]], Awaitable[Sequence[Answer]]],
) -> list[Answer]:
    """Apply the changes together and return their answers; `renew` gives a change whose id is taken another one.

    `NightherdError` when the ids stay taken. What was applied by then stays applied.
    """
    tried = list(changes)
    answers = list(await apply(tried))
    for _ in range(ID_TRIES):
        taken = [place for place, answer in enumerate(answers) if _is_taken(answer)]
        if not taken:
            return answers
        for place in taken:
            tried[place] = renew(tried[place])
        again = await apply([tried[place] for place in taken])
        for place, answer in zip(taken, again, strict=True):
            answers[place] = answer
    raise NightherdError(f"no free id after {ID_TRIES} tries")


def _is_taken(answer: Answer) -> bool:
    return isinstance(answer, Refused) and answer.why is Why.ID_TAKEN
