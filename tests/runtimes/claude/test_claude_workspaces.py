"""The real `claude` in worktrees: its files are snapshotted turn by turn, forked at a message, and brought home."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from components import Components
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage, make_stage
from runtimes.claude.test_claude_versions import VERSIONS
from runtimes.claude.workspace_shop import FIRST, Shop, files_in, git
from soak import often

CLERK = "  - {name: clerk, working_directory: {root: shop, mode: worktree}}\n"
MOVED = "(Your working directory is "
BUNDLED = "bundled"


STAGES = (
    (BUNDLED, "sdk"),
    (VERSIONS[0], "cli"),
    (BUNDLED, "cli"),
    *((v, "cli") for v in VERSIONS[1:]),
)
"""The newest `claude` and the oldest of `make test`; all of them in `make soak`."""


@pytest.fixture(params=STAGES[: often(2, soak=len(STAGES))], ids="-".join)
def any_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place to run a version in."""
    version, runtime = request.param
    if version == BUNDLED:
        return make_stage(tmp_path, components.claude(), runtime)
    components.program("node")
    return make_stage(tmp_path, components.claude_version(version), runtime)


def write(path: str, content: str) -> Call:
    return Call("Write", {"file_path": path, "content": content})


def bash(command: str) -> Call:
    return Call("Bash", {"command": command})


def said(asked: Asked, *words: str) -> list[str]:
    """Which of `words` the conversation holds."""
    return [word for word in words if any(word in text for text in asked.texts)]


def copies(asked: Asked, text: str) -> int:
    """How often the request holds `text`, in whatever was said."""
    return sum(one.count(text) for one in asked.texts)


