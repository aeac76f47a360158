"""Slack on the loopback interface: its Web API, Socket Mode and signed requests, for tests of bots.

    with SlackApi() as slack:
        ...  # start a fleet with slack.environment: NIGHTHERD_SLACK_API_URL and the tokens
        slack.say("good morning", names_bot=True)
        slack.wait_for(lambda: slack.posted())

It listens on 127.0.0.1 only and calls no other host but the address given to `deliver_to`. There is one workspace with one
app and one channel, `C0GENERAL`; further ones appear when somebody writes there. It runs in a thread of its
own: every method may be called from anywhere, and none waits for the bot but `wait_for`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nightherd.host.system import SystemClock
from nightherd.ports import Clock
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.slack_server import SlackServer
from nightherd.testing.slack_socket import Delivery
from nightherd.testing.slack_workspace import APP, BOT_USER, CHANNEL, TEAM, SlackMessage

GROUPS = {"C": "channels", "G": "groups", "D": "im", "M": "mpim"}
"""How events of messages are called, by the first letter of the channel."""


class SlackApi(SlackServer):
    """A Slack that runs while its context lasts. `scopes` and `events` are what the app has; by default everything."""

    def __init__(
        self,
        *,
        scopes: Collection[str] | None = None,
        events: Collection[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(scopes, clock or SystemClock())
        self.methods.on_event = self._tell_event
        self.methods.on_view = self._fill_in
        self._events = None if events is None else frozenset(events)
        self._comments: dict[str, tuple[str, str | None]] = {}

    @property
    def user_id(self) -> str:
        """The person who speaks if no other is named."""
        return self.workspace.user_id

    @property
    def user_name(self) -> str:
        """What the person is called."""
        return self.workspace.user_name

    def say(
        self,
        text: str,
        *,
        names_bot: bool = False,
        file: bytes | None = None,
        user: str | None = None,
        channel: str = CHANNEL,
        thread: str | None = None,
        subtype: str | None = None,
        bot_id: str | None = None,
    ) -> str:
        """A person writes, or with `bot_id` another bot; returns the message's `ts`."""
        space = self.workspace
        with space.lock:
            files = () if file is None else (space.new_file("notes.txt", file).id,)
            message = SlackMessage(
                channel=channel,
                ts=space.next_ts(),
                text=f"<@{BOT_USER}> {text}" if names_bot else text,
                user=user or space.user_id,
                thread_ts=thread,
                subtype="file_share" if files else subtype,
                bot_id=bot_id,
                files=files,
            )
            space.names.setdefault(message.user, message.user)
            space.add(message)
            shown = space.shown(message, self.methods.base, with_metadata=False)
            kind = space.kind(channel)
            self._tell_event({**shown, "channel": channel, "channel_type": kind})
            if names_bot and kind != "im":
                # Slack tells of it twice: as a message, and as a mention.
                self._tell_event({**shown, "type": "app_mention", "channel": channel})
        return message.ts

    def deliver_again(self, ts: str) -> None:
        """Tell the app of a message once more, as Slack does when it missed the acknowledgement."""
        with self.workspace.lock:
            message = self.workspace.message(ts)
            shown = self.workspace.shown(message, self.methods.base, with_metadata=False)
            kind = self.workspace.kind(message.channel)
            self._tell_event({**shown, "channel": message.channel, "channel_type": kind})

    def edit(self, ts: str, text: str) -> None:
        """A person changes what they wrote."""
        with self.workspace.lock:
            message = self.workspace.message(ts)
            message.text = text
            shown = self.workspace.shown(message, self.methods.base, with_metadata=False)
            changed = {"type": "message", "subtype": "message_changed", "hidden": True}
            place = {"channel": message.channel, "ts": self.workspace.next_ts()}
            self._tell_event({**changed, **place, "message": shown})

    def remove(self, ts: str) -> None:
        """Somebody deletes a message, of a person or of the bot."""
        with self.workspace.lock:
            message = self.workspace.message(ts)
            self.workspace.messages.remove(message)
            deleted = {"type": "message", "subtype": "message_deleted", "hidden": True}
            place = {"channel": message.channel, "ts": self.workspace.next_ts()}
            self._tell_event({**deleted, **place, "deleted_ts": ts})

    def press(
        self, message_id: str, label: str, comment: str | None = None, *, user: str | None = None
    ) -> None:
        """A person presses a button, and fills in the window that it opens."""
        space = self.workspace
        with space.lock:
            message = space.message(message_id)
            button = next(one for one in message.buttons if one["text"]["text"] == label)
            trigger = self._new_trigger()
            if comment is not None:
                self._comments[trigger] = (comment, user)
            shown = space.shown(message, self.methods.base, with_metadata=True)
        self._deliver(
            "interactive",
            {
                "type": "block_actions",
                "team": {"id": TEAM},
                "api_app_id": APP,
                "user": self._person(user),
                "trigger_id": trigger,
                "response_url": f"{self.methods.base}/respond/{trigger}",
                "channel": {"id": message.channel},
                "container": {
                    "type": "message",
                    "message_ts": message.ts,
                    "channel_id": message.channel,
                },
                "message": shown,
                "actions": [{**button, "block_id": "actions", "action_ts": message.ts}],
            },
        )

    def command(
        self,
        text: str = "",
        *,
        word: str = "/nightherd",
        user: str | None = None,
        channel: str = CHANNEL,
    ) -> Delivery:
        """A person uses the slash command; the answer comes with its acknowledgement, or in `replies`."""
        trigger, person = self._new_trigger(), self._person(user)
        payload = {
            "token": "unused",
            "team_id": TEAM,
            "api_app_id": APP,
            "channel_id": channel,
            "user_id": person["id"],
            "user_name": person["name"],
            "command": word,
            "text": text,
            "trigger_id": trigger,
            "response_url": f"{self.methods.base}/respond/{trigger}",
        }
        return self._deliver("slash_commands", payload)

    def tell(self, event: Mapping[str, Any]) -> None:
        """Tell the app of any event, such as `{"type": "app_uninstalled"}`."""
        self._deliver_event(event)

    def posted(self, channel: str = CHANNEL, thread: str | None = None) -> Sequence[Posted]:
        """Return what the bot has posted, oldest first."""
        with self.workspace.lock:
            return self.workspace.posted(channel, thread)

    def reactions(self, message_id: str) -> Sequence[str]:
        """Return the bot's reactions to a message, by name."""
        with self.workspace.lock:
            return sorted(self.workspace.message(message_id).reactions)

    def _fill_in(self, trigger: str, view: Mapping[str, Any]) -> None:
        """The person fills in the window, if a comment was given with the press."""
        known = self._comments.pop(trigger, None)
        if known is None:
            return
        comment, user = known
        element = view["blocks"][0]
        value = {"type": "plain_text_input", "value": comment}
        values = {element["block_id"]: {element["element"]["action_id"]: value}}
        payload = {
            "type": "view_submission",
            "team": {"id": TEAM},
            "user": self._person(user),
            "view": {**view, "state": {"values": values}},
        }
        self._deliver("interactive", payload)

    def _person(self, user: str | None) -> dict[str, str]:
        id = user or self.workspace.user_id
        name = self.workspace.names.setdefault(id, id)
        return {"id": id, "username": name.lower(), "name": name.lower(), "team_id": TEAM}

    def _new_trigger(self) -> str:
        with self.workspace.lock:
            trigger = self.workspace.next_id("trigger-")
            self.methods.triggers.add(trigger)
            return trigger

    def _tell_event(self, event: Mapping[str, Any]) -> None:
        kind = str(event["type"])
        name = f"message.{GROUPS[event['channel'][:1]]}" if kind == "message" else kind
        if self._events is None or name in self._events:
            self._deliver_event(event)

    def _deliver_event(self, event: Mapping[str, Any]) -> None:
        payload = {
            "token": "unused",
            "team_id": TEAM,
            "api_app_id": APP,
            "type": "event_callback",
            "event": dict(event),
        }
        self._deliver("events_api", payload)

    def _deliver(self, kind: str, payload: Mapping[str, Any]) -> Delivery:
        with self.workspace.lock:
            delivery = Delivery(id=self.workspace.next_id("E"), kind=kind, payload=payload)
            self.out.add(delivery)
            self.loop.call_soon_threadsafe(self.out.deliver, delivery)
        return delivery
