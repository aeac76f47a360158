"""The follower: catches up, coalesces, survives what files do, and leaves everything else alone."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror.mirror_world import World, answer, end, ids
from nightherd.errors import RefusedError, StateFileError
from nightherd.files.atomic import TEMP_NAME, FileCalls
from nightherd.mirror.fleet_state import FleetState, read_fleet_state
from nightherd.mirror.job_file import write_output_log
from nightherd.mirror.position import MirrorLock
from nightherd.model.jobs.job import JobTexts
from nightherd.model.sessions.session import Session, SessionMode
from nightherd.testing.state_values import job_id, settle, start, submit


class Renames:
    """Counts renames by target, and refuses those that `refuses` names."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.refuses: set[str] = set()

    def __call__(self, source: str, target: str) -> None:
        name = Path(target).name
        if name in self.refuses:
            raise OSError(errno.ENOSPC, "full", target)
        self.counts[name] = self.counts.get(name, 0) + 1
        Path(source).replace(target)


@pytest.fixture
def renames() -> Renames:
    return Renames()


def test_many_changes_of_one_thing_are_one_write_of_each_file(
    world: World, renames: Renames
) -> None:
    world.apply(submit(1), start(1), settle(1))

    world.catch_up(calls=FileCalls(rename=renames))

    assert renames.counts == {
        f"{job_id(1)}.yaml": 1,
        "sess-00000001.json": 1,
        "grazer.json": 1,
        "state.yaml": 1,
    }


def test_nothing_is_synced(world: World) -> None:
    synced: list[int] = []
    world.apply(submit(1), start(1))

    world.catch_up(calls=FileCalls(fsync=synced.append))

    assert synced == []


def test_nothing_is_written_while_nothing_happens(world: World) -> None:
    world.apply(submit(1), start(1), settle(1), submit(2), start(2))
    world.open_record(2, session="s-2")
    world.catch_up()
    before = {path: path.stat().st_ino for path in world.root.rglob("*")}

    for _ in range(3):
        world.catch_up()

    assert {path: path.stat().st_ino for path in world.root.rglob("*")} == before


def test_only_new_changes_are_read(world: World) -> None:
    world.apply(submit(1), start(1))
    world.catch_up()
    world.feed.read_from.clear()

    world.apply(settle(1))
    world.catch_up()

    assert min(world.feed.read_from) == 1


def test_an_old_jobs_prompt_is_written_again_without_reading_old_changes(world: World) -> None:
    world.apply(submit(1), submit(2), submit(3))
    world.catch_up()
    world.feed.read_from.clear()

    world.apply(start(2))
    world.catch_up()

    assert world.job(2)["prompt"] == "Graze."
    assert min(world.feed.read_from) == 2


def test_a_job_touched_after_its_end_keeps_its_prompt_and_place(world: World) -> None:
    world.apply(submit(1), start(1), settle(1), submit(2), start(2), settle(2))
    world.catch_up()
    before = world.files()
    session = world.rows.get(Session, "sess-00000001")
    assert session is not None

    world.put(session, world.find_job(1))
    world.catch_up()

    assert world.files() == before


def test_texts_that_change_alone_are_written_with_their_job(world: World) -> None:
    world.apply(submit(1), start(1))
    world.catch_up()

    world.put(JobTexts(job_id=job_id(1), prompt="Graze more."))
    world.catch_up()

    assert world.job(1)["prompt"] == "Graze more."
    assert world.job(1)["status"] == "running"


def test_a_ledger_made_anew_is_followed_anew(world: World) -> None:
    world.apply(submit(1), start(1), settle(1))
    world.catch_up(agents={"dog": None})
    other = World(world.root.parent / "other")
    other.apply(submit(2))
    world.feed.entries, world.rows = other.feed.entries, other.rows

    standing = world.follower().catch_up()

    assert standing.notices == ("the ledger ends before change 3; the mirror is rebuilt",)
    assert world.job(2)["status"] == "pending"
    assert list(world.state()["agents"]) == ["dog", "grazer"]


def test_memory_holds_only_what_goes_on(world: World) -> None:
    for number in range(1, 30):
        world.apply(submit(number), start(number), settle(number))
    world.catch_up()
    after_30 = (world.root / "mirror.json").stat().st_size

    for number in range(30, 130):
        world.apply(submit(number), start(number), settle(number))
    world.catch_up()

    assert (world.root / "mirror.json").stat().st_size <= after_30 + 10


