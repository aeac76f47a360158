"""Which messages of people a bot takes."""

from datetime import timedelta
from typing import Any

import pytest

from model.chat.values import NOON, bot, file, message
from nightherd.model.chat.accept import (
    Decision,
    Surroundings,
    accept,
    context_count,
    names_a_bot,
    why_not_admitted,
)
from nightherd.model.chat.files import NO_VOICE
from nightherd.model.chat.incoming import ChatCommand
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import (
    AttachmentSettings,
    ChannelMode,
    ChannelSettings,
    DirectSettings,
    UserRules,
)

IN_THREAD = ChatPlace(channel_id="C1", thread_id="100.1")
AUTO = bot(channels=(ChannelSettings(id="C1", mode=ChannelMode.AUTO),))
ALL = bot(channels=(ChannelSettings(id="C1", mode=ChannelMode.ALL),))
KIRK = Surroundings(other_bots=frozenset({"Kirk", "Kirk Two"}))
FILES = bot(
    channels=(ChannelSettings(id="C1", mode=ChannelMode.ALL),),
    attachments=AttachmentSettings(directory=".slack-attachments"),
)


def test_a_mention_is_taken_in_every_mode() -> None:
    for settings in (bot(), AUTO, ALL):
        assert accept(message(is_mention=True), settings, KIRK).decision is Decision.TAKE


def test_a_message_that_names_nobody_is_left_alone_in_mention_mode() -> None:
    answer = accept(message(), bot())
    assert (answer.decision, answer.reason) == (Decision.IGNORE, "it does not name the bot")
    assert answer.reply is None


def test_a_thread_that_the_bot_takes_part_in_needs_no_mention() -> None:
    known = Surroundings(takes_part=True)
    assert accept(message(place=IN_THREAD), bot(), known).decision is Decision.TAKE
    assert accept(message(place=IN_THREAD), bot()).decision is Decision.IGNORE
    assert accept(message(), bot(), known).decision is Decision.IGNORE


def test_a_thread_of_discord_is_a_channel_with_a_parent_whose_rules_hold() -> None:
    place = ChatPlace(channel_id="T7")
    known = Surroundings(takes_part=True)
    assert accept(message(place=place, parent_channel_id="C1"), bot(), known).decision is (
        Decision.TAKE
    )
    assert accept(message(place=place), bot(), known).reason == "the channel is not listed"


def test_a_thread_listed_by_itself_has_its_own_rules() -> None:
    settings = bot(
        channels=(ChannelSettings(id="C1"), ChannelSettings(id="T7", mode=ChannelMode.ALL))
    )
    said = message(place=ChatPlace(channel_id="T7"), parent_channel_id="C1")
    assert accept(said, settings).decision is Decision.TAKE


def test_auto_takes_what_names_no_other_bot_of_the_fleet() -> None:
    assert accept(message("Status, please."), AUTO, KIRK).decision is Decision.TAKE
    other = accept(message("@kirk: status, please."), AUTO, KIRK)
    assert (other.decision, other.reason) == (Decision.IGNORE, "it names another bot")
    both = message("@Kirk and you: status.", is_mention=True)
    assert accept(both, AUTO, KIRK).decision is Decision.TAKE


def test_all_takes_what_names_another_bot_too() -> None:
    assert accept(message("@Kirk, status."), ALL, KIRK).decision is Decision.TAKE


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("@Kirk", True),
        ("hello @kirk two!", True),
        ("@Kirkland", False),
        ("mail kirk@example.org", False),
        ("me@Kirk", False),
        ("Kirk", False),
    ],
)
def test_a_bot_is_named_by_an_at_sign_and_its_whole_name(text: str, is_named: bool) -> None:
    assert names_a_bot(text, KIRK.other_bots) is is_named
    assert not names_a_bot(text, ())


def test_a_channel_of_another_server_with_the_same_id_is_not_meant() -> None:
    settings = bot(channels=(ChannelSettings(id="C1", guild_id="G1", mode=ChannelMode.ALL),))
    assert accept(message(guild_id="G1"), settings).decision is Decision.TAKE
    assert accept(message(guild_id="G2"), settings).decision is Decision.IGNORE


def test_the_mode_of_a_server_holds_in_its_channels_that_are_not_listed() -> None:
    settings = bot(guild_modes={"G1": ChannelMode.AUTO})
    elsewhere = ChatPlace(channel_id="C9")
    assert accept(message(place=elsewhere, guild_id="G1"), settings).decision is Decision.TAKE
    assert accept(message(place=elsewhere, guild_id="G2"), settings).decision is Decision.IGNORE
    assert accept(message(guild_id="G1"), settings).reason == "it does not name the bot"


def test_direct_messages_need_no_mention() -> None:
    assert accept(message(is_direct=True), bot()).decision is Decision.TAKE
    mention_only = bot(direct=(DirectSettings(mode=ChannelMode.MENTION),))
    assert accept(message(is_direct=True), mention_only).decision is Decision.IGNORE


def test_direct_messages_can_be_switched_off_and_limited_to_some() -> None:
    off = accept(message(is_direct=True), bot(direct=(DirectSettings(enabled=False),)))
    assert (off.decision, off.reason) == (Decision.IGNORE, "direct messages are switched off")
    some = bot(direct=(DirectSettings(allowlist=frozenset({"U2"})),))
    assert accept(message(is_direct=True), some).reason == "the person is not admitted by chat.dm"
    assert accept(message(is_direct=True, user_id="U2"), some).decision is Decision.TAKE
    blocked = bot(direct=(DirectSettings(blocklist=frozenset({"U1"})),))
    assert accept(message(is_direct=True), blocked).decision is Decision.IGNORE


