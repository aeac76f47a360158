"""The reader of documents itself: it finds every block, and it notices a page that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from document_blocks import Block, Command, blocks, commands, matches

PAGE = """# A page

`fleet/nightherd.yaml`:

```yaml
agents: []
```

```console
$ echo one; \\
> echo two
one
two
$ true

$ echo three
three
```

- in a list:

  ```sh
  echo four
  ```
"""


def test_blocks_are_found_with_their_language_line_and_file(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    assert list(blocks(page)) == [
        Block(language="yaml", line=5, text="agents: []\n", file="fleet/nightherd.yaml"),
        Block(
            language="console",
            line=9,
            text="$ echo one; \\\n> echo two\none\ntwo\n$ true\n\n$ echo three\nthree\n",
            file=None,
        ),
        Block(language="sh", line=22, text="echo four\n", file=None),
    ]


def test_commands_come_with_the_output_shown_below_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    found = [command for block in list(blocks(page))[1:] for command in commands(block)]

    assert found == [
        Command(line=10, text="echo one; \\\necho two", expected="one\ntwo\n"),
        Command(line=14, text="true", expected=""),
        Command(line=16, text="echo three", expected="three\n"),
        Command(line=22, text="echo four\n", expected="", is_script=True),
    ]


def test_block_that_is_never_closed_is_a_mistake(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ true\n")

    with pytest.raises(ValueError, match="never closed"):
        list(blocks(page))


def test_console_block_without_a_prompt_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="does not begin"):
        list(commands(Block(language="console", line=3, text="true\n", file=None)))


@pytest.mark.parametrize(
    ("expected", "actual", "is_match"),
    [
        ("one\n", "one\n", True),
        ("one\n", "one  \n\n", True),
        ("one\n", "two\n", False),
        ("one\n", "one\ntwo\n", False),
        ("one\ntwo\n", "one\n", False),
        ("job-... completed\n", "job-2026-11-15-a1b2c3 completed\n", True),
        ("job-... completed\n", "job-2026-11-15-a1b2c3 failed\n", False),
        ("one\n...\nlast\n", "one\ntwo\nthree\nlast\n", True),
        ("one\n...\nlast\n", "one\nlast\n", True),
        ("one\n...\nlast\n", "one\ntwo\n", False),
        ("a ... b\n", "a\nb\n", False),
        ("(1 + 2)*\n", "(1 + 2)*\n", True),
    ],
)
def test_output_matches_as_the_page_shows_it(expected: str, actual: str, is_match: bool) -> None:
    assert matches(expected, actual) is is_match
