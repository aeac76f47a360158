"""All that a tool printed can be had: by `jobs tail --full`, by an export, and in another fleet after an import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightherd.model.ids import JobId
from nightherd.model.journal.event import ToolResultEvent
from nightherd.wiring.stores import open_journals
from surfaces.drivers import Cli

LINES = 20_000
NUMBERED = "".join(f"{number}\n" for number in range(1, LINES + 1))
SECRET = "swordfish-0123456789"
FLEET = f"""\
agents:
  - name: printer
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {{command: "seq {LINES}; printenv PRINTER_TOKEN; seq {LINES}"}}
      - say: printed
"""
WHOLE = NUMBERED + "[secret:PRINTER_TOKEN]\n" + NUMBERED


@pytest.fixture
def printed(cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet whose job printed more than a result holds, a secret in the middle of it."""
    monkeypatch.setenv("PRINTER_TOKEN", SECRET)
    (fleet / "nightherd.yaml").write_text(FLEET)
    assert cli("run", "printer", "--quiet").code == 0
    return fleet


def blob_of(cli: Cli, fleet: Path) -> Path:
    (result,) = [
        one["data"]
        for one in cli("jobs", "tail", "@last", "-n", "all", "--json").documents
        if one["data"]["type"] == "tool_result"
    ]
    return fleet / ".nightherd" / "blobs" / str(result["full_output"]["sha256"])


def test_all_that_was_printed_is_stored_without_secrets(cli: Cli, printed: Path) -> None:
    assert blob_of(cli, printed).read_text() == WHOLE
    files = [path for path in (printed / ".nightherd").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_tail_shows_the_ends_and_with_full_everything(cli: Cli, printed: Path) -> None:
    ends = cli("jobs", "tail", "@last").out
    full = cli("jobs", "tail", "@last", "--full").out

    assert f"all {len(WHOLE):,} bytes: jobs tail --full" in ends
    shown = [line.removeprefix("  | ") for line in full.splitlines() if line.startswith("  | ")]
    assert shown == WHOLE.splitlines()
    documents = cli("jobs", "tail", "@last", "--full", "--json").documents
    assert WHOLE in [one["data"].get("full_output", {}).get("text") for one in documents]


def test_an_export_has_all_of_it_and_an_import_stores_it_again(
    cli: Cli,
    printed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = printed / "session.json"
    assert cli("session", "export", "@last", "-o", str(file)).code == 0
    (job,) = json.loads(file.read_text())["data"]["jobs"]
    texts = [event["full_output"]["text"] for event in job["events"] if "full_output" in event]
    assert texts == [WHOLE]

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(elsewhere)
    assert cli("session", "import", str(file)).code == 0

    journals = open_journals(elsewhere / ".nightherd")
    (output,) = [
        event.full_output
        for event in journals.read(JobId(job["job"]["id"]))
        if isinstance(event, ToolResultEvent)
    ]
    assert output is not None
    assert output.text is None
    assert journals.read_output(output) == WHOLE


def test_doctor_names_an_output_that_is_gone(cli: Cli, printed: Path) -> None:
    assert cli("doctor", "--verify").code == 0
    blob_of(cli, printed).unlink()

    result = cli("doctor", "--verify")

    assert result.code != 0
    assert "the full_output of event" in result.out + result.err
