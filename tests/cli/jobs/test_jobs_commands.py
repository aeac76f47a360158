"""`jobs list` and `jobs show`: for people and for programs, by every way of naming a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.model.jobs.job import Execution, JobStatus
from surfaces.drivers import Cli, Shell, submit_pending

ROW_KEYS = {
    "id", "agent", "schedule", "trigger_type", "trigger_id", "status", "exit_reason",
    "suspend_reason", "resumes_at", "lost", "waits_behind", "session_id", "workspace_id", "runtime_session_id",
    "forked_from", "resumed_from", "parent_job_id", "workflow_run_id", "phase", "priority", "restart_count", "created_at", "started_at", "finished_at",
    "duration_seconds", "turns", "messages", "usage", "cost_usd", "summary", "error", "output_file",
}  # fmt: skip


@pytest.fixture
def three(cli: Cli, fleet: Path) -> list[str]:
    """Three jobs, oldest first: completed, failed, completed."""
    return [
        cli("run", "hello", "-p", "the first", "--json").data["job_id"],
        cli("run", "failing", "--json").data["job_id"],
        cli("run", "echo", "-p", "the third", "--json").data["job_id"],
    ]


def test_empty_list_is_no_error_and_says_what_to_do(cli: Cli, fleet: Path) -> None:
    people, programs = cli("jobs"), cli("jobs", "--json")

    assert (people.code, people.out) == (0, "")
    assert people.err == "no jobs yet\n  try: nightherd run AGENT -p TEXT\n"
    assert programs.document["schema"] == "nightherd/v1/jobs"
    assert programs.data == []
    assert not (fleet / ".nightherd").exists()


def test_list_shows_newest_first_in_aligned_columns(cli: Cli, three: list[str]) -> None:
    lines = cli("jobs").out.splitlines()

    assert lines[0].split() == [
        "ID", "AGENT", "STATUS", "CREATED", "TOOK", "TURNS", "COST", "SUMMARY",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == three[::-1]
    column = lines[0].index("STATUS")
    assert [line[column:].split()[1] for line in lines[1:]] == ["completed", "failed", "completed"]
    assert "No luck today." in lines[2]
    assert "$0.002" in lines[3]


def test_times_are_absolute_when_nobody_watches(cli: Cli, three: list[str]) -> None:
    listed = cli("jobs").out.splitlines()

    assert all(line.split()[4].endswith("Z") for line in listed[1:])


def test_list_for_programs_has_every_key_and_no_long_text(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "list", "--json")

    assert [row["id"] for row in result.data] == three[::-1]
    assert all(set(row) == ROW_KEYS for row in result.data)
    assert result.data[1]["error"] == {"code": "bad_luck", "message": "No luck today."}
    assert result.data[2]["cost_usd"] == 0.002
    assert result.document["next_before"] is None


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (("--agent", "hello"), [0]),
        (("--status", "failed"), [1]),
        (("--status", "completed"), [2, 0]),
        (("--agent", "echo", "--status", "failed"), []),
        (("--limit", "2"), [2, 1]),
    ],
)
def test_list_shows_only_what_is_asked_for(
    options: tuple[str, ...], chosen: list[int], cli: Cli, three: list[str]
) -> None:
    listed = cli("jobs", "list", *options, "--json").data

    assert [row["id"] for row in listed] == [three[index] for index in chosen]


def test_pages_follow_each_other_without_gap_or_overlap(cli: Cli, three: list[str]) -> None:
    seen: list[str] = []
    cursor: tuple[str, ...] = ()
    for _ in three:
        page = cli("jobs", "list", "--limit", "1", "--json", *cursor)
        seen += [row["id"] for row in page.data]
        cursor = ("--before", str(page.document["next_before"]))

    assert seen == three[::-1]
    assert cursor == ("--before", "None")


def test_page_for_people_says_how_to_see_the_next(cli: Cli, three: list[str]) -> None:
    first = cli("jobs", "--limit", "1")

    command = first.err.strip().removeprefix("more: nightherd ").split()
    second = cli(*command, "--limit", "1")
    assert second.out.splitlines()[1].split()[0] == three[1]


@pytest.mark.parametrize("noun", ["jobs", "session"])
def test_the_page_after_this_one_is_narrowed_in_the_same_way(
    cli: Cli, fleet: Path, noun: str
) -> None:
    for agent in ("hello", "hello", "failing", "hello"):
        cli("run", agent, "--quiet")

    first = cli(noun, "list", "--agent", "hello", "--limit", "1")
    second = cli(*first.err.strip().removeprefix("more: nightherd ").split())
    third = cli(*second.err.strip().removeprefix("more: nightherd ").split())

    shown = [
        [line.split()[1] for line in one.out.splitlines()[1:]] for one in (first, second, third)
    ]
    assert shown == [["hello"]] * 3
    assert third.err == ""


def test_wrong_status_word_is_answered_with_the_right_ones(cli: Cli, fleet: Path) -> None:
    result = cli("jobs", "--status", "done")

    assert result.code == 2
    assert all(status.value in result.err for status in JobStatus)


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many"])
def test_limit_out_of_range_is_a_usage_error(limit: str, cli: Cli, fleet: Path) -> None:
    assert cli("jobs", "--limit", limit).code == 2


def test_show_tells_everything_about_a_job(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "show", three[0])

    assert result.code == 0
    for text in (three[0], "hello", "✔ completed (success)", "the first", "Done.", "$0.002"):
        assert text in result.out
    assert result.err == (
        f"events: nightherd jobs tail {three[0]}\nsettings: nightherd jobs config {three[0]}\n"
    )


def test_show_for_programs_has_texts_and_executions(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "show", three[0], "--json")

    assert result.document["schema"] == "nightherd/v1/job"
    added = {
        "prompt",
        "inputs",
        "executions",
        "limits",
        "session_note",
        "waits_for",
        "tree",
        "children",
        "denials",
        "failed_hooks",
        "cut_off",
        "journal_error",
        "workspace",
    }
    times = {"worked_seconds", "waited_seconds"}
    assert set(result.data) == ROW_KEYS | added | times
    assert result.data["prompt"] == "the first"
    (execution,) = result.data["executions"]
    assert (execution["success"], execution["skill"], execution["trigger_type"]) == (
        True,
        "hello",
        "api",
    )
    columns = set(Execution.__struct_fields__) - {"job_id", "cost_microusd"}
    assert set(execution) == columns | {"cost_usd"}
    assert result.data["usage"]["input_tokens"] == 230


def test_show_of_a_failed_job_says_why(cli: Cli, three: list[str]) -> None:
    assert "bad_luck: No luck today." in cli("jobs", "show", "@last-failed").out


def test_show_of_a_job_that_waits(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)

    assert "○ pending" in cli("jobs", "show", job_id).out
    assert cli("jobs", "show", job_id, "--json").data["started_at"] is None


def test_job_is_named_by_prefix_with_or_without_its_word(cli: Cli, three: list[str]) -> None:
    prefix = three[0][:-1]
    if sum(job.startswith(prefix) for job in three) > 1:
        prefix = three[0]

    named = [cli("jobs", "show", name, "--json") for name in (prefix, prefix.removeprefix("job-"))]

    assert [one.data["id"] for one in named] == [three[0], three[0]]


def test_last_and_last_failed_need_no_id(cli: Cli, three: list[str]) -> None:
    assert cli("jobs", "show", "@last", "--json").data["id"] == three[2]
    assert cli("jobs", "show", "@last-failed", "--json").data["id"] == three[1]


@pytest.mark.parametrize("name", ["", "@first", "job-x"])
def test_what_names_no_job_means_none_also_when_there_is_only_one(
    name: str, cli: Cli, fleet: Path
) -> None:
    job = cli("run", "echo", "-p", "the only one", "--detach", "--json").data["job_id"]

    cancelled = cli("jobs", "cancel", name)

    assert cancelled.code == 3
    assert "try: nightherd jobs" in cancelled.err
    assert cli("jobs", "show", "j", "--json").data["status"] == "pending"
    assert cli("jobs", "show", job, "--json").data["status"] == "pending"


def test_no_secret_becomes_the_name_of_a_session(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", "echo", "-p", "x")
    monkeypatch.setenv("A_TOKEN", "shibboleth-one")
    (fleet / ".env").write_text("B_TOKEN=shibboleth-two\n")

    named = cli("session", "rename", "@last", "shibboleth-one, shibboleth-two", "--json")

    assert named.data["name"] == "[secret:A_TOKEN], [secret:B_TOKEN]"
    (fleet / "nightherd.yaml").write_text("agents: [")
    again = cli("session", "rename", "@last", "a shibboleth-one", "--json")
    assert again.data["name"] == "a [secret:A_TOKEN]"


def test_nothing_at_all_names_no_session(cli: Cli, fleet: Path) -> None:
    cli("run", "echo", "-p", "the only one")

    assert cli("session", "show", "").code == 3
    assert cli("run", "echo", "-p", "more", "--resume", "").code == 3


def test_job_is_named_by_how_its_id_ends(cli: Cli, three: list[str]) -> None:
    """All that differs between the jobs of a day."""
    assert cli("jobs", "show", three[1][-6:], "--json").data["id"] == three[1]
    assert cli("jobs", "show", "x" + three[1][-6:]).code == 3


def test_prefix_of_several_jobs_is_refused_and_names_them(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "show", "job-2")

    assert result.code == 3
    assert all(job in result.err for job in three)


@pytest.mark.parametrize("name", ["job-1999", "nonsense", "%", "../x", "job-2026-01-01-aaaaaa"])
def test_job_that_is_not_there_is_not_found(name: str, cli: Cli, three: list[str]) -> None:
    assert cli("jobs", "show", name).code == 3


def test_summary_of_an_agent_cannot_steer_the_terminal(cli: Cli, fleet: Path) -> None:
    assert cli("run", "hostile").code == 0

    for command in (("jobs",), ("jobs", "show", "@last"), ("jobs", "tail", "@last", "-n", "all")):
        shown = cli(*command).out
        assert "\x1b" not in shown
        assert "\a" not in shown
        assert "\u202e" not in shown
        assert "\\u202e" in shown


def test_reading_jobs_starts_no_event_loop_and_loads_nothing_heavy(shell: Shell, cli: Cli) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0
    heavy = {"asyncio", "anyio", "pydantic", "yaml", "rich"}
    program = (
        "import sys; from nightherd.cli.main import main; code = main(['jobs', 'list', '--json']);"
        f"print(sorted({heavy} & set(sys.modules)), code)"
    )

    done = shell.python(program)

    assert done.out.splitlines()[-1] == "[] 0"


def test_list_is_narrowed_by_a_query(cli: Cli, three: list[str]) -> None:
    def listed(*words: str) -> list[str]:
        return [job["id"] for job in cli("jobs", "list", *words, "--json").data]

    assert listed("status:failed") == [three[1]]
    assert listed("agent:hello,echo", "since:1d") == [three[2], three[0]]
    assert listed("cost:>0") == [three[0]]
    assert listed("no luck") == listed('"no luck"') == [three[1]]
    assert listed("--agent", "hello", "status:failed") == []


def test_query_that_cannot_be_read_is_an_error_with_its_column(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "list", "agent:hello", "status:broken")

    assert result.code == 2
    assert "column 20 of the filter: 'broken' is no status" in result.err


def test_next_page_keeps_the_query(cli: Cli, three: list[str]) -> None:
    result = cli("jobs", "list", "agent:hello,echo", "cost:>=0", "--limit", "1")

    assert (
        "more: nightherd jobs list agent:hello,echo 'cost:>=0' --limit 1 --before 3" in result.err
    )


def test_empty_answer_to_a_query_says_so(cli: Cli, three: list[str]) -> None:
    assert cli("jobs", "list", "agent:nobody").err == "no such jobs\n  try: nightherd jobs\n"
