"""What a bot sends on Slack: messages with buttons, edits, and how a message of ours is recognised."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.text.slack_emoji import slack_emoji
from nightherd.model.chat.text.split import split_text
from nightherd.ports.chat import Button, ChatPost, PostResult
from nightherd.triggers.chat.slack_client import SlackClient
from nightherd.triggers.chat.slack_errors import post_result
from nightherd.triggers.chat.slack_events import ASKING

EVENT_TYPE = "nightherd_post"
"""The type of our messages' metadata."""
BLOCK = "nightherd-"
"""What the id of a block begins with by which a message with a file is recognised: it can have no metadata."""
SECTION = 2_900
"""Characters of one section; Slack takes 3,000."""
MOST_SECTIONS = 20
REMEMBERED = 2_000
SEARCHED_PAGES = 10
"""Pages of a place that are searched for a message of ours."""
WRITING = "is writing..."


class SlackPosts:
    """Sends, edits and finds messages. The same nonce sends nothing again while the connection lasts."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self.bot_id: str | None = None
        """What Slack calls the bot in messages of its own, once that is known."""
        self._sent: OrderedDict[str, str] = OrderedDict()
        self._uncertain: set[str] = set()
        self._without_typing: set[str] = set()

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message."""
        known = await self.known(post.place, post.nonce)
        if known is not None:
            return known
        answer = await self._client.call(
            "chat.postMessage",
            channel=post.place.channel_id,
            thread_ts=post.place.thread_id,
            unfurl_links=False,
            unfurl_media=False,
            **_content(post),
        )
        ts = answer.data.get("ts")
        return self.note(post.nonce, post_result(answer, ts if isinstance(ts, str) else None))

    async def known(self, place: ChatPlace, nonce: str) -> PostResult | None:
        """Return what is known of a message that may have been sent already; None if it has to be sent."""
        if nonce in self._sent:
            return PostResult(message_id=self._sent[nonce])
        if nonce not in self._uncertain:
            return None
        try:
            found = await self.find(place, nonce)
        except NightherdError as error:
            return PostResult(error=message_of(error), is_uncertain=True)
        self._uncertain.discard(nonce)
        if found is None:
            return None
        return self.note(nonce, PostResult(message_id=found))

    def note(self, nonce: str, result: PostResult) -> PostResult:
        """Remember what came of sending, and return it."""
        if result.message_id is not None:
            self._sent[nonce] = result.message_id
            while len(self._sent) > REMEMBERED:
                self._sent.popitem(last=False)
        elif result.is_uncertain and len(self._uncertain) < REMEMBERED:
            self._uncertain.add(nonce)
        return result

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace text and buttons."""
        content = {"blocks": [], **_content(post)}
        answer = await self._client.call(
            "chat.update", channel=post.place.channel_id, ts=message_id, **content
        )
        return post_result(answer, message_id)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message; one that is gone is removed already."""
        answer = await self._client.call("chat.delete", channel=place.channel_id, ts=message_id)
        if answer.error == "message_not_found":
            return PostResult(message_id=message_id)
        return post_result(answer, message_id)

    async def whisper(self, place: ChatPlace, user_id: str, text: str) -> PostResult:
        """Show a message to one person alone."""
        answer = await self._client.call(
            "chat.postEphemeral",
            channel=place.channel_id,
            thread_ts=place.thread_id,
            user=user_id,
            text=text,
        )
        return post_result(answer, "")

    async def find(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message of ours with that nonce among the latest ones."""
        arguments = {"channel": place.channel_id, "ts": place.thread_id}
        method = "conversations.history" if place.thread_id is None else "conversations.replies"
        pages = self._client.pages(method, include_all_metadata=True, **arguments)
        number = 0
        async for page in pages:
            for message in page:
                if self._is_ours(message) and nonce in _nonces(message):
                    return str(message["ts"])
            number += 1
            if number >= SEARCHED_PAGES:
                return None
        return None

    def _is_ours(self, message: Mapping[str, Any]) -> bool:
        return self.bot_id is None or message.get("bot_id") == self.bot_id

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction."""
        name = slack_emoji(emoji)
        if name is None:
            return PostResult(error=f"Slack has no name for {emoji!r}", is_permanent=True)
        answer = await self._client.call(
            "reactions.add" if is_on else "reactions.remove",
            channel=place.channel_id,
            timestamp=message_id,
            name=name,
        )
        if answer.error in ("already_reacted", "no_reaction"):
            return PostResult(message_id=message_id)
        return post_result(answer, message_id)

    async def typing(self, place: ChatPlace) -> None:
        """Show in a thread that an answer is written. Slack has nothing like it outside of threads."""
        if place.thread_id is None or place.channel_id in self._without_typing:
            return
        with anyio.move_on_after(10):
            answer = await self._client.call(
                "assistant.threads.setStatus",
                channel_id=place.channel_id,
                thread_ts=place.thread_id,
                status=WRITING,
            )
            if answer.is_permanent and len(self._without_typing) < REMEMBERED:
                self._without_typing.add(place.channel_id)


def file_blocks(nonce: str, text: str, name: str) -> list[dict[str, Any]]:
    """Return what is said with a file: Slack leaves the ids of blocks as they are."""
    if not text.strip():
        return [{"type": "context", "block_id": BLOCK + nonce, "elements": [_words(name)]}]
    sections = _sections(text)
    sections[0]["block_id"] = BLOCK + nonce
    return sections


def _content(post: ChatPost) -> dict[str, Any]:
    metadata = {"event_type": EVENT_TYPE, "event_payload": {"nonce": post.nonce}}
    content: dict[str, Any] = {"text": post.text, "metadata": metadata}
    if post.buttons:
        buttons = [_button(number, one) for number, one in enumerate(post.buttons)]
        content["blocks"] = [*_sections(post.text), {"type": "actions", "elements": buttons}]
    return content


def _sections(text: str) -> list[dict[str, Any]]:
    parts: Sequence[str] = split_text(text, SECTION)[:MOST_SECTIONS] if text.strip() else ("...",)
    return [{"type": "section", "text": _words(part)} for part in parts]


def _words(text: str) -> dict[str, Any]:
    """Return a text that is shown as it is: Slack makes no mentions of what looks like one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _button(number: int, button: Button) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": "button",
        "action_id": f"{ASKING if button.asks_comment else 'press-'}{number}",
        "text": {"type": "plain_text", "text": button.label[:75]},
        "value": button.id,
    }
    if button.is_primary:
        shown["style"] = "primary"
    if button.is_dangerous:
        shown["style"] = "danger"
    return shown


def _nonces(message: Mapping[str, Any]) -> set[str]:
    """Return the nonces that a message of ours shows."""
    found = set()
    metadata = message.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("event_type") == EVENT_TYPE:
        found.add(str((metadata.get("event_payload") or {}).get("nonce")))
    for block in message.get("blocks") or ():
        id = block.get("block_id") if isinstance(block, Mapping) else None
        if isinstance(id, str) and id.startswith(BLOCK):
            found.add(id.removeprefix(BLOCK))
    return found
