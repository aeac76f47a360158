"""`search`: with and without a daemon, for people and for programs; secrets are not in the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.index.file import open_index
from surfaces.drivers import FLEET, Cli

SECRET = "hush-4711-nobody-knows"
KEEPER = """\
  - name: keeper
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: "keep ${env:THE_SECRET}"
    script:
      - tool: Bash
        input: {command: "echo $THE_SECRET of the barn"}
      - say: "I know ${env:THE_SECRET} of the barn"
"""


def test_what_was_said_is_found_without_a_daemon(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello", "-p", "the shepherd", "--json").data["job_id"]

    found = cli("search", "shepherd", "--json")

    assert found.document["schema"] == "nightherd/v1/hits"
    assert {hit["job_id"] for hit in found.data} == {job_id}
    assert {hit["kind"] for hit in found.data} == {"prompt", "answer", "tool_input", "tool_result"}
    assert found.document["pending_jobs"] == 0


def test_people_see_where_it_is_and_the_text(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello", "-p", "the shepherd", "--json").data["job_id"]

    shown = cli("search", '"greet the shep"*', "--agent", "hello", "--since", "1h")

    assert shown.code == 0
    first, second = shown.out.splitlines()
    assert first.startswith(job_id)
    assert "answer" in first
    assert second == "  I will greet the shepherd."
    assert cli("search", "nobody-said-this").err == "nothing found\n"


def test_pages_say_how_to_get_the_next(cli: Cli, fleet: Path) -> None:
    cli("run", "hello", "-p", "the shepherd")
    first = cli("search", "shepherd", "--limit", "1", "--json")

    rest = cli("search", "shepherd", "--before", str(first.document["next_before"]), "--json")

    assert len(first.data) == 1
    assert first.data[0] not in rest.data
    assert "more: add --before" in cli("search", "shepherd", "--limit", "1").err


def test_control_characters_of_agents_do_not_reach_the_terminal(cli: Cli, fleet: Path) -> None:
    cli("run", "hostile")

    shown = cli("search", "title")

    assert shown.code == 0
    assert "title" in shown.out
    assert not any(char in shown.out for char in "\x1b\x07\r")


def test_the_index_can_be_made_again(cli: Cli, fleet: Path) -> None:
    cli("run", "hello", "-p", "the shepherd")
    before = cli("search", "shepherd", "--json").data

    rebuilt = cli("search", "--rebuild")

    assert rebuilt.err == "indexed 1 job\n"
    assert cli("search", "--rebuild", "--json").data == {"jobs": 1}
    assert cli("search", "shepherd", "--json").data == before


def test_a_damaged_index_is_made_again_and_that_is_said(cli: Cli, fleet: Path) -> None:
    cli("run", "hello", "-p", "the shepherd")
    (fleet / ".nightherd" / "index.db").write_bytes(b"no database " * 1_000)

    found = cli("search", "shepherd")

    assert "was damaged" in found.err
    assert "shepherd" in found.out


@pytest.mark.parametrize("text", [(), ("***",), ("",)])
def test_a_search_without_a_word_is_refused(cli: Cli, fleet: Path, text: tuple[str, ...]) -> None:
    assert cli("search", *text).code == 2


def test_a_fleet_that_never_worked_has_nothing_to_find_and_gets_no_files(
    cli: Cli, fleet: Path
) -> None:
    assert cli("search", "shepherd").err == "nothing found\n"
    assert not (fleet / ".nightherd").exists()


def test_a_secret_is_not_in_the_index(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_SECRET", SECRET)
    (fleet / "nightherd.yaml").write_text(FLEET + KEEPER)
    ran = cli("run", "keeper")
    assert ran.code == 0, ran.err

    assert len(cli("search", "barn", "--json").data) >= 2
    for word in SECRET.split("-"):
        assert cli("search", word, "--json").data == [], word
    stored = b"".join(path.read_bytes() for path in (fleet / ".nightherd").glob("index.db*"))
    assert SECRET.encode() not in stored
    assert b"4711" not in stored


def test_where_the_index_cannot_be_written_that_is_said(cli: Cli, fleet: Path) -> None:
    cli("run", "hello", "-p", "the shepherd")
    before = cli("search", "shepherd").out
    lock = fleet / ".nightherd" / "index.lock"
    lock.unlink()
    lock.mkdir()
    cli("run", "hello", "-p", "the goatherd")

    found = cli("search", "shepherd")

    assert found.out == before
    assert "the index is not up to date" in found.err


def test_damaged_words_are_made_again_before_the_answer(cli: Cli, fleet: Path) -> None:
    cli("run", "hello", "-p", "the shepherd")
    before = cli("search", "shepherd").out
    opened = open_index(fleet / ".nightherd")
    opened.database.execute("DELETE FROM search_data WHERE id > 10")
    opened.database.close()

    found = cli("search", "shepherd")

    assert found.out == before
    assert "is made again from the journals" in found.err