def test_direct_rules_of_one_server_that_admit_the_person_are_enough() -> None:
    settings = bot(
        direct=(
            DirectSettings(allowlist=frozenset({"U2"})),
            DirectSettings(allowlist=frozenset({"U1"}), mode=ChannelMode.MENTION),
            DirectSettings(enabled=False),
        )
    )
    assert accept(message(is_direct=True), settings).decision is Decision.IGNORE
    assert accept(message(is_direct=True, is_mention=True), settings).decision is Decision.TAKE


def test_users_of_the_bot_and_of_the_channel_both_count() -> None:
    everywhere = bot(users=UserRules(blocklist=frozenset({"U1"})))
    assert accept(message(is_mention=True), everywhere).decision is Decision.IGNORE
    assert accept(message(is_direct=True), everywhere).decision is Decision.IGNORE
    here = bot(channels=(ChannelSettings(id="C1", users=UserRules(allowlist=frozenset({"U2"}))),))
    assert accept(message(is_mention=True), here).decision is Decision.IGNORE
    assert accept(message(is_mention=True, user_id="U2"), here).decision is Decision.TAKE
    assert accept(message(is_direct=True), here).decision is Decision.TAKE


def test_a_slash_command_is_admitted_by_the_same_rules_without_the_mode() -> None:
    def status(**changes: Any) -> ChatCommand:
        fields: dict[str, Any] = {
            "bot": bot_id(Platform.SLACK, "coder"),
            "place": ChatPlace(channel_id="C1"),
            "user_id": "U1",
            "user_name": "Ada",
            "name": "status",
            "command_id": "1",
        }
        return ChatCommand(**(fields | changes))

    assert why_not_admitted(status(), bot()) is None
    assert why_not_admitted(status(place=ChatPlace(channel_id="C2")), bot()) is not None
    assert why_not_admitted(status(), bot(users=UserRules(blocklist=frozenset({"U1"})))) is not None


def test_an_empty_message_is_left_alone_but_a_bare_mention_is_taken() -> None:
    assert accept(message("  "), ALL).reason == "there is nothing in it"
    assert accept(message("", is_mention=True), bot()).decision is Decision.TAKE


def test_what_was_said_before_the_bot_came_is_not_answered() -> None:
    known = Surroundings(since=NOON)
    early = message(is_mention=True, sent_at=NOON - timedelta(seconds=1))
    assert accept(early, bot(), known).decision is Decision.IGNORE
    assert accept(message(is_mention=True), bot(), known).decision is Decision.TAKE


def test_the_first_message_above_the_hourly_limit_is_answered_and_the_next_are_not() -> None:
    settings = bot(
        users=UserRules(max_messages_per_hour=5),
        channels=(
            ChannelSettings(
                id="C1", mode=ChannelMode.ALL, users=UserRules(max_messages_per_hour=3)
            ),
        ),
    )
    assert accept(message(), settings, Surroundings(sent_in_hour=2)).decision is Decision.TAKE
    first = accept(message(), settings, Surroundings(sent_in_hour=3))
    assert first.decision is Decision.REFUSE
    assert first.reply is not None
    assert "3 messages in the last hour" in first.reply
    later = accept(message(), settings, Surroundings(sent_in_hour=4))
    assert (later.decision, later.reply) == (Decision.REFUSE, None)
    direct = message(is_direct=True)
    assert accept(direct, settings, Surroundings(sent_in_hour=4)).decision is Decision.TAKE
    assert accept(direct, settings, Surroundings(sent_in_hour=5)).decision is Decision.REFUSE


def test_commands_are_recognised_and_not_limited() -> None:
    settings = bot(users=UserRules(max_messages_per_hour=1), channels=ALL.channels)
    answer = accept(message("!stop"), settings, Surroundings(sent_in_hour=9))
    assert answer.decision is Decision.COMMAND
    assert answer.command is not None
    assert answer.command.name == "stop"
    assert accept(message("!stop"), bot()).decision is Decision.IGNORE


def test_files_are_fetched_where_the_bot_has_attachments() -> None:
    answer = accept(message("", files=(file(),)), FILES)
    assert (answer.decision, answer.files.fetched) == (Decision.TAKE, (file(),))
    assert answer.reply is None


def test_a_message_with_text_is_taken_though_its_files_are_not() -> None:
    answer = accept(message("See this.", files=(file(size=20_000_000),)), FILES)
    assert answer.decision is Decision.TAKE
    assert answer.files.fetched == ()
    assert answer.reply == "I did not open `plan.pdf`: it is larger than 10 MB."


def test_a_message_of_refused_files_alone_is_refused_with_the_reason() -> None:
    answer = accept(message("", files=(file(),)), ALL)
    assert answer.decision is Decision.REFUSE
    assert answer.reply == "I did not open `plan.pdf`: files are not fetched here."


def test_a_voice_note_is_refused_with_a_message_unless_it_can_be_transcribed() -> None:
    voice = file("note.ogg", media_type="audio/ogg", is_voice=True)
    refused = accept(message("", files=(voice,)), FILES)
    assert (refused.decision, refused.reply) == (Decision.REFUSE, f"{NO_VOICE}.")
    heard = accept(message("", files=(voice,)), ALL, Surroundings(can_transcribe=True))
    assert (heard.decision, heard.files.voices) == (Decision.TAKE, (voice,))


def test_context_is_of_channels_alone() -> None:
    settings = bot(channels=(ChannelSettings(id="C1", context_messages=4),))
    assert context_count(message(), settings) == 4
    assert context_count(message(is_direct=True), settings) == 0