def test_a_file_that_cannot_be_written_is_named_and_holds_up_nothing(
    world: World, renames: Renames
) -> None:
    renames.refuses.add(f"{job_id(1)}.yaml")
    world.apply(submit(1), submit(2))
    follower = world.follower(calls=FileCalls(rename=renames))

    standing = follower.catch_up()

    assert list(standing.unwritten) == [str(world.root / "jobs" / f"{job_id(1)}.yaml")]
    assert "No space left" in next(iter(standing.unwritten.values()))
    assert world.job(2)["status"] == "pending"
    assert list(world.state()["agents"]) == ["grazer"]
    assert not (world.root / "mirror.json").exists()

    renames.refuses.clear()
    assert follower.catch_up().unwritten == {}
    assert world.job(1)["status"] == "pending"
    assert (world.root / "mirror.json").exists()


def test_what_was_not_written_is_written_by_the_next_process(
    world: World, renames: Renames
) -> None:
    renames.refuses.add("grazer.json")
    world.apply(submit(1), start(1), settle(1))
    world.follower(calls=FileCalls(rename=renames)).catch_up()

    world.catch_up()

    assert world.session("grazer")["job_count"] == 1


def test_a_damaged_ledger_is_reported_and_nothing_is_lost(world: World) -> None:
    follower = world.follower()
    world.apply(submit(1))
    world.feed.damage = StateFileError("line 7 is damaged")

    standing = follower.catch_up()
    assert standing.unwritten == {str(world.root): "line 7 is damaged"}

    world.feed.damage = None
    assert follower.catch_up().unwritten == {}
    assert world.job(1)["status"] == "pending"


def test_anything_unexpected_is_reported_and_does_not_escape(world: World) -> None:
    follower = world.follower()
    world.feed.damage = ZeroDivisionError("oops")

    assert follower.catch_up().unwritten == {str(world.root): "ZeroDivisionError('oops')"}


@pytest.mark.parametrize(
    "row",
    [
        ("jobs", {"id": "../../evil", "agent": "a", "trigger_type": "manual", "status": "pending"}),
        ("jobs", {"id": 7}),
        ("sessions", {}),
        ("jobs", "text"),
    ],
)
def test_a_row_that_makes_no_sense_is_said_and_left_out(world: World, row: Any) -> None:
    world.feed.add([row])
    world.apply(submit(1))

    standing = world.follower().catch_up()

    assert len(standing.notices) == 1
    assert "left out" in standing.notices[0]
    assert world.job(1)["status"] == "pending"
    assert not list(world.root.parent.rglob("evil*"))


def test_rows_of_tables_it_does_not_show_are_ignored(world: World) -> None:
    world.feed.add([("wolves", {"id": 1})])

    world.catch_up()

    assert world.state() == {"fleet": {}, "agents": {}}


@pytest.mark.parametrize("text", ["a: [", "agents: 7\n", "agents:\n  x: {status: lost}\n", "\x00"])
def test_a_state_file_edited_beyond_reading_is_kept_aside_and_written_anew(
    world: World, text: str
) -> None:
    world.apply(submit(1))
    world.catch_up()
    (world.root / "state.yaml").write_text(text)
    with pytest.raises(StateFileError) as caught:
        read_fleet_state(world.root / "state.yaml")
    assert caught.value.path == str(world.root / "state.yaml")

    standing = world.follower().catch_up()

    (aside,) = world.root.glob("state.yaml.corrupt-*")
    assert aside.read_text() == text
    assert len(standing.notices) == 1
    assert aside.name in standing.notices[0]
    assert list(world.state()["agents"]) == ["grazer"]


def test_edits_are_never_obeyed(world: World) -> None:
    world.apply(submit(1), start(1))
    world.catch_up()
    edited = (world.root / "state.yaml").read_text().replace("running", "idle")
    (world.root / "state.yaml").write_text(edited)

    world.catch_up()

    assert world.agent()["status"] == "running"
    assert not list(world.root.glob("*.corrupt-*"))


def test_a_deleted_state_file_is_back_at_the_next_look(world: World) -> None:
    world.apply(submit(1))
    world.catch_up()
    (world.root / "state.yaml").unlink()

    world.catch_up()

    assert list(world.state()["agents"]) == ["grazer"]


