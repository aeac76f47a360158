"""Exporting a session in each format, and importing it again."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cli.exported_events import as_on_record
from cli.sessions.ranch import FLEET, Ranch

HOSTILE = "<script>alert(1)</script> & ```fence``` | pipe\nline \u202e two"


@pytest.fixture
def session(ranch: Ranch) -> str:
    """A fork of a session, with a job of its own: what it says comes from two journals."""
    root = ranch.run("memory", "-p", HOSTILE)["session_id"]
    ranch.cli("session", "fork", root, "--at-message", "2", "--run", "-p", "otherwise", "-q")
    found: str = ranch.show("@last")["id"]
    assert found != root
    return found


@pytest.fixture
def elsewhere(ranch: Ranch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory of another fleet, with nothing in it."""
    directory = tmp_path_factory.mktemp("elsewhere")
    (directory / "nightherd.yaml").write_text(FLEET)
    return directory


def at(ranch: Ranch, directory: Path, *words: str) -> Any:
    """What the command says in another directory."""
    return ranch.data("--config", str(directory / "nightherd.yaml"), *words)


def test_json_holds_every_event_as_it_stands_on_record(ranch: Ranch, session: str) -> None:
    exported = ranch.cli("session", "export", session)

    data = json.loads(exported.out)["data"]
    assert data["version"] == 1
    assert data["session"]["id"] == session
    assert [one["id"] for one in data["ancestors"]] == [data["session"]["parent_session_id"]]
    first, second = data["jobs"]
    assert first["upto"] == data["session"]["base_seq"]
    for part in data["jobs"]:
        lines = (ranch.state / "jobs" / f"{part['job']['id']}.jsonl").read_text().splitlines()
        on_record = [json.loads(line) for line in lines][: len(part["events"])]
        assert as_on_record(part["events"]) == on_record
    assert len(second["events"]) == second["events"][-1]["seq"]


def test_json_for_programs_is_the_same_on_one_line(ranch: Ranch, session: str) -> None:
    whole = json.loads(ranch.cli("session", "export", session).out)["data"]

    assert ranch.cli("session", "export", session, "--json").document["data"] == whole


def test_imported_session_says_the_same_and_goes_on(
    ranch: Ranch, session: str, elsewhere: Path
) -> None:
    ranch.cli("session", "export", session, "-o", "session.json")
    before = ranch.show(session, "--history")

    imported = at(ranch, elsewhere, "session", "import", "session.json")

    assert (imported["id"], imported["is_new"], imported["jobs_imported"]) == (session, True, 2)
    there = at(ranch, elsewhere, "session", "show", session, "--history")
    assert there["history"] == before["history"]
    kept = ("agent", "mode", "status", "message_count", "turn_count", "token_estimate", "cost_usd")
    assert [there[name] for name in kept] == [before[name] for name in kept]
    assert [row["id"] for row in at(ranch, elsewhere, "session", "list")] == [session]
    at(ranch, elsewhere, "session", "resume", session, "-p", "and now here")
    texts = at(ranch, elsewhere, "session", "show", session, "--history")["history"]
    assert texts[len(before["history"])]["text"] == "and now here"


def test_import_done_again_changes_nothing(ranch: Ranch, session: str, elsewhere: Path) -> None:
    ranch.cli("session", "export", session, "-o", "session.json")
    at(ranch, elsewhere, "session", "import", "session.json")
    listed = at(ranch, elsewhere, "jobs", "list")

    again = at(ranch, elsewhere, "session", "import", "session.json")

    assert (again["is_new"], again["jobs_imported"]) == (False, 0)
    assert at(ranch, elsewhere, "jobs", "list") == listed


def test_dry_import_writes_nothing(ranch: Ranch, session: str, elsewhere: Path) -> None:
    ranch.cli("session", "export", session, "-o", "session.json")

    assert at(ranch, elsewhere, "session", "import", "session.json", "--dry-run")["is_new"]

    assert not (elsewhere / ".nightherd").exists()


def test_what_is_imported_joins_no_job_unasked(ranch: Ranch, session: str, elsewhere: Path) -> None:
    ranch.cli("session", "export", session, "-o", "session.json")
    at(ranch, elsewhere, "session", "import", "session.json")

    config = str(elsewhere / "nightherd.yaml")
    done = ranch.cli("--config", config, "run", "memory", "--json").data

    assert done["session_id"] != session


def test_import_of_another_session_by_the_same_id_is_refused(
    ranch: Ranch, session: str, elsewhere: Path
) -> None:
    ranch.cli("session", "export", session, "-o", "session.json")
    at(ranch, elsewhere, "session", "import", "session.json")
    changed = json.loads(Path("session.json").read_text())
    changed["data"]["session"]["agent"] = "somebody"
    Path("changed.json").write_text(json.dumps(changed))

    config = str(elsewhere / "nightherd.yaml")
    refused = ranch.cli("--config", config, "session", "import", "changed.json")

    assert refused.code == 5
    assert f"session {session} is another one here" in refused.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema":"nightherd/v1/session_export","data":{}}',
        '{"schema":"nightherd/v1/session_export","data":{"version":2,"session":{}}}',
        "\x00\x01",
        '{"schema":',
    ],
)
def test_file_that_is_no_export_is_refused_with_the_reason(ranch: Ranch, text: str) -> None:
    Path("odd.json").write_text(text)

    refused = ranch.cli("session", "import", "odd.json")

    assert refused.code == 1
    assert "is not an exported session" in refused.err
    assert not (ranch.state / "jobs").exists()


