"""Forking at a place: what a fork begins with, what it leaves alone, and which places there are."""

from __future__ import annotations

import pytest

from cli.sessions.ranch import Ranch

# Message by message, the memory agent's first job: asked, answer with a call, its result, answer.
LAST = 4


@pytest.fixture
def session(ranch: Ranch) -> str:
    """A session of one job."""
    found: str = ranch.run("memory", "-p", "first")["session_id"]
    assert ranch.show(found)["message_count"] == LAST
    return found


@pytest.mark.parametrize("at", range(LAST + 1))
def test_fork_keeps_the_messages_up_to_the_place_and_no_more(
    ranch: Ranch, session: str, at: int
) -> None:
    before, whole = ranch.files(), ranch.texts(session)

    fork = ranch.data("session", "fork", session, "--at-message", str(at))

    assert (fork["status"], fork["parent_session_id"]) == ("created", session)
    assert (fork["base_messages"], fork["message_count"]) == (at, at)
    assert ranch.texts(fork["id"]) == whole[:at]
    assert ranch.files() == before
    assert ranch.texts(session) == whole


def test_fork_without_a_place_is_at_the_end(ranch: Ranch, session: str) -> None:
    fork = ranch.data("session", "fork", session)

    assert fork["base_messages"] == LAST
    assert fork["token_estimate"] == ranch.show(session)["token_estimate"]


@pytest.mark.parametrize("at", [LAST + 1, 99, -1])
def test_fork_past_the_end_is_refused_with_the_range(ranch: Ranch, session: str, at: int) -> None:
    refused = ranch.cli("session", "fork", session, "--at-message", str(at))

    assert refused.code == 2
    assert f"there is no message {at}: the session has 4 messages" in refused.err
    assert "0 (its beginning) to 4" in refused.err
    assert len(ranch.data("session", "list")) == 1


def test_fork_at_an_event_keeps_what_had_been_said_by_then(ranch: Ranch, session: str) -> None:
    history = ranch.show(session, "--history")["history"]

    for message in history:
        fork = ranch.data("session", "fork", session, "--at-seq", str(message["seq"]))
        assert fork["base_messages"] == message["message"]

    middle = ranch.data("session", "fork", session, "--at-seq", str(history[1]["seq"] - 1))
    assert middle["base_messages"] == 1
    assert ranch.cli("session", "fork", session, "--at-seq", "9999").code == 2


def test_fork_at_a_checkpoint_that_is_not_there_is_refused(ranch: Ranch, session: str) -> None:
    assert ranch.cli("session", "fork", session, "--at-checkpoint", "9999").code == 2


def test_places_exclude_each_other(ranch: Ranch, session: str) -> None:
    assert ranch.cli("session", "fork", session, "--at-message", "1", "--at-seq", "1").code == 2


def test_prompt_without_run_makes_no_sense(ranch: Ranch, session: str) -> None:
    assert ranch.cli("session", "fork", session, "-p", "hello").code == 2
    assert ranch.cli("session", "fork", session, "--input", "herd=goats").code == 2


@pytest.mark.parametrize("noun", ["session", "jobs"])
def test_fork_takes_inputs_for_its_prompt_and_its_script(ranch: Ranch, noun: str) -> None:
    (ranch.root / "nightherd.yaml").write_text("""\
agents:
  - name: counter
    runtime: scripted
    default_prompt: count the ${inputs.herd}
    script: [{say: ready}, {say: "counted ${inputs.herd}"}]
""")
    first = ranch.run("counter", "--input", "herd=sheep")
    named = first["session_id"] if noun == "session" else first["job_id"]
    is_run = ("--run",) if noun == "session" else ()

    forked = ranch.data(
        *(noun, "fork", named, "--at-message", "2", *is_run),
        *("-p", "now the ${inputs.herd}", "--input", "herd=goats"),
    )

    assert ranch.data("jobs", "show", forked["job_id"])["inputs"] == {"herd": "goats"}
    assert ranch.texts() == ["count the sheep", "ready", "now the goats", "counted goats"]


