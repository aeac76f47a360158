"""Answers that race each other, a cancel, an expiry, a raised limit and a reload: one counts, and the others say which."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from crash import native_trials
from crash.ground import Ground, check_doctor_leaves_nothing
from nightherd.daemon.record import find_daemon
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem, InboxQuery, ItemKind, ItemStatus, Verdict
from nightherd.model.jobs.job import JobStatus
from nightherd.testing.fork_server import Ended
from nightherd.wiring.stores import open_reader
from soak import often
from surfaces.drivers import Shell

SEED = 20_261_116
ROUNDS = often(2, soak=60)
MANY = often(60, soak=1_000)
"""Jobs that wait while everything is killed and started again."""
PATIENCE_S = 90.0
REFUSED = 5
"""The exit code of an answer that comes too late."""

FLEET = """\
fleet: {name: racing}
lease: 5s
heartbeat: 500ms
mirror: false
reload: auto
agents:
  - name: pusher
    runtime: scripted
    allowed_tools: [Bash]
    approvals: [{tool: "Bash(echo:*)"EXPIRES}]
    instances: {max_concurrent: 8}
    script:
      - tool: Bash
        input: {command: "echo ${inputs.tag} >> pushed"}
      - say: done
  - name: spender
    runtime: scripted
    limits: {turns: 1}
    script:
      - repeat: 2
        steps: [{say: on it}]
