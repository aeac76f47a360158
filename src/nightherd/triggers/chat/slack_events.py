"""What Slack sends, read into values: messages, presses of buttons, windows and slash commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from nightherd.decoding import decode_json
from nightherd.model.chat.commands import parse_slash_text
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingFile, IncomingMessage
from nightherd.model.chat.platform import BotId, ChatPlace
from nightherd.model.chat.text.slack_incoming import from_mrkdwn, people_in

SPOKEN = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write; the others are edits, deletions and notices of Slack."""
ASKING = "ask-"
"""What the action of a button begins with that opens a window."""
COMMENT_VIEW = "nightherd-comment"
COMMENT = "comment"
UNREADABLE = frozenset({"tombstone", "hidden_by_limit"})
"""Modes of files that are gone, or hidden by the workspace's plan."""

Payload = Mapping[str, Any]


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot, as Slack knows it."""

    user_id: str
    bot_id: str
    team_id: str
    name: str


def is_spoken(event: Payload, me: Me) -> bool:
    """Whether a person wrote it: no bot, no edit, no notice of Slack."""
    if event.get("type") not in ("message", "app_mention") or event.get("subtype") not in SPOKEN:
        return False
    if (
        event.get("bot_id")
        or event.get("bot_profile")
        or event.get("hidden")
        or not isinstance(event.get("ts"), str)
    ):
        return False
    user = event.get("user")
    return isinstance(user, str) and user not in (me.user_id, "USLACKBOT")


def place_of(channel: str, message: Payload) -> ChatPlace:
    """Return where a message is said: the first message of a thread is in the channel."""
    thread, ts = message.get("thread_ts"), message.get("ts")
    return ChatPlace(channel_id=channel, thread_id=thread if thread and thread != ts else None)


def order_key(payload: Payload) -> str | None:
    """Return what must be taken in order with others of the same key; None for what needs no order."""
    event = payload.get("event")
    if not isinstance(event, Mapping) or not isinstance(event.get("channel"), str):
        return None
    place = place_of(event["channel"], event)
    return f"{place.channel_id}/{place.thread_id or ''}"


def incoming_message(
    event: Payload,
    *,
    channel: str,
    bot: BotId,
    me: Me,
    people: Mapping[str, str],
    channels: Mapping[str, str],
) -> IncomingMessage:
    """Return a message as the engine takes it; `is_spoken` holds for the event."""
    text = text_of(event)
    user = str(event["user"])
    files = (_file(one) for one in event.get("files") or () if isinstance(one, Mapping))
    return IncomingMessage(
        bot=bot,
        place=place_of(channel, event),
        message_id=event["ts"],
        sent_at=instant(event["ts"]),
        user_id=user,
        user_name=people.get(user, user),
        text=from_mrkdwn(text, names=people, channels=channels, bot_user=me.user_id),
        is_direct=is_direct(channel, event.get("channel_type")),
        is_mention=me.user_id in people_in(text),
        guild_id=me.team_id or None,
        files=tuple(one for one in files if one is not None),
    )


def text_of(event: Payload) -> str:
    """Return what a message says, in mrkdwn, with the messages that it shares as quotations."""
    parts = [str(event.get("text") or "")]
    for shared in event.get("attachments") or ():
        if shared.get("is_share") or shared.get("is_msg_unfurl"):
            said = str(shared.get("text") or shared.get("fallback") or "")
            author = str(shared.get("author_name") or "")
            lines = [f"{author}:"] * bool(author) + said.splitlines()
            parts.append("\n".join(f"&gt; {line}" for line in lines))
    return "\n\n".join(part for part in parts if part)


def is_direct(channel: str, channel_type: object = None) -> bool:
    """Whether a channel is a conversation with one person alone."""
    return channel_type == "im" or channel.startswith("D")


def instant(ts: str) -> datetime:
    """Return the time that a `ts` is."""
    seconds, _, micro = ts.partition(".")
    whole = int(seconds) if seconds.isdecimal() and len(seconds) <= 11 else 0
    fraction = int(micro[:6].ljust(6, "0")) if micro.isdecimal() else 0
    return datetime.fromtimestamp(whole, UTC) + timedelta(microseconds=fraction)


def _file(file: Payload) -> IncomingFile | None:
    id, mode = file.get("id"), file.get("mode")
    if not isinstance(id, str) or mode in UNREADABLE:
        return None
    size = file.get("size")
    return IncomingFile(
        id=id,
        name=str(file.get("name") or file.get("title") or id),
        media_type=str(file.get("mimetype") or "application/octet-stream"),
        size=size if isinstance(size, int) else 0,
        url=str(file.get("url_private_download") or file.get("url_private") or ""),
        is_voice=file.get("subtype") == "slack_audio",
    )


class Pressed(msgspec.Struct, frozen=True, kw_only=True):
    """A press of a button, and where its answer goes."""

    place: ChatPlace
    message_id: str
    user_id: str
    user_name: str
    button: str
    label: str = ""
    trigger_id: str = ""
    opens_window: bool = False
    comment: str | None = None

    def press(self, bot: BotId, user_name: str) -> ButtonPress:
        """Return it as the engine takes it."""
        return ButtonPress(
            bot=bot,
            place=self.place,
            message_id=self.message_id,
            user_id=self.user_id,
            user_name=user_name,
            button=self.button,
            comment=self.comment,
        )


def pressed_button(body: Payload) -> Pressed | None:
    """Return the press in `block_actions`; None for one of a message that is not ours to act on."""
    container, user = body.get("container") or {}, body.get("user") or {}
    action = next((one for one in body.get("actions") or () if one.get("type") == "button"), None)
    channel = container.get("channel_id") or (body.get("channel") or {}).get("id")
    ts = container.get("message_ts") or (body.get("message") or {}).get("ts")
    if action is None or not channel or not ts or not user.get("id") or not action.get("value"):
        return None
    message = {"thread_ts": container.get("thread_ts"), **(body.get("message") or {}), "ts": ts}
    return Pressed(
        place=place_of(channel, message),
        message_id=ts,
        user_id=user["id"],
        user_name=_user_name(user),
        button=action["value"],
        label=(action.get("text") or {}).get("text", ""),
        trigger_id=str(body.get("trigger_id") or ""),
        opens_window=str(action.get("action_id", "")).startswith(ASKING),
    )


def comment_view(pressed: Pressed) -> dict[str, Any]:
    """Return the window that asks for a comment. It carries the press."""
    carried = {
        "channel": pressed.place.channel_id,
        "thread": pressed.place.thread_id,
        "message": pressed.message_id,
        "button": pressed.button,
    }
    entry = {"type": "plain_text_input", "action_id": COMMENT, "multiline": True}
    return {
        "type": "modal",
        "callback_id": COMMENT_VIEW,
        "private_metadata": json.dumps(carried),
        "title": _plain((pressed.label or "Comment")[:24]),
        "submit": _plain("Send"),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": COMMENT,
                "label": _plain("Comment"),
                "element": {**entry, "max_length": 3000},
            }
        ],
    }


def submitted_comment(body: Payload) -> Pressed | None:
    """Return the press of the button whose window was filled in; None for another window."""
    view, user = body.get("view") or {}, body.get("user") or {}
    if view.get("callback_id") != COMMENT_VIEW or not user.get("id"):
        return None
    try:
        carried = decode_json(str(view.get("private_metadata")), _Carried)
    except msgspec.MsgspecError:
        return None
    values = (view.get("state") or {}).get("values") or {}
    comment = ((values.get(COMMENT) or {}).get(COMMENT) or {}).get("value")
    return Pressed(
        place=ChatPlace(channel_id=carried.channel, thread_id=carried.thread),
        message_id=carried.message,
        user_id=user["id"],
        user_name=_user_name(user),
        button=carried.button,
        comment=str(comment or ""),
    )


class _Carried(msgspec.Struct):
    channel: str
    message: str
    button: str
    thread: str | None = None


def slash_command(body: Payload, bot: BotId, user_name: str) -> ChatCommand:
    """Return a slash command. Slack does not say in which thread it was written, and has none there."""
    parsed = parse_slash_text(str(body.get("text") or ""))
    channel = str(body.get("channel_id") or "")
    return ChatCommand(
        bot=bot,
        place=ChatPlace(channel_id=channel),
        user_id=str(body.get("user_id") or ""),
        user_name=user_name,
        name=parsed.name,
        argument=parsed.argument,
        is_direct=is_direct(channel),
        guild_id=body.get("team_id") or None,
        command_id=str(body.get("trigger_id") or ""),
    )


def _user_name(user: Payload) -> str:
    return str(user.get("name") or user.get("username") or user["id"])


def _plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}