def test_document_of_another_kind_is_no_export_whatever_it_holds(
    ranch: Ranch, session: str, elsewhere: Path
) -> None:
    document = json.loads(ranch.cli("session", "export", session).out)
    document["schema"] = "nightherd/v1/sessions"
    Path("odd.json").write_text(json.dumps(document))

    config = str(elsewhere / "nightherd.yaml")
    refused = ranch.cli("--config", config, "session", "import", "odd.json")

    assert refused.code == 1
    assert "is not an exported session: its schema is 'nightherd/v1/sessions'" in refused.err


def test_export_of_events_out_of_order_is_refused(
    ranch: Ranch, session: str, elsewhere: Path
) -> None:
    document = json.loads(ranch.cli("session", "export", session).out)
    document["data"]["jobs"][0]["events"].reverse()
    Path("odd.json").write_text(json.dumps(document))

    config = str(elsewhere / "nightherd.yaml")
    refused = ranch.cli("--config", config, "session", "import", "odd.json")

    assert refused.code == 1
    assert "not in order" in refused.err


def test_file_that_is_not_there_is_not_found(ranch: Ranch) -> None:
    assert ranch.cli("session", "import", "nothing.json").code == 3


def test_markdown_shows_every_message_and_no_text_ends_its_block(
    ranch: Ranch, session: str
) -> None:
    page = ranch.cli("session", "export", session, "--format", "markdown").out

    numbers = [int(n) for n in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)]
    assert numbers == list(range(1, ranch.show(session)["message_count"] + 1))
    assert "**Write**" in page
    assert page.startswith(f"# Session {session}\n")


class Page(HTMLParser):
    """What a browser would find on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.data = ""
        """The text of the element that holds what the page shows."""
        self.is_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.is_data = ("id", "journal") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.is_data = False

    def handle_data(self, data: str) -> None:
        if self.is_data:
            self.data += data


def test_html_is_one_page_that_loads_nothing_and_has_every_event(
    ranch: Ranch, session: str
) -> None:
    text = ranch.cli("session", "export", session, "--html").out

    page = Page(text)
    assert (page.tags.count("script"), page.links) == (2, [])
    assert not {"link", "img", "iframe"} & set(page.tags)
    whole = json.loads(ranch.cli("session", "export", session).out)["data"]
    shown = json.loads(page.data)["jobs"]
    assert [part["id"] for part in shown] == [part["job"]["id"] for part in whole["jobs"]]
    on_record = [as_on_record(part["events"]) for part in whole["jobs"]]
    assert [part["events"] for part in shown] == on_record
    assert "alert(1)" in page.data
    assert "<script>alert(1)" not in text


def test_format_html_is_the_same_page(ranch: Ranch, session: str) -> None:
    flag = Page(ranch.cli("session", "export", session, "--html").out)
    named = Page(ranch.cli("session", "export", session, "--format", "html").out)

    assert json.loads(flag.data)["jobs"] == json.loads(named.data)["jobs"]


def test_claude_lines_are_a_chain_with_an_answer_to_every_call(ranch: Ranch, session: str) -> None:
    out = ranch.cli("session", "export", session, "--format", "claude").out

    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    assert len({line["sessionId"] for line in lines}) == 1
    open_calls: set[str] = set()
    for line in lines:
        for block in line["message"]["content"]:
            if isinstance(block, dict) and block["type"] == "tool_use":
                open_calls.add(block["id"])
            elif isinstance(block, dict) and block["type"] == "tool_result":
                open_calls.remove(block["tool_use_id"])
    assert open_calls == set()
    assert "outcome unknown" in out
    assert ranch.cli("session", "export", session, "--format", "claude").out == out


def test_export_for_programs_names_the_file_or_holds_the_text(ranch: Ranch, session: str) -> None:
    text = ranch.data("session", "export", session, "--format", "markdown")
    written = ranch.data("session", "export", session, "--format", "html", "-o", "page.html")

    assert text["text"].startswith("# Session")
    assert Path(written["file"]).read_text().startswith("<!doctype html>")
    assert Path("page.html").stat().st_mode & 0o777 == 0o600


def test_a_file_in_a_directory_that_is_not_there_is_refused_with_what_to_do(ranch: Ranch) -> None:
    ranch.run("memory")

    refused = ranch.cli("session", "export", "@last", "-o", "missing/it.json")

    assert refused.code == 3
    assert "there is no directory" in refused.err
    assert "try: mkdir -p " in refused.err
