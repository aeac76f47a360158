"""The real `claude` in worktrees: its files are snapshotted turn by turn, forked at a message, and brought home."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage, make_stage
from runtimes.claude.test_claude_versions import VERSIONS
from runtimes.claude.workspace_shop import FIRST, LocatedModel, Shop, files_in, git
from runtimes.stage import until
from soak import often

CLERK = "  - {name: clerk, working_directory: {root: shop, mode: worktree}}\n"
MOVED = "(Your working directory is "
BUNDLED = "bundled"


NEWEST, OLD = (BUNDLED, "sdk"), (VERSIONS[0], "cli")
ALL = (NEWEST, OLD, (BUNDLED, "cli"), *((version, "cli") for version in VERSIONS[1:]))
"""Versions of `claude`, and how they are talked to."""
IN_SOAK = often(0, soak=1) == 1


@pytest.fixture(params=ALL if IN_SOAK else (NEWEST, OLD), ids="-".join)
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
        cleaned = herd.nightherd("workspace", "clean", job["id"], "--force")
        is_gone = not place.exists()
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
    # The job that resumes it is there again, with the same files, and is told nothing of another directory.
    assert is_gone, cleaned.stderr
    assert herd.files_at(herd.lines(again["id"], "snapshot")[0]) == first
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


@pytest.mark.parametrize("any_stage", ALL if IN_SOAK else [OLD], indirect=True, ids="-".join)
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


SLOW_GIT = """\
#!/bin/sh
case "$GIT_DIR" in
  *.nightherd/snapshots/*)
    before=$(ls {root} | grep -c ^began)
    sleep 0.3
    [ "$before" = "$(ls {root} | grep -c ^began)" ] || touch {root}/too-early ;;
esac
exec {git} "$@"
"""
"""Notices when a tool begins while it works on a snapshot."""


def begin(name: str) -> Call:
    return bash(f"touch ../../began-{name}; echo {name} > {name}")


@pytest.mark.either_runtime
def test_no_tool_begins_before_the_turn_before_it_is_snapshotted(
    stage: ClaudeStage, components: Components
) -> None:
    git_here = components.program("git")
    answers = (
        Say(text="one", calls=(begin("one"),)),
        Say(text="two", calls=(begin("two-a"), begin("two-b"))),
        Say(text="three", calls=(begin("three"),)),
        Say(text="done"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(stage, api, CLERK)
        slow = stage.programs / "git"
        slow.write_text(SLOW_GIT.format(root=stage.root, git=git_here))
        slow.chmod(0o755)
        job = herd.run("run", "clerk", "-p", "go")

    assert {path.name for path in stage.root.glob("began*")} == {
        *("began-one", "began-two-a", "began-two-b", "began-three")
    }
    assert not (stage.root / "too-early").exists()
    new = [
        sorted(herd.files_at(snapshot).keys() - FIRST.keys())
        for snapshot in herd.lines(job["id"], "snapshot")
    ]
    assert new == [
        [],
        ["one"],
        ["one", "two-a", "two-b"],
        ["one", "three", "two-a", "two-b"],
    ]


HOOKED = """\
  - name: clerk
    working_directory: {root: shop, mode: worktree}
    hooks: {after_run: [{type: shell, command: "./notify.sh"}]}
"""


@pytest.mark.either_runtime
def test_hook_runs_in_the_workspace_and_its_program_stays_as_it_is(stage: ClaudeStage) -> None:
    evil = "#!/bin/sh\ntouch ../../stolen\n"
    tries = (
        Call("Read", {"file_path": "{here}/notify.sh"}),
        write("{here}/notify.sh", evil),
        write("notify.sh", evil),
        Call("Edit", {"file_path": "notify.sh", "old_string": "pwd", "new_string": "id"}),
        write("price", "200\n"),
    )
    with LocatedModel(*(Say(calls=(call,)) for call in tries), Say(text="done")) as api:
        herd = Shop(stage, api, HOOKED)
        program = herd.shop / "notify.sh"
        program.write_text("#!/bin/sh\npwd > ../../notified\n")
        program.chmod(0o755)
        git(herd.shop, "add", "-A")
        git(herd.shop, "commit", "-qm", "hook")
        job = herd.run("run", "clerk", "-p", "go")

    results = [line for line in herd.journal_of(job["id"]) if line["type"] == "tool_result"]
    assert [line["success"] for line in results] == [True, False, False, False, True]
    assert all("denied" in line["error"] for line in results[1:4]), results[1:4]
    assert (stage.root / "notified").read_text() == f"{herd.directory(job['id'])}\n"
    assert not (stage.root / "stolen").exists()


def by_hand(herd: Shop, directory: str, *words: str) -> str:
    """What somebody types in `claude` in that directory, and what they are answered."""
    done = subprocess.run(
        ["claude", *words],
        cwd=directory,
        env=herd.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.either_runtime
@pytest.mark.parametrize(
    "agent", [persistent("clerk", scope="session"), CLERK], ids=["kept", "over"]
)
def test_session_is_taken_over_in_its_workspace_and_goes_on_in_it(
    stage: ClaudeStage, agent: str
) -> None:
    answers = (
        Say(text="I begin", calls=(bash("echo one > one"),)),
        Say(text="done"),
        Say(text="typed", calls=(bash("pwd; echo two > two"),)),
        Say(text="typed done"),
        Say(text="I go on", calls=(bash("cat one two > three"),)),
        Say(text="all done"),
    )
    with MessagesApi(*answers) as api:
        herd = Shop(stage, api, agent)
        job = herd.run("run", "clerk", "-p", "ORIGINAL")
        taken = herd.data("session", "takeover", job["session_id"])
        words = (*taken["command"][1:], "-p", "BY HAND", "--dangerously-skip-permissions")
        assert by_hand(herd, taken["directory"], *words) == "typed done"
        recorded = herd.data("session", "takeover", job["session_id"])["recorded_job_id"]
        typed = herd.data("jobs", "show", recorded)
        on = herd.run("session", "resume", typed["session_id"], "-p", "GO ON")
        diff = herd.data("jobs", "diff", on["id"])

    place = herd.directory(job["id"])
    assert taken["directory"] == str(place)
    assert (typed["status"], typed["workspace_id"]) == ("completed", job["workspace_id"])
    parts = ("ORIGINAL", "BY HAND", "typed done", "GO ON")
    assert said(api.asked[4], *parts) == list(parts)
    assert herd.directory(on["id"]) == place
    assert copies(api.asked[4], MOVED) == 0
    assert files_in(place)["three"] == b"one\ntwo\n"
    assert "two" in herd.files_at(herd.lines(on["id"], "snapshot")[0])
    assert [file["path"] for file in diff["files"]] == ["three"]


ASKING = """\
  - name: clerk
    working_directory: {root: shop, mode: worktree}
    approvals: [{tool: Write}]
"""


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_approved_call_runs_once_in_the_workspace_although_its_worker_is_killed(
    stage: ClaudeStage,
) -> None:
    answers = (
        Say(text="I begin", calls=(bash("echo 150 > price"), Call("Read", {"file_path": "price"}))),
        Say(text="I ask", calls=(write("{here}/price", "200\n"),)),
        Say(text="never heard", hold=threading.Event()),
        Say(text="done"),
    )
    with LocatedModel(*answers) as api:
        herd = Shop(stage, api, ASKING)
        herd.nightherd("run", "clerk", "-p", "raise the price")
        waiting = herd.job()
        place = herd.directory(waiting["id"])
        shown = herd.nightherd("inbox", "show", "@last").stdout
        before = files_in(place)
        assert herd.nightherd("inbox", "approve", "@last").returncode == 0
        with herd.started("worker", "--until-idle") as worker:
            assert api.wait_until_asked(3, PATIENCE_S)
            worker.kill()
        anyio.run(until, lambda: stage.processes() == {})
        herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert (waiting["status"], waiting["suspend_reason"]) == ("suspended", "approval")
    assert ["-150" in shown, "+200" in shown, "-100" in shown] == [True, True, False], shown
    assert str(place / "price") in shown
    assert before["price"] == b"150\n"
    assert (job["status"], job["summary"]) == ("completed", "done")
    assert files_in(place)["price"] == b"200\n"
    assert files_in(herd.shop)["price"] == b"100\n"
    assert {line["extra"]["directory"] for line in herd.lines(job["id"], "workspace")} == {
        str(place)
    }
    results = [line for line in herd.journal_of(job["id"]) if line["type"] == "tool_result"]
    assert [line["success"] for line in results] == [True, True, True]
    assert [line["extra"]["status"] for line in herd.lines(job["id"], "review")] == [
        *("pending", "approved")
    ]


class BackgroundModel(MessagesApi):
    """A model whose second answer comes when what it started in the background has written its file."""

    def __init__(self, root: Path, *answers: Say) -> None:
        super().__init__(*answers)
        self._root = root

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The answer of the script, in time."""
        answer, name = super().take(asked)
        if len(self.asked) == 2:
            (self._root / "go").touch()
            anyio.run(until, (self._root / "went").exists)
        return answer, name


@pytest.mark.either_runtime
def test_what_is_written_in_the_background_is_in_the_snapshot_of_the_turn_that_sees_it(
    stage: ClaudeStage,
) -> None:
    late = "until [ -e ../../go ]; do sleep 0.05; done; echo late > late; touch ../../went"
    answers = (
        Say(calls=(Call("Bash", {"command": late, "run_in_background": True}),)),
        Say(calls=(Call("Read", {"file_path": "late"}),)),
        Say(text="done"),
    )
    with BackgroundModel(stage.root, *answers) as api:
        herd = Shop(stage, api, CLERK)
        job = herd.run("run", "clerk", "-p", "go")

    # The snapshot of the first turn may have come after it.
    assert herd.snapshots(job["id"])[-1] in (("turn", 1), ("turn", 2))
    assert "late" in herd.files_at(herd.lines(job["id"], "snapshot")[-1])
