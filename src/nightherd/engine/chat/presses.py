"""Presses: a button of an item is an answer of the inbox, in the name that the fleet file gives the person."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Answer
from nightherd.errors import ForbiddenError, InvalidValueError, NotFoundError, RefusedError
from nightherd.model.chat.incoming import ButtonPress, storable
from nightherd.model.chat.item_post import ItemButton, parse_button
from nightherd.model.chat.platform import Platform
from nightherd.model.inbox.item import InboxItem, InboxTexts, Verdict
from nightherd.model.limits.limits import parse_limit

UNKNOWN = "That button does nothing any more."
NOT_NAMED = "You may not answer that: only people who are named as approvers of this bot may."
COMMENTED = "Your comment is recorded."
NO_TEXT = "There was nothing in your answer."


async def press(context: ChatContext, press: ButtonPress) -> str | None:
    """Carry out a press of a button of an item; returns what to say to that person alone, None for nothing.

    Only the first answer counts: a later press is told who has answered.
    """
    press = storable(press)
    button = parse_button(press.button)
    reader = context.fleet.reader
    item = None if button is None else reader.find_item(button.item_id)
    if button is None or item is None:
        return UNKNOWN
    asking = [one for one in reader.posts_of_item(item.id) if one.bot == press.bot]
    # Only the message that shows the item: below another one the same button may be called anything.
    if not any(one.message_id in (None, press.message_id) for one in asking):
        return UNKNOWN
    name = context.settings.approvers.get(press.user_id)
    if name is None:
        return NOT_NAMED
    texts = reader.find_item_texts(item.id) or InboxTexts(item_id=item.id)
    comment = (press.comment or "").strip()
    try:
        request = _request(button, item, texts, comment, name, context.settings.platform)
        answered = await perform(request, context.fleet, rescue=context.rescue)
    except (RefusedError, ForbiddenError, InvalidValueError, NotFoundError) as error:
        return str(context.fleet.secrets.mask(error.message))
    context.wake_after_answer()
    if request.verdict is Verdict.COMMENT:
        return COMMENTED
    if answered.item.is_pending:
        return f"Recorded. {item.quorum} people have to approve."
    return None


def _request(
    button: ItemButton,
    item: InboxItem,
    texts: InboxTexts,
    comment: str,
    name: str,
    platform: Platform,
) -> Answer:
    """The answer that the button and the comment are; `InvalidValueError` for one that says nothing."""
    answer = Answer(
        item_id=item.id,
        verdict=button.verdict,
        by=name,
        via=platform.value,
        text=comment or None,
        seen_hash=item.hash or None,
    )
    match button.verdict:
        case Verdict.RAISE:
            limit, maximum = parse_limit(button.value or comment)
            return replace(answer, limits={limit.value: maximum}, text=None)
        case Verdict.REPLY if button.value:
            options = list(texts.body.get("options") or ())
            place = int(button.value) if button.value.isascii() and button.value.isdigit() else -1
            if not 0 <= place < len(options):
                raise InvalidValueError(UNKNOWN)
            return replace(answer, text=str(options[place]))
        case Verdict.REPLY | Verdict.COMMENT if not comment:
            raise InvalidValueError(NO_TEXT)
        case _:
            return answer