@pytest.mark.either_runtime
def test_turns_that_change_files_are_snapshotted_shown_resumed_and_merged(
    stage: ClaudeStage,
) -> None:
    answers = (
        Say(text="I look", calls=(Call("Read", {"file_path": "price"}), bash("true"))),
        Say(
            text="I edit",
            calls=(
                Call("Edit", {"file_path": "price", "old_string": "100", "new_string": "120"}),
                write("src/new.py", "x = 1\n"),
            ),
        ),
        Say(
            text="I run",
            calls=(bash("rm sign; printf 'a\\000\\377' > blob; chmod +x src/till.py"),),
        ),
        Say(text="I look again", calls=(Call("Read", {"file_path": "src/new.py"}),)),
        Say(text="done"),
        Say(text="more", calls=(bash("pwd; echo 130 > price"),)),
        Say(text="done again"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(stage, api, CLERK)
        job = herd.run("run", "clerk", "-p", "raise the price")
        place = herd.directory(job["id"])
        first = files_in(place)
        whole = herd.data("jobs", "diff", job["id"])
        turns = [herd.data("jobs", "diff", job["id"], "--turn", str(n)) for n in range(1, 6)]
        before = files_in(herd.shop)
        again = herd.run("jobs", "resume", job["id"], "-p", "a bit more")
        merged = herd.nightherd("jobs", "merge", again["id"])

    (began,) = herd.lines(job["id"], "init")
    assert Path(began["extra"]["working_directory"]) == place
    assert place.parent == herd.root / ".nightherd-workspaces"
    assert herd.snapshots(job["id"]) == [("start", None), ("turn", 2), ("turn", 3)]
    assert [[file["path"] for file in turn["files"]] for turn in turns] == [
        *([], ["price", "src/new.py"], ["blob", "sign", "src/till.py"], [], [])
    ]
    assert [file["path"] for file in whole["files"]] == [
        *("blob", "price", "sign", "src/new.py", "src/till.py")
    ]
    assert first == {
        "price": b"120\n",
        "src/new.py": b"x = 1\n",
        "src/till.py*": b"coins = 3\n",
        "blob": b"a\0\xff",
    }
    assert before == {name: text.encode() for name, text in FIRST.items()}, (
        "not before it is merged"
    )
    # The job that resumes it is there again, and is told nothing of another directory.
    assert herd.directory(again["id"]) == place
    assert again["id"] != job["id"]
    assert herd.snapshots(again["id"]) == [("start", None), ("turn", 1)]
    assert copies(api.asked[-1], MOVED) == 0
    assert said(api.asked[-1], "raise the price", "a bit more") == ["raise the price", "a bit more"]
    assert merged.returncode == 0, merged.stderr
    assert files_in(herd.shop) == {**first, "price": b"130\n"}
    assert git(herd.shop, "status", "--porcelain") == ""


MESS = "printf 'a\\000\\377' > blob; ln -s price link; chmod +x sign; rm src/till.py; echo new > 'a\nb'"


@pytest.mark.timeout(240)
def test_fork_at_a_message_has_the_files_of_that_message_and_a_directory_of_its_own(
    any_stage: ClaudeStage,
) -> None:
    answers = (
        Say(text="I write", calls=(write("price2", "200\n"),)),
        Say(text="I mess", calls=(bash(MESS),)),
        Say(text="done"),
        Say(text="first way", calls=(bash("pwd; echo one >> price2; echo one > mark"),)),
        Say(text="first done"),
        Say(text="second way", calls=(bash("test ! -e mark && echo two > mark"),)),
        Say(text="second done"),
        Say(text="and on"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(any_stage, api, CLERK)
        job = herd.run("run", "clerk", "-p", "ORIGINAL")
        session, place = job["session_id"], herd.directory(job["id"])
        whole = files_in(place)
        words = ("session", "fork", session, "--run", "-p", "OTHERWISE", "--at-message")
        early = herd.run(*words, "3")
        late = herd.run(*words, "5")
        on = herd.run("session", "resume", early["session_id"], "-p", "GO ON")
        compared = herd.data("session", "compare", early["session_id"], late["session_id"])
        shown = herd.nightherd("session", "compare", session, late["session_id"], "--diff")

    began = {**{name: text.encode() for name, text in FIRST.items()}, "price2": b"200\n"}
    assert herd.files_at(herd.lines(early["id"], "snapshot")[0]) == began
    assert files_in(herd.directory(early["id"])) == {
        **began, "price2": b"200\none\n", "mark": b"one\n",
    }  # fmt: skip
    assert whole["blob"] == b"a\0\xff"
    assert whole["link@"] == b"price"
    assert files_in(herd.directory(late["id"])) == {**whole, "mark": b"two\n"}
    assert files_in(place) == whole, "the original is as it was"
    places = {place, herd.directory(early["id"]), herd.directory(late["id"])}
    assert len(places) == 3

    parts = ("ORIGINAL", "I write", "I mess", "done", "OTHERWISE", "first way")
    assert said(api.asked[3], *parts) == ["ORIGINAL", "I write", "OTHERWISE"]
    assert said(api.asked[5], *parts) == ["ORIGINAL", "I write", "I mess", "OTHERWISE"]
    for asked, fork in ((api.asked[4], early), (api.asked[6], late), (api.asked[7], early)):
        assert copies(asked, f"{MOVED}{herd.directory(fork['id'])} now. What was in {place}") == 1
        assert copies(asked, MOVED) == 1
    assert herd.directory(on["id"]) == herd.directory(early["id"])
    for one in (early, late, on):
        assert herd.by_hand(one["id"]) == []
        (init,) = herd.lines(one["id"], "init")
        assert Path(init["extra"]["working_directory"]) == herd.directory(one["id"])
    changed = {file["path"]: file["status"] for file in compared["files"]}
    assert set(changed) == {"price2", "mark", "blob", "link", "sign", "src/till.py", "a\nb"}
    assert "+two" in shown.stdout


def persistent(name: str, **terms: str) -> str:
    """An agent with one session for all its jobs."""
    given = ", ".join(f"{key}: {value}" for key, value in terms.items())
    return (
        f"  - {{name: {name}, session: {{mode: persistent}}, "
        f"working_directory: {{root: shop, mode: worktree, {given}}}}}\n"
    )


@pytest.mark.either_runtime
def test_session_keeps_its_conversation_and_its_workspace(stage: ClaudeStage) -> None:
    answers = (
        Say(text="first", calls=(write("note", "one\n"),)),
        Say(text="first done"),
        Say(text="second", calls=(bash("echo two >> note"),)),
        Say(text="second done"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(stage, api, persistent("clerk", scope="session"))
        first = herd.run("run", "clerk", "-p", "ONE")
        second = herd.run("run", "clerk", "-p", "TWO")
        diff = herd.data("jobs", "diff", second["id"])

    assert first["session_id"] == second["session_id"]
    assert first["runtime_session_id"] == second["runtime_session_id"]
    assert herd.directory(first["id"]) == herd.directory(second["id"])
    assert files_in(herd.directory(second["id"]))["note"] == b"one\ntwo\n"
    assert [file["path"] for file in diff["files"]] == ["note"]
    assert said(api.asked[2], "ONE", "first done", "TWO") == ["ONE", "first done", "TWO"]
    assert copies(api.asked[3], MOVED) == 0
    assert herd.by_hand(second["id"]) == []


@pytest.mark.timeout(240)
def test_session_goes_on_in_a_fresh_workspace_for_each_job(any_stage: ClaudeStage) -> None:
    answers = (
        Say(text="first", calls=(write("note", "one\n"),)),
        Say(text="first done"),
        Say(text="second", calls=(bash("pwd; test ! -e note && echo two > note"),)),
        Say(text="second done"),
        Say(text="third done"),
    )
    with MessagesApi(*answers) as api:
        # Older versions of Claude look for a session only in the worktrees that are left of a repository.
        herd = Shop(any_stage, api, persistent("clerk", scope="job", keep="never"))
        first = herd.run("run", "clerk", "-p", "ONE")
        second = herd.run("run", "clerk", "-p", "TWO")
        third = herd.run("run", "clerk", "-p", "THREE")
        diffs = [herd.nightherd("jobs", "diff", job["id"]).stdout for job in (first, second)]

    jobs = (first, second, third)
    assert len({herd.directory(job["id"]) for job in jobs}) == 3
    assert len({job["runtime_session_id"] for job in jobs}) == 1
    assert not any(herd.directory(job["id"]).exists() for job in jobs)
    assert ["+one" in diffs[0], "+two" in diffs[1]] == [True, True]
    words = ("ONE", "first done", "TWO", "second done", "THREE")
    assert said(api.asked[4], *words) == list(words)
    for asked, (before, after) in ((api.asked[3], jobs[:2]), (api.asked[4], jobs[1:])):
        told = f"{MOVED}{herd.directory(after['id'])} now. It is new: what you changed in "
        assert copies(asked, f"{told}{herd.directory(before['id'])} is there only if") == 1
    assert [copies(asked, MOVED) for asked in api.asked] == [0, 0, 1, 1, 2]
    assert not any(herd.by_hand(job["id"]) for job in jobs)
