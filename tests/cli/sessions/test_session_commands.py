"""`nightherd session`: every command, what it shows and what it refuses."""

from __future__ import annotations

import pytest

from cli.sessions.ranch import Ranch


def test_session_lists_what_there_is_newest_first(ranch: Ranch) -> None:
    first = ranch.run("memory")["session_id"]
    second = ranch.run("fresh")["session_id"]

    rows = ranch.data("session", "list")

    assert [row["id"] for row in rows] == [second, first]
    assert [row["status"] for row in rows] == ["completed", "paused"]
    assert rows[1]["job_count"] == 1
    assert rows[1]["token_estimate"] == 240
    assert rows[1]["cost_usd"] == 0.002


@pytest.mark.parametrize(
    ("words", "agents"),
    [
        (("--agent", "fresh"), ["fresh"]),
        (("--status", "paused"), ["memory"]),
        (("--status", "completed"), ["fresh"]),
        (("--status", "expired"), []),
        (("--mode", "persistent"), ["memory"]),
        (("--mode", "persistent", "--agent", "fresh"), []),
        (("--status", "active"), []),
    ],
)
def test_session_list_is_filtered(ranch: Ranch, words: tuple[str, ...], agents: list[str]) -> None:
    ranch.run("memory")
    ranch.run("fresh")

    assert [row["agent"] for row in ranch.data("session", "list", *words)] == agents


def test_session_list_is_paged(ranch: Ranch) -> None:
    ids = [ranch.run("fresh")["session_id"] for _ in range(3)]

    first = ranch.cli("session", "list", "--limit", "2", "--json").document
    rest = ranch.cli(
        "session", "list", "--limit", "2", "--before", str(first["next_before"]), "--json"
    ).document

    assert [row["id"] for row in first["data"] + rest["data"]] == ids[::-1]
    assert rest["next_before"] is None


def test_the_bare_noun_lists_for_people(ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]

    listed = ranch.cli("session")

    assert listed.code == 0
    assert session in listed.out
    assert "paused" in listed.out


def test_no_sessions_are_said_to_be_none(ranch: Ranch) -> None:
    assert ranch.cli("session", "list").err == (
        "no sessions yet\n  try: nightherd run AGENT -p TEXT\n"
    )
    assert ranch.data("session", "list") == []


def test_history_is_numbered_from_one_over_all_jobs(ranch: Ranch) -> None:
    ranch.run("memory", "-p", "first")
    session = ranch.run("memory", "-p", "second")["session_id"]

    history = ranch.show(session, "--history")["history"]

    assert [one["message"] for one in history] == list(range(1, len(history) + 1))
    assert [one["speaker"] for one in history[:3]] == ["user", "assistant", "tool"]
    assert [one["text"] for one in history if one["speaker"] == "user"] == ["first", "second"]
    assert ranch.show(session)["message_count"] == len(history)
    assert len({one["job_id"] for one in history}) == 2


def test_history_pages_backwards(ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]
    whole = ranch.show(session, "--history")["history"]

    last = ranch.cli("session", "show", session, "--history", "--limit", "2", "--json").document
    before = ranch.show(session, "--history", "--limit", "2", "--before", str(last["next_before"]))

    assert last["data"]["history"] == whole[-2:]
    assert before["history"] == whole[-4:-2]


def test_show_for_people_says_everything_and_neutralises(ranch: Ranch) -> None:
    session = ranch.run("memory", "-p", "bell \a there")["session_id"]

    shown = ranch.cli("session", "show", session, "--history")

    assert shown.code == 0
    assert "\a" not in shown.out
    assert "#1 user" in shown.out
    assert "Write" in shown.out
    assert "expires" in shown.out


@pytest.mark.parametrize("command", ["show", "fork", "use", "tree", "rename", "export", "resume"])
@pytest.mark.parametrize("name", ["sess-zzzzzzzz", "zzz", "@last"])
def test_session_that_is_not_there_is_not_found(ranch: Ranch, command: str, name: str) -> None:
    result = ranch.cli("session", command, name)

    assert result.code == 3, result
    assert not (ranch.state / "jobs").exists()


def test_session_is_found_by_prefix_and_by_its_runtimes_id(ranch: Ranch) -> None:
    session = ranch.run("memory")
    runtime_id = session["runtime_session_id"]

    assert ranch.show(session["session_id"][:-2])["id"] == session["session_id"]
    assert ranch.show(runtime_id)["id"] == session["session_id"]
    assert ranch.show(runtime_id[:-2])["id"] == session["session_id"]


def test_prefix_of_several_is_refused_with_what_it_could_be(ranch: Ranch) -> None:
    ids = [ranch.run("fresh")["session_id"] for _ in range(2)]

    refused = ranch.cli("session", "show", "sess-")

    assert refused.code == 3
    assert all(one in refused.err for one in ids)


def test_use_lets_the_next_job_go_on_there(ranch: Ranch) -> None:
    old = ranch.run("memory", "-p", "first")["session_id"]
    fork = ranch.data("session", "fork", old, "--at-message", "1")["id"]
    assert ranch.run("memory", "-p", "in the old")["session_id"] == old

    assert ranch.data("session", "use", fork)["id"] == fork

    assert ranch.run("memory", "-p", "in the fork")["session_id"] == fork
    assert ranch.data("session", "use", old)["id"] == old
    assert ranch.run("memory", "-p", "back again")["session_id"] == old


def test_a_jobs_own_session_cannot_be_used(ranch: Ranch) -> None:
    session = ranch.run("fresh")["session_id"]

    refused = ranch.cli("session", "use", session)

    assert refused.code == 5
    assert "fresh_per_job" in refused.err


