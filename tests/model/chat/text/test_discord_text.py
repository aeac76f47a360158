"""Discord's text: what an agent writes is shown well and pings nobody; what people write is readable."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.chat.text.discord import MentionNames, from_discord, to_discord

NAMES = MentionNames(
    bot=frozenset({"1", "9"}),
    users={"2": "Ada", "3": "Grace"},
    roles={"5": "ops"},
    channels={"7": "builds"},
)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("# One\n## Two\n### Three", "# One\n## Two\n### Three"),
        ("#### Four\n##### **Five** ##", "**Four**\n**Five**"),
        ("a\n\n---\n\nb", "a\n\n⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯\n\nb"),
        ("- [ ] open\n- [x] done", "- ☐ open\n- ☑ done"),
        ("> > nested\n>>> prompt", "> nested\n> prompt"),
        (
            "![a picture](https://example.invalid/a.png)",
            "[a picture](https://example.invalid/a.png)",
        ),
        ("__bold words__ and __init__", r"**bold words** and \_\_init\_\_"),
        ("a || b || c, `a || b`", r"a \|\| b \|\| c, `a || b`"),
        ("https://example.invalid/__a__?x=||", "https://example.invalid/__a__?x=||"),
        ("one<br>two", "one\ntwo"),
        ("plain **bold** *it* ~~gone~~ [a](https://b.invalid)", None),
    ],
)
def test_markdown_is_written_as_discord_shows_it(markdown: str, shown: str | None) -> None:
    assert to_discord(markdown) == (markdown if shown is None else shown)


def test_a_table_is_an_aligned_code_block() -> None:
    table = "| Name | **Count** |\n|:--|--:|\n| `a` | 1 |\n| 語語 | 22 |\n| x \\| y |\n\nafter"

    assert to_discord(f"Here:\n\n{table}") == (
        "Here:\n\n```\nName  │ Count\n──────┼──────\na     │ 1\n語語  │ 22\nx | y │\n```\n\nafter"
    )


def test_a_wide_table_is_a_list() -> None:
    wide = "word " * 20
    table = f"| Name | Text |\n|---|---|\n| one | {wide}|\n| two | |"

    assert to_discord(table) == f"- **Name**: one; **Text**: {wide.strip()}\n- **Name**: two"


def test_code_stays_as_it_is_but_for_fences_that_discord_does_not_know() -> None:
    assert to_discord("```python title=x\n@everyone <@1> #### a\n```") == (
        "```python\n@everyone <@1> #### a\n```"
    )
    assert to_discord("~~~\n__x__\n~~~") == "```\n__x__\n```"
    assert to_discord("````md\n```py\nx\n```\n````") == ("```md\n``\u200b`py\nx\n``\u200b`\n```")
    assert to_discord("- a\n  ```sh\n  ls\n    x\n  ```") == "- a\n```sh\nls\n  x\n```"
    assert to_discord("> ```\n> x\n> ```\ny") == "> ```\n> x\n> ```\ny"


@pytest.mark.parametrize(
    "text", ["@everyone", "@here", "<@123>", "<@!123>", "<@&123>", "a@EVERYONE.b", "**@here**"]
)
def test_nobody_is_pinged(text: str) -> None:
    shown = to_discord(f"Hello {text}!")

    assert text not in shown
    assert shown.replace("\u200b", "") == f"Hello {text}!"


pinging = st.lists(
    st.sampled_from(
        ["@", "every", "everyone", "here", "<@", "12", ">", "&", "!", "|", "|-|", "\n", "`", "```",
         "__", "<br>", "#### ", "> ", "| a | b |\n|---|---|\n", "![", "](", ")", " ", "https://a"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(pinging)
def test_no_text_pings_outside_of_code(text: str) -> None:
    shown = to_discord(text)

    prose = re.sub(r"```.*?(?:```|\Z)|`+[^`]*`+", " ", shown, flags=re.DOTALL)
    assert not re.search(r"@(everyone|here)\b|<@[!&]?\d+>", prose)


@given(st.text(alphabet="abc @<>#`~|_*-\n1", max_size=200))
def test_no_word_is_lost(text: str) -> None:
    assert re.findall(r"[abc]+", to_discord(text)) == re.findall(r"[abc]+", _bodies(text))


def _bodies(text: str) -> str:
    """Return the text without the names of languages, which Discord takes only in one form."""
    return re.sub(r"^([ \t]*(?:>[ \t]*)*(?:`{3,}(?=[^`\n]*$)|~{3,})).*$", r"\1", text, flags=re.MULTILINE)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<@1> hello", "hello"),
        ("<@!1>, hello", "hello"),
        ("hello <@1> there", "hello there"),
        ("hello <@&9>", "hello"),
        ("<@1>", ""),
        ("ask <@2> and <@!3> of <@&5> in <#7>", "ask @Ada and @Grace of @ops in #builds"),
        ("who is <@44> in <#45>?", "who is @44 in #45?"),
        ("<:party:123> <a:dance:124> </status:12>", ":party: :dance: /status"),
        ("at <t:1700000000:R>", "at 2023-11-14 22:13 UTC"),
        ("`<@2>` is <@2>", "`<@2>` is @Ada"),
        ("```\n<@2>\n```\n<@2>", "```\n<@2>\n```\n@Ada"),
        ("2 < 3 and <b>", "2 < 3 and <b>"),
    ],
)
def test_messages_of_people_have_names_for_ids(content: str, text: str) -> None:
    assert from_discord(content, NAMES) == text


@given(st.text(max_size=200))
def test_any_message_can_be_read(content: str) -> None:
    assert "\0" not in from_discord(content, NAMES)
