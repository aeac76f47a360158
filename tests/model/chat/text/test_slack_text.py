"""Markdown becomes mrkdwn that looks like it and pings nobody; mrkdwn becomes markdown that agents understand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.chat.text.slack import to_mrkdwn
from nightherd.model.chat.text.slack_emoji import slack_emoji
from nightherd.model.chat.text.slack_incoming import channels_in, from_mrkdwn, people_in, unescape

ZWSP = "\u200b"

OUTGOING = {
    "bold": ("**b** and __b__", "*b* and *b*"),
    "italic": ("*i* and _i_", "_i_ and _i_"),
    "bold and italic": ("***both***", "*_both_*"),
    "italic in bold": ("**a *b* c**", "*a _b_ c*"),
    "bold in italic": ("*a **b** c*", "_a *b* c_"),
    "strike": ("~~gone~~", "~gone~"),
    "names with underscores": ("snake_case_name __init__.py", "snake_case_name *init*.py"),
    "sums": ("2 * 3 * 4 and 5*6", "2 * 3 * 4 and 5*6"),
    "unmatched marks": ("*args, **kwargs", "*args, **kwargs"),
    "bold over lines": ("**one\ntwo**", "*one*\n*two*"),
    "bold within a word": ("un**believ**able", f"un{ZWSP}*believ*{ZWSP}able"),
    "escaped marks": (r"\*not bold\*", f"*{ZWSP}not bold*{ZWSP}"),
    "escaping": ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
    "entities": ("&lt;b&gt; &amp; &copy;", "&lt;b&gt; &amp; \u00a9"),
    "code": ("run `a < b **c**`", "run `a &lt; b **c**`"),
    "code with a backtick": ("``a`b``", "`a\u02cbb`"),
    "link": ("[text](https://x.y/a?b=1&c=2)", "<https://x.y/a?b=1&amp;c=2|text>"),
    "link with a title": ('[text](https://x.y "t")', "<https://x.y|text>"),
    "link with marks": ("[**b** `c`](https://x.y)", "<https://x.y|b c>"),
    "link with parentheses": ("[w](https://x.y/a_(b))", "<https://x.y/a_(b)|w>"),
    "link with a pipe": ("[a|b](https://x.y/a|b)", "<https://x.y/a%7Cb|a\u00a6b>"),
    "link to itself": ("[https://x.y](https://x.y)", "<https://x.y>"),
    "relative link": ("[file](src/x.py)", "file (src/x.py)"),
    "script link": ("[x](javascript:alert)", "x (javascript:alert)"),
    "image": ("![alt](https://x.y/i.png)", "<https://x.y/i.png|alt>"),
    "autolink": ("<https://x.y/a|b>", "<https://x.y/a%7Cb>"),
    "mail": ("<a@b.example>", "<mailto:a@b.example|a@b.example>"),
    "bare address": ("see https://x.y/a_b_c?d=e&f.", "see https://x.y/a_b_c?d=e&amp;f."),
    "bold address": ("**https://x.y**", "*https://x.y*"),
    "heading": ("# One **two** #\ntext", "*One two*\ntext"),
    "underlined heading": ("Title\n=====\ntext", "*Title*\ntext"),
    "rule": ("a\n\n---\n\nb", "a\n\n" + "\u2500" * 12 + "\n\nb"),
    "bullets": ("- a\n* b\n+ c", "\u2022 a\n\u2022 b\n\u2022 c"),
    "nested bullets": ("- a\n  - b\n    - c", "\u2022 a\n    \u25e6 b\n        \u25aa c"),
    "item of two lines": ("- a\n  b", "\u2022 a\n    b"),
    "numbers": ("1. a\n2. b", "1. a\n2. b"),
    "tasks": ("- [ ] a\n- [x] b", "\u2610 a\n\u2611 b"),
    "quote": ("> a **b**\n>> c", "> a *b*\n> c"),
    "quoted item": ("> - a", "> \u2022 a"),
    "block": ("```python\na < b  # **no**\n```", "```\na &lt; b  # **no**\n```"),
    "tilde block": ("~~~\na\n```\n~~~", "```\na\n``\u02cb\n```"),
    "block in progress": ("```\na", "```\na\n```"),
    "block keeps empty lines": ("```\na\n\n  b\n```", "```\na\n\n  b\n```"),
    "windows lines": ("a\r\nb", "a\nb"),
    "line break": ("a<br>b", "a\nb"),
    "table": (
        "| n | what |\n|---|:--:|\n| **1** | `a` |\n| long | b |",
        "```\nn     what\n----  ----\n1     a\nlong  b\n```",
    ),
    "no table": ("a | b\nc", "a | b\nc"),
}


@pytest.mark.parametrize("case", OUTGOING, ids=str)
def test_markdown_becomes_mrkdwn(case: str) -> None:
    markdown, mrkdwn = OUTGOING[case]

    assert to_mrkdwn(markdown) == mrkdwn


@pytest.mark.parametrize(
    "text",
    [
        "<!channel>", "<!here|here>", "<@U012ABC>", "<#C012ABC>", "<!subteam^S1>", "<!date^1^{date}|x>",
        "[x](<!channel>)", "[<!channel>](https://x.y)", "`<!channel>`", "```\n<!channel>\n```", "# <!channel>",
        "| <@U1> | b |\n|--|--|\n| <!here> | c |", "&lt;!channel&gt;", "&#60;!channel>", r"\<!channel>", "> <!channel>",
        "[x](https://a|b><!channel>)", "<https://a.b><@U1>", "<mailto:a@b.c|<!here>>", "**<!everyone>**",
    ],
)  # fmt: skip
def test_no_mention_survives(text: str) -> None:
    assert re.search(r"<[!@#]", to_mrkdwn(text)) is None


@pytest.mark.parametrize("word", ["here", "channel", "everyone", "group"])
def test_words_that_clients_may_turn_into_mentions_are_broken(word: str) -> None:
    assert f"@{word}" not in to_mrkdwn(f"hello @{word}, **@{word}**")


@given(st.text(alphabet="*_~`<>@!#|[]()\\& \nab:/.-", max_size=60))
def test_any_text_converts_to_one_without_mentions(text: str) -> None:
    converted = to_mrkdwn(text)

    assert re.search(r"<[!@#]", converted) is None
    assert not re.search(r"<(?!https?:|mailto:)", converted)


@given(st.text(max_size=200))
def test_nothing_of_a_code_block_is_lost(text: str) -> None:
    lines = [line.replace("`", "'").expandtabs(4) for line in text.replace("\r", "").split("\n")]
    code = "\n".join(lines)

    assert unescape(to_mrkdwn(f"```\n{code}\n```")) == f"```\n{code}\n```"


@pytest.mark.parametrize("part", ["*a ", "**", "[", "`", "_a", "~~a", "<", "![](", "| a ", "[a]( "])
def test_hostile_text_ends(part: str) -> None:
    assert to_mrkdwn(part * 3_000)


INCOMING = {
    "person": ("<@U1> said <@U2|bo>", "@Ann said @bo"),
    "unknown person": ("<@U9>", "@U9"),
    "the bot": ("<@UBOT> do it", "do it"),
    "the bot in the middle": ("please <@UBOT> do it", "please do it"),
    "channels": ("<#C1|general> and <#C2>", "#general and #dev"),
    "everybody": ("<!here> <!subteam^S1|@team>", "@here @team"),
    "date": ("<!date^139^{date}|2014>", "2014"),
    "links": ("<https://x.y|here> <https://x.y>", "[here](https://x.y) https://x.y"),
    "link of its own address": ("<http://x.y|x.y>", "[x.y](http://x.y)"),
    "mail": ("<mailto:a@b.c|a@b.c>", "a@b.c"),
    "marks": ("*b* _i_ ~s~ 2 * 3", "**b** _i_ ~~s~~ 2 * 3"),
    "escaped": ("a &lt;b&gt; &amp;amp;", "a <b> &amp;"),
    "code": ("`*a* &lt;` *b*", "`*a* <` **b**"),
    "block": ("```a &lt;\n*b*```", "```\na <\n*b*\n```"),
    "address in code": ("`curl <https://x.y>`", "`curl https://x.y`"),
    "bullets": ("\u2022 a\n\u2022 b", "- a\n- b"),
}


@pytest.mark.parametrize("case", INCOMING, ids=str)
def test_mrkdwn_becomes_markdown(case: str) -> None:
    mrkdwn, markdown = INCOMING[case]

    converted = from_mrkdwn(mrkdwn, names={"U1": "Ann"}, channels={"C2": "dev"}, bot_user="UBOT")

    assert converted == markdown


def test_ids_that_need_a_name_are_found() -> None:
    text = "<@U1> <@W2|x> <#C1|general> <#C2> <#C3|>"

    assert people_in(text) == {"U1", "W2"}
    assert channels_in(text) == {"C2", "C3"}


@given(st.text(max_size=100))
def test_any_message_is_understood(text: str) -> None:
    from_mrkdwn(text, names={}, channels={}, bot_user="UBOT")


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("\U0001f440", "eyes"),
        ("\u2705", "white_check_mark"),
        ("\u26a0\ufe0f", "warning"),
        ("\U0001f44d\U0001f3fd", "+1"),
        ("\U0001f995", "sauropod"),
        (":party-parrot:", "party-parrot"),
        ("hourglass", "hourglass"),
        ("two words", None),
        ("\u00e4", None),
        ("", None),
    ],
)
def test_emoji_have_the_names_of_slack(emoji: str, name: str | None) -> None:
    assert slack_emoji(emoji) == name
