"""What a checkpoint costs as a conversation grows, in time and bytes, beside LangGraph's.

A job says messages of a kilobyte, with a checkpoint after each: its row committed, its line in the journal. The same after 10 and after 3,000 messages; minima over several rounds. Beside it a graph that saves as many
messages with LangGraph's SqliteSaver, whole lists and deltas, in an environment of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio

from nightherd.engine.checkpoints import Bookmarks
from nightherd.engine.lease import Lease
from nightherd.engine.recorder import Recorder
from nightherd.engine.workshop import Workshop
from nightherd.host.clock import SystemClock
from nightherd.host.randomness import random_text
from nightherd.journal.files import JournalFiles
from nightherd.model.agent import Agent, Durability, RuntimeName
from nightherd.model.event import AssistantEvent
from nightherd.model.ids import WorkerId, generate_execution_id
from nightherd.model.job import Job
from nightherd.model.limits import Limits
from nightherd.model.secret import find_secrets
from nightherd.model.trigger_point import TriggerPoint
from nightherd.ports import no_probe
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.state_values import start, submit

FEW, MANY = 10, 3_000
ROUNDS = 40
PEER_STEPS = 600
TEXT = "x" * 1_000
PEERS = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent / ".tools"
AGENT = Agent(
    name="grazer", runtime=RuntimeName.NATIVE, working_directory="/", limits=Limits(turns=10**9)
)


def workshop_in(root: Path) -> tuple[Workshop, SqliteStore]:
    init_state_directory(root)
    clock = SystemClock()
    store = SqliteStore(root, clock)
    journals = JournalFiles(
        root / "jobs", root / "blobs", clock=clock, durability=Durability.CHECKPOINT, probe=no_probe
    )
    workshop = Workshop(
        state=store,
        reader=SqliteReader(root),
        journals=journals,
        runtimes=lambda name: None,  # type: ignore[arg-type, return-value]  # nothing runs
        can_run=lambda name: False,
        clock=clock,
        random_text=random_text,
        worker=WorkerId("worker-bench000"),
        lease=Lease(deadline=1e18),
        environment={},
        secrets=find_secrets({}),
        version="bench",
    )
    return workshop, store


def bytes_in(root: Path) -> int:
    return sum(one.stat().st_size for one in root.rglob("*") if one.is_file())


async def measure(root: Path, messages: int) -> tuple[float, float, int]:
    """Seconds of one checkpoint after so many messages, bytes of one, and bytes of everything."""
    workshop, store = workshop_in(root)
    change = start(1)
    _, answer = await store.apply([submit(1), change])
    job = getattr(answer, "job", None)
    if not isinstance(job, Job):
        raise SystemExit(f"the job was not started: {answer}")
    recorder = Recorder(workshop.secrets, lambda event: None)
    execution = generate_execution_id(job.id, job.epoch)
    times: list[float] = []
    with recorder.into(workshop.journals.open(job.id, epoch=job.epoch, execution=execution)):
        bookmarks = Bookmarks(replace(job), AGENT, AGENT.limits, recorder, workshop)
        for number in range(1, messages + 1):
            recorder.record(AssistantEvent(content=TEXT, turn=number, index=0, end=True))
            if number > messages - ROUNDS:
                begun = time.perf_counter()
                await bookmarks.at(TriggerPoint.POST_LLM, timedelta())
                times.append(time.perf_counter() - begun)
            else:
                await bookmarks.at(TriggerPoint.POST_LLM, timedelta())
    await store.close()
    known = workshop.reader.list_checkpoints(job.id)
    workshop.reader.close()
    last = len(str(known[-1]))
    return min(times), last, bytes_in(root)


def peer_python() -> Path | None:
    """An interpreter that has the peer; None, said, when it cannot be had."""
    python = TOOLS / "bench-langgraph-1.2.20" / "bin" / "python"
    uv = shutil.which("uv") or str(TOOLS / "venv" / "bin" / "uv")
    try:
        if not python.exists():
            subprocess.run([uv, "venv", "-q", python.parent.parent], check=True)
            command = [uv, "pip", "install", "-q", "--python", str(python), *PEERS]
            subprocess.run(command, check=True, timeout=300)
        subprocess.run([python, "-c", "import langgraph.graph"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(python.parent.parent, ignore_errors=True)
        print(f"!! {PEERS[0]} could not be installed, so nothing is compared with it: {error}")
        return None
    return python


def report_peer(
    root: Path, kind: str, python: Path, *, least_bytes: float, least_time: float
) -> None:
    script = str(HERE / "peers/langgraph_checkpoints.py")
    done = subprocess.run(
        [str(python), script, str(PEER_STEPS), kind], check=True, stdout=subprocess.PIPE, text=True
    )
    milliseconds, size = done.stdout.split()
    seconds, _, ours = anyio.run(measure, root / f"beside-{kind}", PEER_STEPS)
    print(
        f"{PEER_STEPS} steps: {seconds * 1e3:.2f} ms and {ours / 1e6:.2f} MB, LangGraph ({kind})"
        f" {float(milliseconds):.2f} ms and {int(size) / 1e6:.2f} MB"
    )
    what = f"bytes of LangGraph ({kind}) against ours after {PEER_STEPS} steps"
    print(f"{what}: {int(size) / ours:.1f}x (at least {least_bytes:g}x)")
    ratio = float(milliseconds) / 1e3 / seconds
    print(
        f"time of a step of LangGraph ({kind}) against ours: {ratio:.1f}x (at least {least_time:g}x)"
    )


def main() -> None:
    """Prints every time and ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        few = anyio.run(measure, root / "few", FEW)
        again = anyio.run(measure, root / "few-again", FEW)
        many = anyio.run(measure, root / "many", MANY)
        base = min(few[0], again[0])
        print(
            f"a checkpoint: {base * 1e6:.0f} us after {FEW}, {many[0] * 1e6:.0f} us after {MANY:,} messages"
        )
        print(
            f"time of a checkpoint, {MANY:,} against {FEW} messages: {many[0] / base:.2f}x (limit 1.2x)"
        )
        print(
            f"size of a checkpoint, {MANY:,} against {FEW} messages: {many[1] / few[1]:.2f}x (limit 1.2x)"
        )
        print(f"all bytes of {MANY:,} messages of a kilobyte: {many[2] / (MANY * 1_000):.2f}x")
        python = peer_python()
        if python is not None:
            report_peer(root, "full", python, least_bytes=80, least_time=5)
            report_peer(root, "delta", python, least_bytes=2, least_time=1)


if __name__ == "__main__":
    main()
