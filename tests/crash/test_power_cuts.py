"""A power cut at any moment of a run: nothing that was to be durable is missing, and nothing is unreadable.

A run is recorded, every write and every sync of it. From that, every disk is made that a power cut could leave
(`power_images`), and on each of them the doctor, the readers and the next command have to work.
"""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from crash.ground import check_doctor_leaves_nothing
from crash.power_images import Image, Luck, images
from crash.power_recording import Frame
from crash.test_whole_path import FLEET, LONG_PROMPT, Pasture
from crash.whole_trials import RECORDED
from nightherd.errors import NightherdError
from nightherd.model.change import Applied
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import Event
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import submit
from nightherd.wiring.stores import open_journals, open_reader
from soak import often
from state.stores import contents, open_store, replayed

STATE = ".nightherd"
REACHED = {
    "SubmitJob": set(JobStatus),
    "StartExecution": {JobStatus.RUNNING, JobStatus.COMPLETED, JobStatus.FAILED},
    "SettleExecution": {JobStatus.COMPLETED},
}
"""Where a job may stand once such a change was acknowledged and the doctor has been there."""
NEXT = 5
"""Every fifth disk is also run on."""
SHARE = often(8, soak=1)
"""Of the images that are only luckier variants of another, every eighth is looked at; in a long run all."""
PARTS = 3
SUSPENDED = """\
agents:
  - name: herder
    runtime: native
    limits: {turns: 1}
    script:
      - say: one
      - tool: Glob
        input: {pattern: "*"}
      - say: two
"""
"""A fleet whose job has to stop."""


def record(
    durability: str, folder: Path, server: ForkServer, fleet: str = FLEET, *, expected: int = 0
) -> list[Frame]:
    """A run with that durability, frame by frame."""
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(f"durability: {durability}\nmirror: false\n{fleet}")
    (folder / "prompt").write_text(LONG_PROMPT)
    recording, shown = folder.with_name("recording"), folder.with_name("shown")
    arguments = ["run", "herder", "-f", "prompt", "--input", "tag=cut"]
    order = {"folder": folder, "shown": shown, "recording": recording}
    texts = {name: str(path) for name, path in order.items()}
    ended = server.run(RECORDED, {**texts, "arguments": arguments})
    assert (ended.status, ended.error) == (expected, ""), shown.read_text()
    frames = pickle.loads(recording.read_bytes())
    assert isinstance(frames, list)
    return frames


def check_image(image: Image, durability: str, events: list[Event], pasture: Pasture) -> None:
    """Everything that was promised is there, and the next command works."""
    is_settled = "SettleExecution" in image.frame.applied
    is_fully_synced = durability == "fsync"
    jobs = pasture.jobs() if StateDirectory(root=pasture.state).database.exists() else {}
    for kind in image.frame.applied:
        if kind in ("SubmitJob", "SettleExecution") or (is_fully_synced and kind in REACHED):
            assert jobs["cut"].status in REACHED[kind], kind
    if "cut" in jobs:
        found = list(open_journals(pasture.state).read(jobs["cut"].id))
        promised = len(events) if is_settled else image.frame.appended if is_fully_synced else 0
        assert found[:promised] == events[:promised]
        assert [event.seq for event in found] == list(range(1, len(found) + 1))
    if pasture.state.exists():
        check_doctor_leaves_nothing(pasture)
    if image.place % NEXT == 0:
        pasture.folder.joinpath("nightherd.yaml").write_text(FLEET)
        assert pasture.ask("next").status == 0, pasture.shown()
    state = init_state_directory(pasture.state)
    anyio.run(write_one, state)
    assert replayed(state, pasture.folder / "replayed.db") == contents(state.database)


async def write_one(state: StateDirectory) -> None:
    """The next change: it also brings the ledger to where the database is, or the other way round."""
    async with open_store(state) as store:
        (answer,) = await store.apply([submit(1)])
    assert isinstance(answer, Applied)


def check_images(
    frames: list[Frame], durability: str, server: ForkServer, tmp_path: Path, *, part: int
) -> int:
    """Look at this part of the images; how many that were."""
    original = Pasture(tmp_path / "original", server)
    (job,) = original.jobs().values()
    events = list(open_journals(original.state).read(job.id))
    assert frames[-1].appended == len(events)
    assert "SettleExecution" in frames[-1].applied
    count = 0
    for number, image in enumerate(images(frames, STATE)):
        is_worst = image.luck is Luck.LOST and image.is_database_behind
        is_due = number % PARTS == part and (is_worst or number // PARTS % SHARE == 0)
        if not is_due and image.place < len(frames) - 1:
            continue
        count += 1
        pasture = Pasture(tmp_path / f"{number}", server)
        image.write(pasture.folder)
        try:
            check_image(image, durability, events, pasture)
        except (AssertionError, KeyError, NightherdError) as error:
            where = f"frame {image.place} ({image.frame.call}), {image.luck}"
            raise AssertionError(f"{where}, behind {image.is_database_behind}: {error}") from error
        shutil.rmtree(pasture.folder)
    return count


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", ["fsync", "checkpoint"])
@pytest.mark.parametrize("part", range(PARTS))
def test_power_cut_loses_nothing_that_was_promised(
    durability: str, part: int, command_server: ForkServer, quick_path: Path
) -> None:
    frames = record(durability, quick_path / "original", command_server)

    count = check_images(frames, durability, command_server, quick_path, part=part)

    print(f"{durability}: {count} disks of {len(frames)} moments")
    assert count * PARTS > len(frames) / 2


@pytest.mark.parametrize("durability", ["fsync", "checkpoint"])
def test_power_cut_leaves_no_checkpoint_of_a_line_that_is_gone(
    durability: str, command_server: ForkServer, quick_path: Path
) -> None:
    frames = record(durability, quick_path / "original", command_server, SUSPENDED, expected=6)

    stopped = 0
    for number, image in enumerate(images(frames, STATE)):
        if image.luck is not Luck.LOST:
            continue
        pasture = Pasture(quick_path / f"{number}", command_server)
        image.write(pasture.folder)
        if StateDirectory(root=pasture.state).database.exists():
            for job in pasture.jobs().values():
                until = sum(event.seq for event in open_journals(pasture.state).last(job.id, 1))
                saved = saved_rows(pasture, job)
                stopped += any(row.trigger == "on_suspend" for row in saved)
                assert all(row.seq <= until for row in saved), (image.place, image.frame.call)
        shutil.rmtree(pasture.folder)
    assert stopped, "there were disks with the checkpoint on them"


def saved_rows(pasture: Pasture, job: Job) -> list[Checkpoint]:
    """The checkpoints that must be saved, of those that are rows."""
    reader = open_reader(pasture.state)
    try:
        return [row for row in reader.list_checkpoints(job.id) if row.trigger.startswith("on_")]
    finally:
        reader.close()


@pytest.mark.parametrize("forgotten", ["synced_file", "synced_names", "commit"])
def test_run_that_does_not_sync_would_be_noticed(
    forgotten: str, command_server: ForkServer, quick_path: Path
) -> None:
    nothing: dict[str, Any] = {forgotten: None}
    frames = [
        replace(frame, **nothing)
        for frame in record("fsync", quick_path / "original", command_server)
    ]

    with pytest.raises(AssertionError, match="frame"):
        check_images(frames, "fsync", command_server, quick_path, part=PARTS)