@pytest.mark.parametrize("text", ["", "{", '{"v": 99}', "[]", "\xff"])
def test_a_memory_that_cannot_be_used_is_kept_aside_and_made_again(world: World, text: str) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.catch_up()
    before = world.files()
    (world.root / "mirror.json").write_text(text)

    standing = world.follower().catch_up()

    assert len(standing.notices) == 1
    assert standing.unwritten == {}
    assert world.files() == before
    assert len(list(world.root.glob("mirror.json.corrupt-*"))) == 1


def test_a_missing_or_empty_state_file_reads_as_an_empty_state(tmp_path: Path) -> None:
    assert read_fleet_state(tmp_path / "state.yaml") == FleetState()

    (tmp_path / "state.yaml").write_text("")
    assert read_fleet_state(tmp_path / "state.yaml") == FleetState()

    (tmp_path / "state.yaml").write_text("fleet: {}\nagents:\n  a: {}\n")
    assert read_fleet_state(tmp_path / "state.yaml").agents["a"].status == "idle"


def test_a_state_file_of_another_program_reads_too(tmp_path: Path) -> None:
    (tmp_path / "state.yaml").write_text(
        "fleet:\n  started_at: 2025-01-19T10:00:00Z\n"
        "agents:\n  coder:\n    status: running\n    current_job: job-2024-01-19-def456\n"
        "    schedules:\n      daily:\n        status: disabled\n        last_run_at: 2025-01-19T09:00:00Z\n"
        "session_wakes: {}\n"
    )

    state = read_fleet_state(tmp_path / "state.yaml")

    assert state.fleet.started_at == "2025-01-19T10:00:00Z"
    assert state.agents["coder"].current_job == "job-2024-01-19-def456"
    assert state.agents["coder"].schedules["daily"].last_run_at == "2025-01-19T09:00:00Z"


def test_nothing_is_made_where_there_is_no_state_directory(tmp_path: Path) -> None:
    world = World(tmp_path / "there")
    world.root = tmp_path / "gone"

    standing = world.follower().catch_up()

    assert not standing.is_ours
    assert list(standing.unwritten) == [str(tmp_path / "gone")]
    assert not (tmp_path / "gone").exists()


def test_while_another_process_keeps_the_mirror_nothing_is_written(world: World) -> None:
    other = MirrorLock(world.root / "mirror.lock")
    assert other.acquire()
    world.apply(submit(1))
    follower = world.follower()

    assert not follower.catch_up().is_ours
    assert not (world.root / "state.yaml").exists()
    with pytest.raises(RefusedError):
        follower.rebuild()

    other.release()
    assert follower.catch_up().is_ours
    assert world.job(1)["status"] == "pending"


def test_a_follower_that_gets_its_turn_back_goes_on_from_what_the_other_did(world: World) -> None:
    first, second = world.follower(), world.follower()
    world.apply(submit(1), submit(2, agent="dog"))
    first.catch_up()
    world.apply(start(2))
    second.catch_up()
    world.apply(start(1))

    first.catch_up()

    assert world.agent("dog")["status"] == "running"
    assert world.agent("grazer")["status"] == "running"


def test_rebuilding_gives_the_same_files_and_touches_no_others(world: World) -> None:
    world.apply(submit(1, mode=SessionMode.PERSISTENT), start(1))
    world.open_record(1, session="s-1")
    world.say(1, answer("Done.", message=2), end())
    world.apply(settle(1), submit(2), start(2))
    world.catch_up(agents={"dog": None})
    write_output_log(world.root, job_id(1), world.journals)
    before = world.files()
    (world.root / "jobs" / "notes.yaml").write_text("mine")
    (world.root / "sessions" / "sess-00000001.context").write_text("{}")
    journal = (world.root / "jobs" / f"{job_id(1)}.jsonl").read_bytes()
    (world.root / "jobs" / "job-2026-03-01-zzzzzz.yaml").write_text("id: nobody\n")
    (world.root / "jobs" / job_id(1) / "output.log").write_text("scribble")
    (world.root / "state.yaml").write_text("scribble")

    standing = world.follower().rebuild()

    assert standing.unwritten == {}
    assert world.files() == {**before, "jobs/notes.yaml": b"mine"}
    assert (world.root / "sessions" / "sess-00000001.context").exists()
    assert (world.root / "jobs" / f"{job_id(1)}.jsonl").read_bytes() == journal
    assert "Done." in (world.root / "jobs" / job_id(1) / "output.log").read_text()


