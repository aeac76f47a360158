"""What a bot sends on Discord: once, to nobody's alarm, and with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from nightherd.errors import NightherdError
from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import Button, ChatUpload
from nightherd.testing.discord_api import DiscordApi
from triggers.chat.discord_bot import LONG, make_bot, running

SHORT = timedelta(seconds=0.2)


@pytest.fixture
def discord(tmp_path: Path) -> Iterator[DiscordApi]:
    with DiscordApi(tmp_path) as api:
        yield api


def message_of(discord: DiscordApi, id: str | None) -> dict[str, object]:
    assert id is not None
    return discord.world.message(discord.channel_id, id)


async def test_a_post_pings_nobody(discord: DiscordApi) -> None:
    text = f"<@{discord.user_id}> <@&{discord.bot.role_id}> @everyone"
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post(text))
        edited = await bot.connection.edit(sent.message_id or "", bot.post(f"{text} again"))

    assert edited.error is None
    message = message_of(discord, sent.message_id)
    assert message["content"] == f"{text} again"
    assert (message["mentions"], message["mention_roles"]) == ([], [])
    assert not message["mention_everyone"]


async def test_a_post_answers_a_message_also_one_that_is_gone(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        said = discord.say("hello")
        sent = await bot.connection.post(bot.post("hi", reply_to=said))
        late = await bot.connection.post(bot.post("hi", "nonce-2", reply_to="123"))
        button = Button(id="yes", label="Yes")
        asked = bot.post("sure?", "nonce-3", reply_to=said, buttons=(button,))
        with_button = await bot.connection.post(asked)

    for result in (sent, late, with_button):
        reference = message_of(discord, result.message_id)["message_reference"]
        assert isinstance(reference, dict)
        assert reference["fail_if_not_exists"] is False
    assert [post.buttons for post in discord.posted()] == [(), (), ("Yes",)]


async def test_a_post_of_an_earlier_process_is_found_by_its_nonce(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.lose_answer()
        await bot.connection.post(bot.post("hello"))
        for n in range(30):
            discord.say(f"number {n}")
    async with running(discord) as bot:
        found = await bot.connection.find_post(bot.place, "nonce-1")

    assert [post.id for post in discord.posted()] == [found]


async def test_a_post_that_discord_showed_us_is_found_without_asking(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.lose_answer()
        await bot.connection.post(bot.post("hello"))
        discord.say("and then")
        await bot.message()
        found = await bot.connection.find_post(bot.place, "nonce-1")

    assert [post.id for post in discord.posted()] == [found]
    assert not any("GET /channels" in line for line in discord.rest.lines)


async def test_a_nonce_is_looked_for_in_its_own_channel(discord: DiscordApi) -> None:
    other = ChatPlace(channel_id=discord.add_channel("other"))
    async with running(discord) as bot:
        await bot.connection.post(bot.post("hello"))
        assert await bot.connection.find_post(other, "nonce-1") is None


async def test_a_channel_that_cannot_be_read_is_no_channel_without_the_post(
    discord: DiscordApi,
) -> None:
    async with running(discord) as bot:
        discord.rest.fail("GET /channels", 503)
        with pytest.raises(NightherdError, match="the channel cannot be read: Discord: 503"):
            await bot.connection.find_post(bot.place, "nonce-1")


async def test_a_short_rate_limit_is_waited_for(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.limit_rate(SHORT)
        result = await bot.connection.post(bot.post("hello"))

    assert (result.error, len(discord.posted())) == (None, 1)


async def test_a_long_rate_limit_of_an_edit_says_how_long_to_wait(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("hello"))
        discord.rest.limit_rate("PATCH", LONG)
        result = await bot.connection.edit(sent.message_id or "", bot.post("more"))

    assert result.retry_after == LONG
    assert [post.text for post in discord.posted()] == ["hello"]


async def test_a_ban_by_the_network_in_front_says_how_long_to_wait(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        discord.rest.fail("POST", 429, message="error code: 1015", headers={"Retry-After": "900"})
        result = await bot.connection.post(bot.post("hello"))
        discord.rest.fail("POST", 429, message="error code: 1015")
        unsaid = await bot.connection.post(bot.post("hello"))

    assert result.retry_after == timedelta(minutes=15)
    assert unsaid.retry_after == timedelta(seconds=30)
    assert not result.is_permanent


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, 50013, "the bot lacks a permission"),
        (403, 50001, "let the bot see the channel"),
        (403, 50007, "does not take direct messages"),
        (413, 40005, "the file is too large"),
    ],
)
async def test_a_refusal_says_what_to_do(
    discord: DiscordApi, status: int, code: int, advice: str
) -> None:
    async with running(discord) as bot:
        discord.rest.fail("POST /channels", status, code=code, message="No")
        result = await bot.connection.post(bot.post("hello"))

    assert result.is_permanent
    assert advice in str(result.error)


@pytest.mark.parametrize("channel", ["123", "C1"])
async def test_a_place_that_is_not_there_is_refused(discord: DiscordApi, channel: str) -> None:
    async with running(discord) as bot:
        place = ChatPlace(channel_id=channel)
        results = [
            await bot.connection.post(bot.post("hello", place=place)),
            await bot.connection.edit("1", bot.post("hello", place=place)),
            await bot.connection.delete(place, "1"),
            await bot.connection.react(place, "1", "\N{EYES}", is_on=True),
        ]

    assert all(result.is_permanent for result in results)


async def test_a_reaction_to_a_message_that_is_gone_is_refused(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        said = discord.say("hello")
        discord.remove(said)
        on = await bot.connection.react(bot.place, said, "\N{EYES}", is_on=True)
        off = await bot.connection.react(bot.place, said, "\N{EYES}", is_on=False)

    assert on.is_permanent
    assert off.is_permanent


async def test_a_post_that_somebody_deleted_cannot_be_edited(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        sent = await bot.connection.post(bot.post("hello"))
        discord.remove(sent.message_id or "")
        result = await bot.connection.edit(sent.message_id or "", bot.post("more"))

    assert result.is_permanent
    assert "the message was deleted" in str(result.error)


async def test_an_upload_is_sent_once(discord: DiscordApi, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("all is well")
    upload = ChatUpload(
        place=ChatPlace(channel_id=discord.channel_id),
        path=str(path),
        name="report.txt",
        nonce="nonce-1",
    )
    async with running(discord) as bot:
        discord.lose_answer()
        lost = await bot.connection.upload(upload)
        again = await bot.connection.upload(upload)

    assert lost.is_uncertain
    assert [post.id for post in discord.posted()] == [again.message_id]
    (content,) = discord.world.files.values()
    assert content == b"all is well"


async def test_typing_is_shown_where_it_was_asked_for(discord: DiscordApi) -> None:
    async with running(discord) as bot:
        await bot.connection.typing(bot.place)
        await bot.connection.typing(ChatPlace(channel_id="123"))

    assert discord.world.typed == [discord.channel_id]


async def test_without_a_connection_nothing_is_sent_and_nothing_lost(discord: DiscordApi) -> None:
    bot = make_bot(discord)
    result = await bot.connection.post(bot.post("hello"))
    with pytest.raises(NightherdError, match="not connected"):
        await bot.connection.history(bot.place, None, 10)
    with pytest.raises(NightherdError, match="not connected"):
        await bot.connection.find_post(bot.place, "nonce-1")

    assert result.error
    assert not result.is_permanent
    assert not result.is_uncertain
    assert discord.rest.lines == []
