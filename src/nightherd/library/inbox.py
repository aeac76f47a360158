"""Inbox: what waits for a person, and answers to it, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.resume import Rescue
from nightherd.engine.operations.tokens import person_with
from nightherd.model.inbox.item import InboxItem, InboxQuery, Verdict
from nightherd.model.limits.limits import kept_limits
from nightherd.views.people.inbox import InboxPage, ShownItem, find_item_id, list_inbox, show_item
from nightherd.wiring.machine import refuse_agents, user_name

VIA = "library"


class Inbox:
    """The inbox of an open fleet.

    An item is named by its id, a unique beginning of one, `@last`, or the id of its job. Answers are recorded under
    the name of the `token` if one is given, else of the user that runs the program; a program that an agent started
    cannot answer. `RefusedError` when somebody decided before, `ForbiddenError` for somebody who may not.
    """

    def __init__(self, context: FleetContext, state_dir: Path, rescue: Rescue) -> None:
        self._context = context
        self._state_dir = state_dir
        self._rescue = rescue

    def list(self, query: InboxQuery | None = None) -> InboxPage:
        """Return a page of what waits, newest first; with `is_pending=False` of what does not any more."""
        return list_inbox(self._context.reader, query or InboxQuery())

    def show(self, item: str) -> ShownItem:
        """Return an item with all that it asks, its answers and its job."""
        reader = self._context.reader
        return show_item(reader, find_item_id(reader, item), self._context.artifacts)

    async def approve(
        self,
        item: str | InboxItem,
        *,
        text: str | None = None,
        input: Mapping[str, Any] | None = None,
        token: str | None = None,
    ) -> Answered:
        """Approve a call, with other arguments if `input` is given. Exactly this call runs once."""
        return await self.answer(item, "approve", text=text, input=input, token=token)

    async def reject(
        self, item: str | InboxItem, *, text: str | None = None, token: str | None = None
    ) -> Answered:
        """Reject what the item asks for; the agent is given `text` as the reason."""
        return await self.answer(item, "reject", text=text, token=token)

    async def reply(
        self, item: str | InboxItem, text: str, *, token: str | None = None
    ) -> Answered:
        """Answer a question."""
        return await self.answer(item, "reply", text=text, token=token)

    async def raise_limits(
        self,
        item: str | InboxItem,
        limits: Mapping[str, str],
        *,
        text: str | None = None,
        token: str | None = None,
    ) -> Answered:
        """Raise limits to new maxima, such as `{"spend": "5"}`; the job continues."""
        return await self.answer(item, "raise", limits=limits, text=text, token=token)

    async def retry(
        self, item: str | InboxItem, *, text: str | None = None, token: str | None = None
    ) -> Answered:
        """Try a failed job again."""
        return await self.answer(item, "retry", text=text, token=token)

    async def dismiss(
        self, item: str | InboxItem, *, text: str | None = None, token: str | None = None
    ) -> Answered:
        """Leave a failed job as it is."""
        return await self.answer(item, "dismiss", text=text, token=token)

    async def accept(
        self, item: str | InboxItem, *, text: str | None = None, token: str | None = None
    ) -> Answered:
        """Accept a changed fleet file: it takes effect where the fleet is loaded next."""
        return await self.answer(item, "accept", text=text, token=token)

    async def comment(
        self, item: str | InboxItem, text: str, *, token: str | None = None
    ) -> Answered:
        """Add a comment, which decides nothing."""
        return await self.answer(item, "comment", text=text, token=token)

    async def answer(
        self,
        item: str | InboxItem,
        verdict: str,
        *,
        text: str | None = None,
        input: Mapping[str, Any] | None = None,
        limits: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answered:
        """Give any answer. An item as `list` or `show` returned it is not answered if it has changed since."""
        refuse_agents(self._state_dir, "answering the inbox")
        reader = self._context.reader
        seen = item if isinstance(item, InboxItem) else None
        request = Answer(
            item_id=find_item_id(reader, item) if isinstance(item, str) else item.id,
            verdict=Verdict(verdict),
            by=user_name() if token is None else person_with(token, reader),
            via=VIA,
            text=text,
            input=None if input is None else dict(input),
            seen_hash=None if seen is None else seen.hash,
            limits=kept_limits(limits or {}),
        )
        return await perform(request, self._context, rescue=self._rescue)