def test_fork_before_the_first_message_names_the_job_it_was_forked_from(
    ranch: Ranch, session: str
) -> None:
    ranch.cli("session", "fork", session, "--at-message", "0", "--run", "-p", "otherwise", "--json")

    job = ranch.data("jobs", "show", "@last")
    assert job["forked_from"] == ranch.show(session)["jobs"][0]
    assert ranch.texts(job["session_id"])[0] == "otherwise"


def test_fork_that_says_run_really_runs(ranch: Ranch, session: str) -> None:
    journals = ranch.files()

    result = ranch.cli(
        "session", "fork", session, "--at-message", "2", "--run", "-p", "otherwise", "--json"
    )

    job = ranch.data("jobs", "show", "@last")
    assert result.data["job_id"] == job["id"]
    assert job["trigger_type"] == "fork"
    assert job["forked_from"] == ranch.show(session)["jobs"][0]
    texts = ranch.texts(job["session_id"])
    assert texts[:3] == ["first", "answer 1 to first", "otherwise"]
    # The call that was cut off from its result counts as made: the script goes on with the next turn.
    assert texts[3] == "answer 2 to otherwise"
    assert {name: data for name, data in ranch.files().items() if name in journals} == journals
    assert ranch.show(session)["job_count"] == 1


def test_call_that_was_cut_off_is_shown_as_unknown(ranch: Ranch, session: str) -> None:
    fork = ranch.data("session", "fork", session, "--at-message", "2")["id"]

    shown = ranch.cli("session", "show", fork, "--history").out

    assert "outcome unknown" in shown
    assert "outcome unknown" not in ranch.cli("session", "show", session, "--history").out


def test_fork_of_a_fork_begins_with_both(ranch: Ranch, session: str) -> None:
    ranch.cli("session", "fork", session, "--at-message", "1", "--run", "-p", "second", "-q")
    child = ranch.show("@last")
    whole = ranch.texts(child["id"])

    grandchild = ranch.data("session", "fork", child["id"], "--at-message", "3")
    in_the_roots_part = ranch.data("session", "fork", child["id"], "--at-message", "1")

    assert ranch.texts(grandchild["id"]) == whole[:3]
    assert ranch.texts(in_the_roots_part["id"]) == ["first"]
    ranch.cli("session", "fork", grandchild["id"], "--run", "-p", "third", "-q")
    assert ranch.texts()[:4] == [*whole[:3], "third"]


def test_expired_session_is_forked_like_any_other(ranch: Ranch) -> None:
    expired = ranch.run("waiting")["session_id"]
    assert ranch.show(expired)["status"] == "expired"

    fork = ranch.data("session", "fork", expired, "--at-message", "1")

    assert ranch.texts(fork["id"]) == ["go"]
    ranch.cli("session", "fork", expired, "--run", "-p", "once more", "-q")
    assert "once more" in ranch.texts()
    assert ranch.show(expired)["status"] == "expired"


def test_fork_is_never_joined_unasked(ranch: Ranch, session: str) -> None:
    ranch.data("session", "fork", session)

    assert ranch.run("memory", "-p", "second")["session_id"] == session


def test_fork_in_a_directory_that_is_gone_says_so(ranch: Ranch) -> None:
    (ranch.root / "nightherd.yaml").write_text("""\
agents:
  - name: away
    runtime: scripted
    default_prompt: go
    working_directory: pasture
    session: {mode: persistent}
    script: [{say: one}, {say: two}]
""")
    (ranch.root / "pasture").mkdir()
    session = ranch.run("away")["session_id"]
    (ranch.root / "pasture").rmdir()

    result = ranch.cli("session", "fork", session, "--run", "-p", "go", "--json")

    assert result.code == 78
    assert "pasture" in result.out
    assert ranch.texts(session)[:2] == ["go", "one"]
    assert ranch.data("session", "fork", session)["base_messages"] == 3