def test_rename_gives_a_name_and_takes_it_away(ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]

    assert ranch.data("session", "rename", session, " the  parser ")["name"] == "the parser"
    assert ranch.show(session)["name"] == "the parser"
    assert ranch.data("session", "rename", session)["name"] is None


def test_tree_draws_the_family_from_any_member(ranch: Ranch) -> None:
    root = ranch.run("memory")["session_id"]
    child = ranch.data("session", "fork", root, "--at-message", "2")["id"]
    grandchild = ranch.data("session", "fork", child)["id"]
    other = ranch.data("session", "fork", root)["id"]

    tree = ranch.data("session", "tree", grandchild)

    assert tree["id"] == root
    assert [fork["id"] for fork in tree["forks"]] == [child, other]
    assert [fork["id"] for fork in tree["forks"][0]["forks"]] == [grandchild]
    drawn = ranch.cli("session", "tree", child).out.splitlines()
    assert drawn[1].startswith(f"├─ {child} after message 2: ")
    assert drawn[2].startswith(f"│  └─ {grandchild} after message 2: ")
    assert drawn[3].startswith(f"└─ {other} ")


def test_compare_says_where_two_tips_part_and_what_became_of_them(ranch: Ranch) -> None:
    root = ranch.run("memory")["session_id"]
    one = ranch.run("memory", "--fork", root, "-p", "one way")["session_id"]
    fork = ranch.data("session", "fork", root, "--at-message", "2")["id"]
    ranch.cli("session", "resume", fork, "-p", "another way", "-q")

    found = ranch.data("session", "compare", one, fork)

    assert found["common_messages"] == 2
    assert [side["id"] for side in found["sessions"]] == [one, fork]
    assert [side["outcome"]["status"] for side in found["sessions"]] == ["completed"] * 2
    assert found["sessions"][1]["messages_since"] == ranch.show(fork)["message_count"] - 2
    text = ranch.cli("session", "compare", one, fork).out
    assert "both begin with the same 2 messages" in text


def test_compare_of_strangers_finds_nothing_in_common(ranch: Ranch) -> None:
    one, other = ranch.run("memory")["session_id"], ranch.run("fresh")["session_id"]

    assert ranch.data("session", "compare", one, other)["common_messages"] == 0
    assert "no messages in common" in ranch.cli("session", "compare", one, other).out


def test_expired_shows_as_expired_before_anybody_noted_it(ranch: Ranch) -> None:
    first = ranch.run("waiting")["session_id"]

    assert ranch.show(first)["status"] == "expired"
    assert [row["id"] for row in ranch.data("session", "list", "--status", "expired")] == [first]
    assert ranch.data("session", "list", "--status", "paused") == []

    second = ranch.run("waiting")["session_id"]
    assert second != first


def test_cleanup_clears_what_has_expired_and_nothing_else(ranch: Ranch) -> None:
    expired = ranch.run("waiting")["session_id"]
    kept = [ranch.run("memory")["session_id"], ranch.run("fresh")["session_id"]]
    journals = ranch.files()

    would = ranch.data("session", "cleanup", "--dry-run")
    assert (would["removed"], would["is_dry_run"]) == ([expired], True)
    assert len(ranch.data("session", "list")) == 3

    assert ranch.data("session", "cleanup")["removed"] == [expired]

    assert [row["id"] for row in ranch.data("session", "list")] == kept[::-1]
    assert ranch.show(expired)["removed_at"] is not None
    assert ranch.files() == journals
    assert ranch.data("session", "cleanup")["removed"] == []


def test_cleanup_of_everything_leaves_what_can_go_on(ranch: Ranch) -> None:
    ranch.run("waiting")
    ranch.run("fresh")
    memory = ranch.run("memory")["session_id"]

    removed = ranch.data("session", "cleanup", "--older-than", "0s")["removed"]

    assert len(removed) == 2
    assert [row["id"] for row in ranch.data("session", "list")] == [memory]
    assert ranch.data("session", "cleanup", "--older-than", "7d")["removed"] == []


def test_cleaned_up_session_is_gone_on_with_in_a_fork(ranch: Ranch) -> None:
    gone = ranch.run("fresh", "-p", "first")["session_id"]
    ranch.data("session", "cleanup", "--older-than", "0s")

    assert ranch.cli("session", "use", gone).code == 5
    assert ranch.cli("session", "rename", gone, "x").code == 5
    ranch.cli("session", "resume", gone, "-p", "second", "-q")

    newest = ranch.show("@last")
    assert newest["parent_session_id"] == gone
    assert [text for text in ranch.texts() if "answer" not in text] == ["first", "second"]


def test_resume_goes_on_in_the_session_with_all_it_had(ranch: Ranch) -> None:
    session = ranch.run("memory", "-p", "first")["session_id"]

    resumed = ranch.cli("session", "resume", session, "-p", "second", "-q")

    assert resumed.code == 0
    job = ranch.data("jobs", "show", "@last")
    assert job["session_id"] == session
    assert job["resumed_from"] is not None
    assert [text for text in ranch.texts(session) if "note" not in text][-2:] == [
        "answer 2 to first",
        "second",
    ]


def test_channels_never_share(ranch: Ranch) -> None:
    one = ranch.run("talker", "--channel", "one", "-p", "secret of one")["session_id"]
    two = ranch.run("talker", "--channel", "two")["session_id"]

    assert one != two
    assert "secret of one" not in ranch.texts(two)
    assert ranch.run("talker", "--channel", "one")["session_id"] == one
    assert ranch.show(one)["channel_id"] == "one"
    assert ranch.cli("run", "talker").code == 2