"""

MakeGround = Callable[[str], Ground]


def items(ground: Ground, *, is_pending: bool = True) -> list[InboxItem]:
    with closing(open_reader(ground.state)) as reader:
        return list(reader.list_items(InboxQuery(is_pending=is_pending, limit=10_000)))


def answers_of(ground: Ground, item: InboxItem) -> list[Verdict]:
    with closing(open_reader(ground.state)) as reader:
        return [one.verdict for one in reader.list_answers(item.id)]


def pushed(ground: Ground) -> Counter[str]:
    file = ground.folder / "pushed"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def at_once(ground: Ground, *commands: Sequence[str]) -> list[Ended]:
    """Run the commands at the same time, each in a process of its own."""
    gate = ground.folder / "gate"
    orders = [
        {
            "folder": str(ground.folder),
            "arguments": list(command),
            "shown": str(ground.folder / f"shown-{number}"),
            "after": str(gate),
        }
        for number, command in enumerate(commands)
    ]
    begun = ground.server.begin(native_trials.COMMAND, *orders)
    gate.touch()
    ended = [one.wait() for one in begun]
    gate.unlink()
    return ended


def shown(ground: Ground, number: int) -> str:
    return (ground.folder / f"shown-{number}").read_text()


def work(ground: Ground) -> None:
    assert ground.command("worker", "--until-idle").status == 0, ground.shown()


@pytest.fixture
def waiting(make_ground: MakeGround) -> Ground:
    """A fleet with one job, `a`, that waits for approval."""
    ground = make_ground(FLEET.replace("EXPIRES", ""))
    ground.run("pusher", "a")
    assert len(items(ground)) == 1, ground.shown()
    return ground


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_of_answers_at_the_same_time_one_counts(waiting: Ground) -> None:
    random = Random(SEED)
    for _ in range(ROUNDS):
        with waiting.copied() as ground:
            (item,) = items(ground)
            verdicts = random.choice([("approve", "approve", "approve"), ("approve", "reject")])

            ended = at_once(ground, *(("inbox", verdict, item.id) for verdict in verdicts))

            assert sorted(one.status for one in ended) == [0, *[REFUSED] * (len(verdicts) - 1)]
            winner = verdicts[[one.status for one in ended].index(0)]
            late = next(number for number, one in enumerate(ended) if one.status)
            word = {"approve": "approved", "reject": "rejected"}[winner]
            assert f"{item.id} was {word} by" in shown(ground, late)
            assert answers_of(ground, item) == [Verdict(winner)]
            work(ground)
            assert pushed(ground) == ({"a": 1} if winner == "approve" else {})
            assert ground.jobs()["a"].status is JobStatus.COMPLETED
            check_doctor_leaves_nothing(ground)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_an_answer_and_a_cancel_at_the_same_time_end_in_a_cancelled_job(waiting: Ground) -> None:
    for _ in range(ROUNDS):
        with waiting.copied() as ground:
            (item,) = items(ground)

            answered, cancelled = at_once(
                ground,
                ("inbox", "approve", item.id),
                ("jobs", "cancel", ground.jobs()["a"].id),
            )

            assert cancelled.status == 0, shown(ground, 1)
            (over,) = items(ground, is_pending=False)
            expected = ItemStatus.APPROVED if answered.status == 0 else ItemStatus.CANCELLED
            assert over.status is expected
            work(ground)
            assert ground.jobs()["a"].status is JobStatus.CANCELLED
            assert pushed(ground) == {}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_an_answer_at_its_last_moment_counts_or_is_refused(make_ground: MakeGround) -> None:
    ground = make_ground(FLEET.replace("EXPIRES", ", expires: 1s"))
    for number in range(2 * ROUNDS):
        tag = f"t{number}"
        ground.run("pusher", tag)
        (item,) = items(ground)
        assert item.expires_at is not None
        time.sleep(max(0.0, item.expires_at.timestamp() - time.time() - 0.05))

        answered, worked = at_once(
            ground, ("inbox", "approve", item.id), ("worker", "--until-idle")
        )

        assert worked.status == 0, shown(ground, 1)
        while ground.jobs()[tag].status is not JobStatus.COMPLETED:
            work(ground)
        assert pushed(ground)[tag] == (1 if answered.status == 0 else 0)
        (over,) = (one for one in items(ground, is_pending=False) if one.id == item.id)
        assert over.status is (ItemStatus.APPROVED if answered.status == 0 else ItemStatus.EXPIRED)


def status_of(ground: Ground, job_id: JobId) -> JobStatus:
    with closing(open_reader(ground.state)) as reader:
        job = reader.find_job(job_id)
    assert job is not None
    return job.status


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_limit_that_is_raised_twice_at_the_same_time_is_raised_once(
    make_ground: MakeGround,
) -> None:
    ground = make_ground(FLEET.replace("EXPIRES", ""))
    ground.run("spender", "a")
    for _ in range(ROUNDS):
        with ground.copied() as trial:
            (item,) = items(trial)
            assert item.kind is ItemKind.LIMIT
            job = trial.jobs()["a"]

            ended = at_once(
                trial,
                ("inbox", "raise", item.id, "turns=5"),
                ("inbox", "raise", item.id, "turns=7"),
                ("jobs", "resume", job.id, "--raise", "turns=6", "-d"),
                ("inbox", "reject", item.id),
            )

            done = [number for number, one in enumerate(ended[:2]) if one.status == 0]
            assert len(done) + (ended[3].status == 0) <= 1, [one.status for one in ended]
            assert items(trial, is_pending=True) == [] or ended[3].status == 0
            work(trial)
            is_failed = ended[3].status == 0
            expected = JobStatus.FAILED if is_failed else JobStatus.COMPLETED
            # Resumed after it was rejected, it has ended: a new job continues its session.
            assert status_of(trial, job.id) is expected, [one.status for one in ended]


@contextmanager
def daemon(ground: Ground) -> Iterator[None]:
    """A daemon at work; killed at the end."""
    shell = Shell(ground.folder)
    log = ground.folder / "shown-daemon"
    try:
        with log.open("wb") as said:
            process = shell.start("start", stdout=said, stderr=said)
        wait_until(
            lambda: (record := find_daemon(ground.state)) is not None and record.pid == process.pid
        )
        yield
    finally:
        shell.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_answers_through_the_daemon_and_directly_and_a_reload_at_the_same_time(
    make_ground: MakeGround,
) -> None:
    ground = make_ground(FLEET.replace("EXPIRES", ""))
    tags = [f"t{number}" for number in range(2 * ROUNDS)]
    for tag in tags:
        ground.run("pusher", tag)
    file = ground.folder / "nightherd.yaml"
    elsewhere = ground.folder / "other.yaml"
    shutil.copy(file, elsewhere)
    with daemon(ground):
        for item in items(ground):
            # The daemon does not answer for another fleet file: this one works on the state directory itself.
            direct = ("--config", str(elsewhere), "inbox", "approve", item.id)
            ended = at_once(ground, ("inbox", "approve", item.id), direct, ("reload",))
            assert sorted(one.status for one in ended[:2]) == [0, REFUSED], [
                shown(ground, number) for number in (0, 1)
            ]
            assert answers_of(ground, item) == [Verdict.APPROVE]
        wait_until(lambda: len(pushed(ground)) == len(tags))
        wait_until(lambda: all(one.status is JobStatus.COMPLETED for one in ground.jobs().values()))
    assert pushed(ground) == dict.fromkeys(tags, 1)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_many_waiting_jobs_survive_restarts_and_a_move_and_continue_only_with_their_answer(
    make_ground: MakeGround, quick_path: Path
) -> None:
    ground = make_ground(FLEET.replace("EXPIRES", ""))
    order = {"folder": str(ground.folder), "tags": [f"t{number}" for number in range(MANY)]}
    assert ground.server.run(native_trials.SUBMIT, order).status == 0
    with daemon(ground):
        wait_until(lambda: len(items(ground)) == MANY)
    assert pushed(ground) == {}

    moved = Ground(quick_path / "moved", ground.server)
    ground.folder.rename(moved.folder)
    for _ in range(2):
        with daemon(moved):
            assert len(items(moved)) == MANY
    check_doctor_leaves_nothing(moved)
    (moved.state / "nightherd.db").unlink()
    assert moved.command("doctor", "--rebuild").status == 0, moved.shown()
    check_doctor_leaves_nothing(moved)
    waiting = items(moved)
    assert len(waiting) == MANY, "none is lost"
    statuses = {job.status for job in moved.jobs().values()}
    assert (statuses, pushed(moved)) == ({JobStatus.SUSPENDED}, {}), "none continues unanswered"

    approved = Random(SEED).sample(waiting, 5)
    with daemon(moved):
        for item in approved:
            assert moved.command("inbox", "approve", item.id).status == 0, moved.shown()
        wait_until(lambda: len(pushed(moved)) == len(approved))
    tags = {tag for tag, job in moved.jobs().items() if job.id in {one.job_id for one in approved}}
    assert pushed(moved) == dict.fromkeys(tags, 1)
    assert len(items(moved)) == MANY - len(approved)
