"""Eight processes on one state directory, doing everything at once: no update is lost, nothing is doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.crowd_trials import CROWD, KEYS, SLOTS
from nightherd.db.ledger import read_ledger
from nightherd.journal.files import JournalFiles
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import NIGHTLY
from soak import often
from state.stores import contents, replayed

PROCESSES = 8
SECONDS = often(4, soak=600)
SEED = 8
REFUSALS = {"duplicate": {"submit", "fire"}, "status": {"cancel"}}
"""Why a change may be refused here, and which."""

Said = list[tuple[str, str, str]]
"""What was done, to what, and what came of it."""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(patience_s=often(240, soak=3_000)) as server:
        yield server


def all_jobs(directory: StateDirectory) -> dict[str, Job]:
    reader = SqliteReader(directory.root)
    jobs: dict[str, Job] = {}
    before: int | None = None
    while page := reader.list_jobs(JobQuery(before=before, limit=5_000)):
        jobs |= {job.id: job for job in page}
        before = page[-1].number
    reader.close()
    return jobs


def check_changes(said: Said, jobs: dict[str, Job], directory: StateDirectory) -> None:
    """Every change was acknowledged or refused for a reason that there is, and the rows say the same."""
    count = Counter((what, outcome) for what, _, outcome in said if what != "append")
    for what, outcome in count:
        assert outcome == "applied" or what in REFUSALS[outcome], (what, outcome)
    applied = {
        what: [name for w, name, o in said if (w, o) == (what, "applied")] for what, _ in count
    }
    fired = count["fire", "applied"]
    assert len(jobs) == len(applied["submit"]) + fired
    assert set(applied["submit"]) <= jobs.keys()
    assert Counter(job.status for job in jobs.values()) == {
        JobStatus.COMPLETED: count["settle", "applied"],
        JobStatus.CANCELLED: count["cancel", "applied"],
        JobStatus.PENDING: fired,
    }
    assert sum(job.restart_count for job in jobs.values()) == count["lose", "applied"]
    assert sum(job.epoch for job in jobs.values()) == count["start", "applied"]
    assert {job.number for job in jobs.values()} == set(range(1, len(jobs) + 1))
    rows = contents(directory.database)
    assert len(rows["checkpoints"]) == count["checkpoint", "applied"]
    assert len(rows["executions"]) == count["start", "applied"]
    changes = [line.change for line in read_ledger(directory.ledger)]
    assert changes == list(range(1, sum(n for (_, o), n in count.items() if o == "applied") + 1))


def check_unique(said: Said, jobs: dict[str, Job], directory: StateDirectory) -> None:
    """One job per dedupe key, and one outcome per slot: that of the process which was told so."""
    keys = [job.dedupe_key for job in jobs.values() if job.dedupe_key is not None]
    assert len(keys) == len(set(keys)) > KEYS // 2
    decided = [name for what, name, outcome in said if (what, outcome) == ("fire", "applied")]
    assert len(decided) == len(set(decided)) > SLOTS // 10
    reader = SqliteReader(directory.root)
    slots = reader.list_slots(NIGHTLY, 2 * SLOTS)
    reader.close()
    assert len(slots) == len(decided)
    assert len({slot.due_at for slot in slots}) == len(slots)
    assert len({slot.job_id for slot in slots}) == len(slots)


def check_journals(said: Said, jobs: dict[str, Job], directory: StateDirectory) -> None:
    journals = JournalFiles(directory.jobs, directory.blobs, clock=FakeClock())
    appended = Counter(name for what, name, _ in said if what == "append")
    assert set(journals.job_ids()) == {JobId(name) for name in appended}
    for name, count in appended.items():
        findings = journals.examine(JobId(name))
        assert (findings.events, findings.missing, findings.bad_lines) == (count, 0, ())
        assert findings.epoch == jobs[name].epoch


@pytest.mark.slow
@pytest.mark.timeout(often(300, soak=3_600))
def test_eight_processes_share_a_directory_without_losing_or_doubling(
    server: ForkServer, tmp_path: Path
) -> None:
    directory = init_state_directory(tmp_path / ".nightherd")
    order = {"root": str(directory.root), "seconds": SECONDS, "seed": SEED}

    ended = server.run_all(CROWD, [{**order, "place": place} for place in range(1, PROCESSES + 1)])

    assert [one.error for one in ended] == [""] * PROCESSES
    assert [one.status for one in ended] == [0] * PROCESSES
    assert min(len(one.said) for one in ended) > 100
    said: Said = []
    for one in ended:
        for line in one.said:
            what, name, outcome = line.split()
            said.append((what, name, outcome))
    jobs = all_jobs(directory)
    print(f"{len(said)} changes and appends, {len(jobs)} jobs")
    check_changes(said, jobs, directory)
    check_unique(said, jobs, directory)
    check_journals(said, jobs, directory)
    assert replayed(directory, tmp_path / "replayed.db") == contents(directory.database)
