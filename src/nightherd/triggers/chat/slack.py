"""SlackConnection: one bot on Slack, by Socket Mode or by signed requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from nightherd.errors import ChatRefusedError, ConfigError, unwrapped
from nightherd.model.chat.incoming import IncomingFile, IncomingMessage
from nightherd.model.chat.platform import ChatPlace, Platform
from nightherd.model.chat.settings import API_URL_VARIABLES, BotSettings, SlackMode
from nightherd.model.jobs.retry import Backoff
from nightherd.ports.chat import (
    ChatPost,
    ChatReceiver,
    ChatUpload,
    ConnectionState,
    PostResult,
    RequestAnswer,
)
from nightherd.triggers.chat.slack_client import SlackClient
from nightherd.triggers.chat.slack_errors import SlackAnswer, refusal
from nightherd.triggers.chat.slack_events import Me
from nightherd.triggers.chat.slack_files import SlackFiles
from nightherd.triggers.chat.slack_history import SlackHistory
from nightherd.triggers.chat.slack_intake import SlackIntake
from nightherd.triggers.chat.slack_names import SlackNames
from nightherd.triggers.chat.slack_posts import SlackPosts
from nightherd.triggers.chat.slack_requests import SignedRequests
from nightherd.triggers.chat.slack_socket import Ending, NotConnectedError, SlackSocket

STEADY_S = 30.0
"""A connection that held for so long is no sign of trouble when it ends."""
SWITCHED_OFF_S = 60.0
"""How long Slack is left alone when Socket Mode is switched off."""


def open_slack(settings: BotSettings, environment: Mapping[str, str]) -> SlackConnection:
    """Return the connection of a bot, not running yet. `ConfigError` when a token is missing or cannot be one."""
    return SlackConnection(settings, environment)


class SlackConnection:
    """A `ports.chat.ChatConnection`. By HTTP it connects to nothing: requests are handed to `take_request`."""

    def __init__(self, settings: BotSettings, environment: Mapping[str, str]) -> None:
        slack = settings.slack
        if slack is None:
            raise ConfigError(f"{settings.bot} has no settings for Slack")
        self._settings = settings
        self._variable = settings.token_env
        is_socket = slack.mode is SlackMode.SOCKET
        self._secret_variable = slack.app_token_env if is_socket else slack.signing_secret_env
        self._is_socket = is_socket
        self._secret = _secret(environment, self._secret_variable)
        self._client = SlackClient(
            _secret(environment, self._variable),
            environment.get(API_URL_VARIABLES[Platform.SLACK], "").strip() or None,
        )
        self._client.on_refused = self._refuse
        self._names = SlackNames(self._client)
        self._posts = SlackPosts(self._client)
        self._files = SlackFiles(self._client, self._posts)
        self._history = SlackHistory(self._client, self._names, settings.bot)
        self._requests = SignedRequests()
        self._refusal: SlackAnswer | None = None
        self._refused = anyio.Event()

    def __repr__(self) -> str:
        return f"SlackConnection({self._settings.bot!r})"

    async def run(self, receiver: ChatReceiver) -> None:
        """Connect, and stay connected until cancelled. `ChatRefusedError` when Slack accepts a token no more."""
        self._refusal, self._refused = None, anyio.Event()
        failure: BaseException | None = None
        try:
            async with self._client.session(), anyio.create_task_group() as tasks:
                tasks.start_soon(self._raise_when_refused)
                await self._run(receiver, tasks)
        except* ChatRefusedError as group:
            failure = unwrapped(group)
        if failure is not None:
            raise failure

    async def _run(self, receiver: ChatReceiver, tasks: TaskGroup) -> None:
        me = await self._authenticate(receiver)
        self._history.me, self._posts.bot_id = me, me.bot_id
        intake = SlackIntake(
            self._client,
            self._names,
            self._posts,
            self._settings.bot,
            me,
            receiver,
            tasks,
            None if self._is_socket else self._secret,
        )
        state = ConnectionState(is_connected=True, bot_name=me.name, is_fresh=True)
        if self._is_socket:
            await _Sockets(self, intake, receiver, state, tasks).keep_open()
        else:
            await receiver.state(state)
            with self._requests.open_to(intake):
                await anyio.sleep_forever()

    async def _authenticate(self, receiver: ChatReceiver) -> Me:
        """Find out who the bot is, with growing pauses while Slack cannot say."""
        backoff = Backoff()
        while True:
            answer = await self._client.call("auth.test")
            if answer.is_ok:
                break
            if answer.is_refusing or answer.is_permanent:
                raise refusal(answer, self._variable)
            await receiver.state(ConnectionState(is_connected=False, error=answer.reason))
            await anyio.sleep(_pause_s(backoff, answer.reason, answer.retry_after))
        said = {name: str(answer.data.get(name) or "") for name in ("user_id", "bot_id", "team_id")}
        user = said["user_id"]
        names = await self._names.people([user])
        return Me(name=names.get(user) or str(answer.data.get("user") or user), **said)

    def _refuse(self, answer: SlackAnswer) -> None:
        self._refusal = answer
        self._refused.set()

    async def _raise_when_refused(self) -> None:
        await self._refused.wait()
        assert self._refusal is not None  # noqa: S101 (set before the event)
        raise refusal(self._refusal, self._variable)

    def new_socket(self, intake: SlackIntake, tasks: TaskGroup) -> SlackSocket:
        """Return a connection that is not open yet."""
        return SlackSocket(
            self._client, self._secret, self._secret_variable, intake.take_envelope, tasks
        )

    async def take_request(self, headers: Mapping[str, str], body: bytes) -> RequestAnswer:
        """Take a request of Slack's; the answer is for Slack. Only a request that is signed has an effect."""
        if self._is_socket:
            return RequestAnswer(status=404)
        return await self._requests.take(headers, body)

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people in a place, oldest first."""
        return await self._history.read(place, after, limit)

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message."""
        return await self._posts.post(post)

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace text and buttons of a message of ours."""
        return await self._posts.edit(message_id, post)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message of ours."""
        return await self._posts.delete(place, message_id)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message of ours with that nonce among the latest ones."""
        return await self._posts.find(place, nonce)

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file."""
        return await self._files.upload(upload)

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Fetch a file that was sent along."""
        await self._files.download(file, target, limit)

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction."""
        return await self._posts.react(place, message_id, emoji, is_on=is_on)

    async def typing(self, place: ChatPlace) -> None:
        """Show in a thread that an answer is written; elsewhere Slack cannot."""
        await self._posts.typing(place)

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return what people are called."""
        return await self._names.people(user_ids)


class _Sockets:
    """One connection of Socket Mode after the other. Slack replaces them every few hours."""

    def __init__(
        self,
        connection: SlackConnection,
        intake: SlackIntake,
        receiver: ChatReceiver,
        state: ConnectionState,
        tasks: TaskGroup,
    ) -> None:
        self._connection = connection
        self._intake = intake
        self._receiver = receiver
        self._state = state
        self._tasks = tasks
        self._backoff = Backoff()
        self._old: SlackSocket | None = None

    async def keep_open(self) -> None:
        """Stay connected until cancelled."""
        while True:
            socket = self._connection.new_socket(self._intake, self._tasks)
            opened_at = anyio.current_time()
            try:
                await self._tasks.start(socket.run, self._announce)
            except NotConnectedError as error:
                pause_s = _pause_s(self._backoff, error.message, error.retry_after)
                if self._old is None or not self._old.is_open:
                    await self._disconnected(error.message)
                await anyio.sleep(pause_s)
                continue
            self._retire_old()
            await socket.ended.wait()
            ending = socket.ending
            if ending is Ending.REFRESH and socket.is_open:
                self._old = socket
            else:
                await self._disconnected(ending.value)
                socket.retire()
            if anyio.current_time() - opened_at >= STEADY_S:
                self._backoff.reset()
                if ending is Ending.REFRESH:
                    continue
            pause_s, _ = self._backoff.fail(ending.value)
            await anyio.sleep(SWITCHED_OFF_S if ending is Ending.SWITCHED_OFF else pause_s)

    async def _announce(self) -> None:
        """Say that it is connected. Nothing was missed if the connection before is open still."""
        is_fresh = self._old is None or not self._old.is_open
        await self._receiver.state(
            ConnectionState(is_connected=True, bot_name=self._state.bot_name, is_fresh=is_fresh)
        )

    async def _disconnected(self, error: str) -> None:
        self._retire_old()
        await self._receiver.state(ConnectionState(is_connected=False, error=error))

    def _retire_old(self) -> None:
        if self._old is not None:
            self._old.retire()
            self._old = None


def _secret(environment: Mapping[str, str], variable: str) -> str:
    """Return what a variable holds. `ConfigError` when it cannot be a token: it would get into a header."""
    value = environment.get(variable, "").strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        problem = "is not set" if not value else "does not hold a token"
        raise ConfigError(f"{variable} {problem}", hint=f"set {variable} (docs/guide/slack.md)")
    return value


def _pause_s(backoff: Backoff, reason: str, retry_after: object) -> float:
    pause_s, _ = backoff.fail(reason)
    asked = getattr(retry_after, "total_seconds", None)
    return pause_s if asked is None else max(pause_s, float(asked()))
