"""Methods of Slack's Web API on a workspace in memory: what they need, what they do and what they answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nightherd.decoding import convert
from nightherd.testing.slack_workspace import (
    BOT,
    BOT_USER,
    TEAM,
    SlackFile,
    SlackMessage,
    SlackWorkspace,
    order,
)

Arguments = Mapping[str, str]
Answer = dict[str, Any]

SCOPES = {
    "assistant.threads.setStatus": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "{channel}:history",
    "conversations.info": "{channel}:read",
    "conversations.replies": "{channel}:history",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "users.info": "users:read",
}
"""The scope that a method needs; those of channels by the kind of channel."""
GROUPS = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
LONGEST_TEXT = 40_000


class SlackMethods:
    """The methods. What other programs see of them is told to `on_event` and `on_view`."""

    def __init__(self, workspace: SlackWorkspace) -> None:
        self.workspace = workspace
        self.base = ""
        """Where the server is."""
        self.page_limit = 1_000
        """The most messages of one page."""
        self.on_event: Callable[[Mapping[str, Any]], None] = _ignore
        """Called with the event of a message that the bot sent or changed."""
        self.on_view: Callable[[str, Mapping[str, Any]], None] = _ignore_view
        """Called with the trigger and the view of a window that is opened."""
        self.triggers: set[str] = set()
        """Those by which a window may be opened still."""
        self._methods: dict[str, Callable[[Arguments], Answer]] = {
            "assistant.threads.setStatus": self._set_status,
            "auth.test": self._auth_test,
            "chat.delete": self._delete,
            "chat.postEphemeral": self._whisper,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.info": self._channel,
            "conversations.replies": self._replies,
            "files.completeUploadExternal": self._complete_upload,
            "files.getUploadURLExternal": self._begin_upload,
            "files.info": self._file,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
            "users.info": self._user,
            "views.open": self._open_view,
        }

    def call(self, method: str, arguments: Arguments, scopes: frozenset[str] | None) -> Answer:
        """Call a method; `scopes` are those that the app has, None for all."""
        handle = self._methods.get(method)
        if handle is None:
            return _error("unknown_method")
        with self.workspace.lock:
            channel = arguments.get("channel", arguments.get("channel_id", ""))
            needed = SCOPES.get(method, "").format(channel=GROUPS[self.workspace.kind(channel)])
            if scopes is not None and needed and needed not in scopes:
                missing = {"needed": needed, "provided": ",".join(sorted(scopes))}
                return {**_error("missing_scope"), **missing}
            if channel and channel not in self.workspace.channels:
                return _error("channel_not_found")
            if channel in self.workspace.closed_channels:
                return _error("not_in_channel")
            return handle(arguments)

    def _auth_test(self, arguments: Arguments) -> Answer:
        return _done(
            url=f"{self.base}/",
            team="loopback",
            team_id=TEAM,
            user="nightherd",
            user_id=BOT_USER,
            bot_id=BOT,
        )

    def _post(self, arguments: Arguments) -> Answer:
        text, blocks = arguments.get("text", ""), _json(arguments, "blocks", [])
        if not text and not blocks:
            return _error("no_text")
        if len(text) > LONGEST_TEXT:
            return _error("msg_too_long")
        problem = _mistake_in(blocks)
        if problem is not None:
            return problem
        message = SlackMessage(
            channel=arguments["channel"],
            ts=self.workspace.next_ts(),
            text=text,
            user=BOT_USER,
            bot_id=BOT,
            thread_ts=arguments.get("thread_ts"),
            blocks=blocks,
            metadata=_json(arguments, "metadata", None),
        )
        self.workspace.add(message)
        self._tell(message)
        return _done(channel=message.channel, ts=message.ts, message=self._shown(message))

    def _update(self, arguments: Arguments) -> Answer:
        message = self.workspace.find(arguments["channel"], arguments["ts"])
        if message is None:
            return _error("message_not_found")
        if message.bot_id != BOT:
            return _error("cant_update_message")
        blocks = _json(arguments, "blocks", list(message.blocks))
        problem = _mistake_in(blocks)
        if problem is not None:
            return problem
        message.text, message.blocks = arguments.get("text", message.text), blocks
        message.metadata = _json(arguments, "metadata", message.metadata)
        changed = {"type": "message", "subtype": "message_changed", "hidden": True}
        place = {"channel": message.channel, "ts": self.workspace.next_ts()}
        self.on_event({**changed, **place, "message": self._shown(message)})
        return _done(channel=message.channel, ts=message.ts, text=message.text)

    def _delete(self, arguments: Arguments) -> Answer:
        message = self.workspace.find(arguments["channel"], arguments["ts"])
        if message is None:
            return _error("message_not_found")
        if message.bot_id != BOT:
            return _error("cant_delete_message")
        self.workspace.messages.remove(message)
        return _done(channel=message.channel, ts=message.ts)

    def _whisper(self, arguments: Arguments) -> Answer:
        self.workspace.whispers.append((arguments["user"], arguments.get("text", "")))
        return _done(message_ts=self.workspace.next_ts())

    def _history(self, arguments: Arguments) -> Answer:
        return self._page(self.workspace.in_channel(arguments["channel"]), arguments)

    def _replies(self, arguments: Arguments) -> Answer:
        thread = self.workspace.replies(arguments["channel"], arguments.get("ts", ""))
        if not thread:
            return _error("thread_not_found")
        return self._page(thread[1:], arguments, first=thread[:1])

    def _page(
        self,
        messages: Sequence[SlackMessage],
        arguments: Arguments,
        first: Sequence[SlackMessage] = (),
    ) -> Answer:
        """One page; the first message of a thread is on every one, as Slack does it."""
        oldest, latest = arguments.get("oldest", "0"), arguments.get("latest", "99999999999.0")
        wanted = [one for one in messages if order(oldest) < order(one.ts) < order(latest)]
        begin = int(arguments.get("cursor") or 0)
        end = begin + min(int(arguments.get("limit") or 100), self.page_limit)
        has_more = end < len(wanted)
        with_metadata = arguments.get("include_all_metadata") in ("true", "1")
        page = [*first, *wanted[begin:end]]
        return _done(
            messages=[self._shown(one, with_metadata=with_metadata) for one in page],
            has_more=has_more,
            response_metadata={"next_cursor": str(end) if has_more else ""},
        )

    def _channel(self, arguments: Arguments) -> Answer:
        id = arguments["channel"]
        return _done(channel={"id": id, "name": self.workspace.channels[id]})

    def _user(self, arguments: Arguments) -> Answer:
        id = arguments["user"]
        name = self.workspace.names.get(id)
        if name is None:
            return _error("user_not_found")
        profile = {"display_name": name, "real_name": f"{name} Example"}
        is_bot = id in self.workspace.bot_users
        return _done(user={"id": id, "name": name.lower(), "is_bot": is_bot, "profile": profile})

    def _react(self, arguments: Arguments) -> Answer:
        return self._change_reaction(arguments, is_on=True)

    def _unreact(self, arguments: Arguments) -> Answer:
        return self._change_reaction(arguments, is_on=False)

    def _change_reaction(self, arguments: Arguments, *, is_on: bool) -> Answer:
        message = self.workspace.find(arguments["channel"], arguments["timestamp"])
        if message is None:
            return _error("message_not_found")
        name = arguments["name"]
        if not name.replace("_", "").replace("-", "").replace("+", "").isalnum():
            return _error("invalid_name")
        if (name in message.reactions) is is_on:
            return _error("already_reacted" if is_on else "no_reaction")
        (message.reactions.add if is_on else message.reactions.discard)(name)
        return _done()

    def _begin_upload(self, arguments: Arguments) -> Answer:
        size = int(arguments.get("length") or 0)
        if size <= 0:
            return _error("invalid_arguments")
        id = self.workspace.next_id("F")
        self.workspace.files[id] = SlackFile(
            id=id, name=arguments["filename"], media_type="application/octet-stream", size=size
        )
        return _done(upload_url=f"{self.base}/upload/v1/{id}", file_id=id)

    def _complete_upload(self, arguments: Arguments) -> Answer:
        ids = [one["id"] for one in _json(arguments, "files", [])]
        files = [self.workspace.files.get(id) for id in ids]
        if not all(one is not None and len(one.content) == one.size for one in files):
            return _error("file_not_found")
        blocks = _json(arguments, "blocks", []) if "initial_comment" not in arguments else []
        message = SlackMessage(
            channel=arguments["channel_id"],
            ts=self.workspace.next_ts(),
            text=arguments.get("initial_comment") or _text_of(blocks),
            user=BOT_USER,
            bot_id=BOT,
            subtype="file_share",
            thread_ts=arguments.get("thread_ts"),
            blocks=blocks,
            files=tuple(ids),
        )
        self.workspace.add(message)
        self._tell(message)
        # As in Slack, where the file is shown is not known yet.
        return _done(files=[{"id": id} for id in ids])

    def _file(self, arguments: Arguments) -> Answer:
        file = self.workspace.files.get(arguments["file"])
        if file is None:
            return _error("file_not_found")
        return _done(file=self.workspace.shown_file(file, self.base))

    def _set_status(self, arguments: Arguments) -> Answer:
        self.workspace.typed.append((arguments["channel_id"], arguments["thread_ts"]))
        return _done()

    def _open_view(self, arguments: Arguments) -> Answer:
        trigger = arguments.get("trigger_id", "")
        if trigger not in self.triggers:
            return _error("expired_trigger_id")
        self.triggers.discard(trigger)
        view = _json(arguments, "view", {})
        if len(view.get("title", {}).get("text", "")) > 24:
            return _error("invalid_arguments")
        id = self.workspace.next_id("V")
        self.on_view(trigger, {**view, "id": id})
        return _done(view={**view, "id": id})

    def _shown(self, message: SlackMessage, *, with_metadata: bool = True) -> dict[str, Any]:
        return self.workspace.shown(message, self.base, with_metadata=with_metadata)

    def _tell(self, message: SlackMessage) -> None:
        kind = self.workspace.kind(message.channel)
        shown = self._shown(message, with_metadata=False)
        self.on_event({**shown, "channel": message.channel, "channel_type": kind})


def _done(**data: Any) -> Answer:
    return {"ok": True, **data}


def _error(code: str) -> Answer:
    return {"ok": False, "error": code}


def _mistake_in(blocks: Sequence[Mapping[str, Any]]) -> Answer | None:
    """Refuse what Slack refuses: too many blocks, long sections, two actions of one name."""
    sections = [one for one in blocks if one.get("type") == "section"]
    is_long = any(not 0 < len(one["text"]["text"]) <= 3_000 for one in sections)
    elements = [one for block in blocks for one in block.get("elements", ())]
    names = [one["action_id"] for one in elements if "action_id" in one]
    if len(blocks) > 50 or is_long or len(names) != len(set(names)):
        return _error("invalid_blocks")
    return None


def _text_of(blocks: Sequence[Mapping[str, Any]]) -> str:
    texts = [one["text"]["text"] for one in blocks if one.get("type") == "section"]
    return "\n".join(texts)


def _json(arguments: Arguments, name: str, otherwise: Any) -> Any:
    text = arguments.get(name)
    return otherwise if text is None else json.loads(text)


def _ignore(event: Mapping[str, Any]) -> None:
    """Tell nobody."""


def _ignore_view(trigger: str, view: Mapping[str, Any]) -> None:
    """Tell nobody."""


def method_arguments(form: Mapping[str, Any]) -> Arguments:
    """Return the arguments of a call, as strings."""
    return convert({name: str(value) for name, value in form.items()}, dict[str, str])
