"""`run`: where prompts come from, what is shown and recorded, and what is refused before anything is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surfaces.drivers import Cli

RESULT_KEYS = {
    "job_id", "session_id", "runtime_session_id", "agent", "status", "exit_reason", "success",
    "summary", "duration_seconds", "usage", "cost_usd", "error", "error_details", "denials", "failed_hooks", "cut_off", "journal_error", "suspend_reason",
    "resumes_at", "lost", "session_note",
}  # fmt: skip


def test_run_shows_the_work_on_stdout_and_talks_on_stderr(cli: Cli, fleet: Path) -> None:
    result = cli("run", "hello", "-p", "the night")

    assert result.code == 0
    assert result.out.splitlines() == [
        "~ Somebody wants a greeting.",
        "I will greet the night.",
        "> Write: hello.txt",
        *[line for line in result.out.splitlines() if line.startswith("  | wrote")],
        "> Bash: cat hello.txt",
        "  | Hello, the night!",
        "Done.",
    ]
    first, last = result.err.splitlines()
    job_id = first.removeprefix("job ")
    assert last.startswith("✔ completed (success), 3 turns, $0.002, ")
    assert last.endswith(f"nightherd jobs show {job_id}")
    assert (fleet / "hello.txt").read_text() == "Hello, the night!\n"


def test_every_event_shown_is_in_the_journal(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello").err.splitlines()[0].removeprefix("job ")

    lines = (fleet / ".nightherd" / "jobs" / f"{job_id}.jsonl").read_text().splitlines()
    types = [json.loads(line)["type"] for line in lines]
    assert types.count("tool_use") == types.count("tool_result") == 2
    assert json.loads(lines[-1])["subtype"] == "end"


def test_run_for_programs_prints_only_the_result(cli: Cli, fleet: Path) -> None:
    result = cli("run", "hello", "-p", "the night", "--json")

    assert (result.code, result.err) == (0, "")
    assert result.document["schema"] == "nightherd/v1/run"
    assert set(result.data) == RESULT_KEYS
    assert result.data["success"] is True
    assert result.data["summary"] == "Done."
    assert result.data["usage"]["num_turns"] == 3
    assert result.data["cost_usd"] == 0.002


def test_run_that_fails_is_a_result_and_not_an_error_document(cli: Cli, fleet: Path) -> None:
    result = cli("run", "failing", "--json")

    assert result.code == 1
    assert result.document["schema"] == "nightherd/v1/run"
    assert result.data["status"] == "failed"
    assert result.data["error"] == {"code": "bad_luck", "message": "No luck today."}


def test_failure_is_shown_where_it_happened_and_at_the_end(cli: Cli, fleet: Path) -> None:
    result = cli("run", "failing")

    assert result.code == 1
    assert "  ✗ the tool failed" in result.out
    assert "✗ error (bad_luck): No luck today." in result.out
    assert "✗ failed (error)" in result.err


def test_quiet_run_gives_the_answer_alone(cli: Cli, fleet: Path) -> None:
    result = cli("run", "hello", "--quiet")

    assert (result.code, result.out, result.err) == (0, "Done.\n", "")


def test_quiet_run_that_fails_still_says_so(cli: Cli, fleet: Path) -> None:
    result = cli("run", "failing", "-q")

    assert result.code == 1
    assert "✗ failed (error)" in result.err
    assert "No luck today." in result.err


def test_job_that_takes_too_long_ends_with_124(cli: Cli, fleet: Path) -> None:
    result = cli("run", "late", "--json")

    assert result.code == 124
    assert (result.data["status"], result.data["exit_reason"]) == ("failed", "timeout")


ODD_PROMPTS = [
    "-x", "--help", "--", "@file", "/clear", "${prompt}", "grün 日本 🐄", "two\nlines", "'\"`$(id)",
    "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("prompt", ODD_PROMPTS, ids=range(len(ODD_PROMPTS)))
def test_prompt_reaches_the_agent_as_it_was_given(prompt: str, cli: Cli, fleet: Path) -> None:
    result = cli("run", "echo", "-p", prompt, "--json")

    assert result.code == 0
    assert result.data["summary"] == prompt
    assert cli("jobs", "show", "@last", "--json").data["prompt"] == prompt


def test_prompt_of_a_megabyte_comes_from_a_file(cli: Cli, fleet: Path) -> None:
    prompt = "grün " * 200_000
    (fleet / "prompt.txt").write_text(prompt)

    result = cli("run", "echo", "-f", "prompt.txt", "--json")

    assert result.data["summary"] == prompt
    assert "bytes in blobs/" in cli("jobs", "tail", "@last").out


@pytest.mark.parametrize("words", [("-",), ("-f", "-")], ids=" ".join)
def test_prompt_comes_from_standard_input(words: tuple[str, ...], cli: Cli, fleet: Path) -> None:
    result = cli("run", "echo", *words, "--json", stdin="piped in, grün\n".encode())

    assert result.data["summary"] == "piped in, grün\n"


def test_byte_order_mark_is_not_part_of_the_prompt(cli: Cli, fleet: Path) -> None:
    (fleet / "prompt.txt").write_bytes(b"\xef\xbb\xbfhello")

    assert cli("run", "echo", "-f", "prompt.txt", "--json").data["summary"] == "hello"


def test_agents_own_prompt_is_used_with_inputs_filled_in(cli: Cli, fleet: Path) -> None:
    result = cli("run", "echo", "--input", "topic=night=watch", "--json")

    assert result.data["summary"] == "topic night=watch"
    assert cli("jobs", "show", "@last", "--json").data["inputs"] == {"topic": "night=watch"}


@pytest.mark.parametrize(
    ("words", "content", "message"),
    [
        (("echo", "-f", "given"), b"\xff\xfe\x00", "not UTF-8 text (byte 0)"),
        (("echo", "-f", "given"), b"a\0b", "NUL character"),
        (("echo", "-f", "given"), b"", "the prompt is empty"),
        (("echo", "-f", "given"), b" \n", "the prompt is empty"),
        (("echo", "-f", "given"), b"x" * 10_000_001, "larger than 10 MB"),
        (("echo", "-f", "missing"), b"", "No such file or directory"),
        (("echo", "-f", "."), b"", "Is a directory"),
        (("echo", "-p", ""), b"", "the prompt is empty"),
        (("echo", "-p", "bad \udcff byte"), b"", "not UTF-8 text"),
        (("echo", "-p", "a", "-f", "given"), b"x", "-p and -f both give a prompt"),
        (("echo", "do", "this"), b"", "unexpected extra argument"),
        (("echo", "this"), b"", "'this' is not expected here"),
        (("echo",), b"", "--input topic=..."),
        (("mute",), b"", "has no default_prompt"),
        (("echo", "--input", "topic"), b"", "is not NAME=VALUE"),
        (("echo", "--input", "=x"), b"", "is not NAME=VALUE"),
        (("echo", "--input", "a=1", "--input", "a=2"), b"", "is given twice"),
    ],
)
def test_prompt_that_cannot_be_used_is_refused_before_anything_is_recorded(
    words: tuple[str, ...], content: bytes, message: str, cli: Cli, fleet: Path
) -> None:
    (fleet / "given").write_bytes(content)

    result = cli("run", *words)

    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not (fleet / ".nightherd").exists()


def test_standard_input_that_is_no_text_is_refused(cli: Cli, fleet: Path) -> None:
    result = cli("run", "echo", "-", stdin=b"\x80")

    assert result.code == 2
    assert "standard input is not UTF-8 text" in result.err


def test_unknown_agent_is_answered_with_the_nearest(cli: Cli, fleet: Path) -> None:
    result = cli("run", "helo", "-p", "x")

    assert result.code == 3
    assert "the fleet has no agent 'helo'; it has 'hello'" in result.err
    assert "  try: nightherd run hello\n" in result.err
    assert not (fleet / ".nightherd").exists()


def test_runtime_that_is_not_installed_is_refused_before_anything_is_recorded(
    cli: Cli, fleet: Path
) -> None:
    result = cli("run", "claude")

    assert (result.code, result.out) == (5, "")
    assert "runtime 'sdk' is not installed" in result.err
    assert "pip install 'nightherd[claude]'" in result.err
    assert not (fleet / ".nightherd").exists()


def test_notices_are_told_about_the_agent_that_runs_and_no_other(cli: Cli, fleet: Path) -> None:
    about_claude = cli("run", "claude").err.splitlines()[0]
    about_echo = cli("run", "echo", "-p", "x").err

    assert about_claude.startswith("notice: nightherd.yaml:")
    assert "'idempotent_tools' is not used" in about_claude
    assert "notice" not in about_echo


def test_mistake_in_the_fleet_file_is_shown_with_its_place(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text("agents:\n  - name: a\n    runtim: scripted\n")

    people, programs = cli("run", "a"), cli("run", "a", "--json")

    assert people.code == programs.code == 78
    assert "nightherd.yaml:3:5: unknown key 'runtim'" in people.err
    assert "    ^^^^^^" in people.err
    assert programs.data["code"] == "config_invalid"
    assert programs.data["problems"][0]["line"] == 3


def test_next_job_of_a_persistent_session_goes_on_where_the_last_ended(
    cli: Cli, fleet: Path
) -> None:
    first = cli("run", "memory", "--json").data
    second = cli("run", "memory", "--json").data

    assert first["session_id"] == second["session_id"]
    assert first["summary"] == "turn 1"


def test_tools_output_cannot_steer_the_terminal(cli: Cli, fleet: Path) -> None:
    result = cli("--color", "never", "run", "hostile")

    assert "\x1b" not in result.out
    assert "a\\x1b]0;title\\x07b\\x1b[2Jc\\rd" in result.out


def test_run_that_fails_says_what_to_do_about_it_everywhere(cli: Cli, fleet: Path) -> None:
    people = cli("run", "limited")
    job = cli("jobs", "show", "@last", "--json").data["id"]
    programs = cli("run", "limited", "--json")

    words = "set max_concurrent to run fewer jobs at once, or retry the job later"
    assert people.err.endswith(f"  try: {words}: nightherd jobs retry {job}\n")
    assert f"try       {words}: nightherd jobs retry" in cli("jobs", "show", job).out
    assert programs.data["error_details"]["hint"].startswith(f"{words}: nightherd jobs retry ")
    assert "try:" not in cli("run", "failing").err