def test_the_thread_follows_until_it_is_stopped(world: World) -> None:
    rounds = threading.Semaphore(0)
    told_to_go_on = threading.Semaphore(0)
    is_over = False

    def wait(timeout: float, /) -> bool:
        assert timeout <= 1
        rounds.release()
        told_to_go_on.acquire()
        return is_over

    follower = world.follower(wait=wait)
    world.apply(submit(1))
    follower.start()
    follower.start()
    assert rounds.acquire(timeout=90)
    assert world.job(1)["status"] == "pending"

    world.apply(start(1))
    told_to_go_on.release()
    assert rounds.acquire(timeout=90)
    assert world.job(1)["status"] == "running"
    assert not world.follower().catch_up().is_ours

    world.apply(settle(1))
    is_over = True
    told_to_go_on.release()
    assert follower.stop().unwritten == {}
    assert world.job(1)["status"] == "completed"
    assert "mirror" not in {thread.name for thread in threading.enumerate()}
    assert world.follower().catch_up().is_ours


def test_the_thread_outlives_what_it_meets(world: World) -> None:
    rounds = threading.Semaphore(0)
    go_on = threading.Semaphore(0)
    is_over = False

    def wait(timeout: float, /) -> bool:
        rounds.release()
        go_on.acquire()
        return is_over

    world.feed.damage = ZeroDivisionError("oops")
    follower = world.follower(wait=wait)
    follower.start()
    assert rounds.acquire(timeout=90)
    assert follower.unwritten

    world.feed.damage = None
    world.apply(submit(1))
    go_on.release()
    assert rounds.acquire(timeout=90)
    assert not follower.unwritten
    assert world.job(1)["status"] == "pending"
    is_over = True
    go_on.release()
    follower.stop()


def test_the_default_wait_stops_at_once(world: World) -> None:
    world.apply(submit(1))
    follower = world.follower()

    follower.start()
    standing = follower.stop()

    assert standing.change == 1
    assert world.job(1)["status"] == "pending"


STEPS = st.lists(
    st.sampled_from(["submit", "join", "start", "say", "settle", "look", "forget", "kill"]),
    max_size=25,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_however_it_got_there_the_mirror_is_what_a_rebuild_makes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Any order of changes, looks, kills before remembering, and lost memories ends in the same files."""
    world = World(tmp_path_factory.mktemp("story") / ".nightherd")
    memory = world.root / "mirror.json"
    waiting: list[int] = []
    running: list[int] = []
    count = 0
    for step in steps:
        if step in ("submit", "join"):
            count += 1
            agent = f"agent-{count % 2}"
            mode = SessionMode.PERSISTENT if step == "join" else SessionMode.FRESH_PER_JOB
            world.apply(submit(count, agent=agent, mode=mode))
            waiting.append(count)
        elif step == "start" and waiting and not running:
            running.append(waiting.pop(0))
            world.apply(start(running[0]))
            world.open_record(running[0], session=f"s-{running[0]}")
            world.name_session(running[0], f"s-{running[0]}")
        elif step == "say" and running:
            last = world.journals.last(job_id(running[0]), 1)[0].seq
            world.say(running[0], answer(f"after {last}", message=last))
        elif step == "settle" and running:
            world.say(running[0], end())
            world.apply(settle(running.pop()))
        elif step == "look":
            world.catch_up()
        elif step == "forget":
            memory.unlink(missing_ok=True)
        elif step == "kill" and memory.exists():
            saved = memory.read_bytes()
            world.catch_up()
            memory.write_bytes(saved)
    world.catch_up()
    followed = world.files()

    world.follower().rebuild()

    assert followed == world.files()
    assert len([name for name in followed if name.startswith("jobs/")]) == count
    assert not [path for path in world.root.rglob(".*") if TEMP_NAME.fullmatch(path.name)]


def test_a_directory_in_the_place_of_a_file_is_named(world: World) -> None:
    path = world.root / "jobs" / f"{job_id(1)}.yaml"
    (path / "inside").mkdir(parents=True)
    world.apply(submit(1), submit(2))

    standing = world.follower().catch_up()

    assert list(standing.unwritten) == [str(path)]
    assert world.job(2)["id"] == ids(2)[0]


def test_a_link_that_leads_out_is_not_followed(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (world.root / "projects").mkdir()
    (world.root / "projects" / "-pasture").symlink_to(outside)
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")

    standing = world.follower().catch_up()

    assert len(standing.unwritten) == 1
    assert list(outside.iterdir()) == []
    assert world.job(1)["status"] == "running"
