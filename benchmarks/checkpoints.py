"""What a checkpoint costs as a conversation grows, in time and bytes, beside what others save of one.

A whole job, everything on: rows, ledger, mirror, all trigger points. Only its model is left out: its messages of a
kilobyte are there at once. Measured are a step near the end (its message and its checkpoint), every byte that the job
leaves, and how long it takes to have the conversation back.

Beside it, in environments of their own: a graph that saves as many messages with LangGraph's SqliteSaver, whole lists and
deltas, and openai-agents' SQLiteSession, at the same level on both sides: neither synced, or each step. Whole lists at
3,000 steps take 5 GB and minutes: without `--full` they are measured at fewer, and the rest is said to be worked out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ours.talk import Left, load_seconds, run
from benchmarks.peers.asked import ask, environment

FEW, MANY = 10, 3_000
ROUNDS = 3
LOAD_ROUNDS = 5
SHORT = (300, 600)
"""Steps at which whole lists are measured without `--full`."""
LANGGRAPH = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
OPENAI = "openai-agents==0.24.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another system took and left."""

    step: float
    work: float
    size: int
    load: float
    """Processor seconds of having the conversation back."""

    @classmethod
    def ask(cls, python: Path, script: str, *arguments: object) -> Peer:
        """What its script found, which says milliseconds."""
        step, work, size, load = ask(python, script, *arguments)
        return cls(step=step / 1e3, work=work / 1e3, size=int(size), load=load / 1e3)


def report_growth(root: Path) -> Left:
    """Several rounds, interleaved; the least counts. Gives the best of the long ones."""
    found: dict[int, list[Left]] = {FEW: [], MANY: []}
    for number in range(ROUNDS):
        for messages, runs in found.items():
            place = root / f"{messages}-{number}"
            runs.append(run(place, messages, has_tools=False, synced=False))
    few, many = (min(one.typical for one in runs) for runs in found.values())
    print(f"a step takes {few * 1e6:.0f} us after {FEW}, {many * 1e6:.0f} us after {MANY:,}")
    against = f"{MANY:,} against {FEW} messages"
    print(f"time of a step with its checkpoint, {against}: {many / few:.2f}x (limit 1.2x)")
    saves = found[MANY][0].save / found[FEW][0].save
    print(f"bytes of a checkpoint, {against}: {saves:.2f}x (limit 1.2x)")
    return min(found[MANY], key=lambda one: one.work)


def report_bytes(root: Path) -> None:
    """A conversation with tools, as a native agent's is."""
    ours = run(root / "bytes", MANY, has_tools=True, synced=False)
    for kind, size in sorted(ours.by_file.items(), key=lambda one: -one[1]):
        print(f"  {size:>10,} bytes  {kind}")
    print(f"  {ours.dump:>10,} bytes  pydantic-ai's own dump of the conversation")
    what = f"bytes to go on from, {MANY:,} messages of a kilobyte, against their dump"
    print(f"{what}: {ours.memory / ours.dump:.2f}x (limit 1.3x)")
    both = (ours.memory + ours.mirror) / ours.dump
    print(f"the same with the mirror, which can be deleted: {both:.2f}x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Ours beside a peer after as many steps; a bound of 0 is none."""

    name: str
    steps: int
    ours: Left
    peer: Peer

    def report_bytes(self, least: float) -> None:
        """How much more the peer leaves."""
        ours, peer = self.ours, self.peer
        print(
            f"{self.steps:,} steps: ours {ours.memory / 1e6:.2f} MB and {ours.mirror / 1e6:.2f} MB"
            f" of mirror, {self.name} {peer.size / 1e6:,.2f} MB"
        )
        what = f"bytes of {self.name} against ours, {self.steps:,} steps"
        print(f"{what}: {peer.size / ours.memory:.1f}x{at_least(least)}")

    def report_unsynced(self, least: float) -> None:
        """How much longer the peer takes for a step when neither side syncs, and of the processor alone."""
        self._report("neither synced", self.ours.step, self.peer.step, least)
        self._report("neither synced, of the processor", self.ours.work, self.peer.work, least)

    def report_synced(self, least: float) -> None:
        """How much longer the peer takes for a step when each syncs; mostly what the disk takes."""
        self._report("each synced", self.ours.step, self.peer.step, least)

    def _report(self, level: str, ours: float, peer: float, least: float) -> None:
        took = f"ours {ours * 1e3:.2f} ms, {self.name} {peer * 1e3:.2f} ms a step"
        print(f"{self.steps:,} steps, {level}: {took}")
        what = f"time of a step of {self.name} against ours, {self.steps:,} steps, {level}"
        print(f"{what}: {peer / ours:.1f}x{at_least(least)}")


def at_least(bound: float) -> str:
    return f" (at least {bound:g}x)" if bound else ""


def least_synced(root: Path, python: Path | None) -> tuple[Left, list[Peer]]:
    """Our long job with a sync for each step, and LangGraph's: by turns, each from a disk at rest; our best."""
    ours, peers = [], []
    for number in range(ROUNDS):
        os.sync()
        ours.append(run(root / f"synced-{number}", MANY, has_tools=False, synced=True))
        if python is not None:
            os.sync()
            peers.append(Peer.ask(python, "langgraph_checkpoints.py", MANY, "delta", "synced"))
    return min(ours, key=lambda one: one.step), peers


def report_langgraph(
    root: Path, python: Path, quick: Left, synced: Left, peers: list[Peer], *, is_full: bool
) -> None:
    """`quick` and `synced` are our own long jobs, without and with a sync for each step; `peers` were synced too."""
    script, delta = "langgraph_checkpoints.py", "LangGraph (delta)"
    runs = [Peer.ask(python, script, MANY, "delta", "unsynced") for _ in range(2)]
    peer = min(runs, key=lambda one: one.work)
    beside = Beside(name=delta, steps=MANY, ours=quick, peer=peer)
    beside.report_bytes(10)
    beside.report_unsynced(5)
    best = min(peers, key=lambda one: one.step)
    Beside(name=delta, steps=MANY, ours=synced, peer=best).report_synced(5)
    report_loads(python, quick, min(one.load for one in (*runs, *peers)))
    if is_full:
        report_full(python, quick)
    else:
        report_short(root, python, quick)


def report_loads(python: Path, quick: Left, delta: float) -> None:
    """How long the conversation takes to be back; by turns with the default saver's, which has it in one piece."""
    ours, whole = list[float](), list[float]()
    for _ in range(LOAD_ROUNDS):
        ours.append(load_seconds(quick))
        whole.append(*ask(python, "langgraph_load.py", MANY))
    for name, peer in (("delta", delta), ("full", min(whole) / 1e3)):
        took = f"ours {min(ours) * 1e3:.0f} ms, LangGraph ({name}) {peer * 1e3:.0f} ms"
        print(f"{MANY:,} messages back: {took}")
        what = f"loading in LangGraph ({name}) against ours, {MANY:,} messages"
        print(f"{what}: {peer / min(ours):.2f}x (at least 1x)")


def report_full(python: Path, quick: Left) -> None:
    """Whole lists to the end: 5 GB, and minutes."""
    name = "LangGraph (full)"
    peer = Peer.ask(python, "langgraph_checkpoints.py", MANY, "full", "unsynced")
    beside = Beside(name=name, steps=MANY, ours=quick, peer=peer)
    beside.report_bytes(500)
    beside.report_unsynced(5)
    ratio = peer.load / load_seconds(quick)
    print(f"loading in {name} after as many steps against ours: {ratio:.2f}x (at least 1x)")


def report_short(root: Path, python: Path, quick: Left) -> None:
    """Whole lists at fewer steps, and what they come to at all: each save writes all that was said before."""
    name, steps = "LangGraph (full)", SHORT[-1]
    found = [Peer.ask(python, "langgraph_checkpoints.py", n, "full", "unsynced") for n in SHORT]
    ours = run(root / "short", steps, has_tools=False, synced=False)
    beside = Beside(name=name, steps=steps, ours=ours, peer=found[-1])
    beside.report_bytes(100)
    beside.report_unsynced(5)
    print(
        f"bytes of {name}, {steps} against {SHORT[0]} steps: {found[-1].size / found[0].size:.1f}x"
    )
    size = found[-1].size * (MANY / steps) ** 2
    print(
        f"{MANY:,} steps of {name} would leave {size / 1e6:,.0f} MB, worked out from {steps} by the square"
    )
    what = f"bytes of {name} against ours, {MANY:,} steps, worked out"
    print(f"{what}: {size / quick.memory:.0f}x (at least 500x)")


def main() -> None:
    """Prints every time, size and ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        quick = report_growth(root)
        report_bytes(root)
        python = environment(*LANGGRAPH, module="langgraph.graph")
        synced, peers = least_synced(root, python)
        if python is not None:
            is_full = "--full" in sys.argv[1:]
            report_langgraph(root, python, quick, synced, peers, is_full=is_full)
        python = environment(OPENAI, module="agents")
        if python is not None:
            peer = Peer.ask(python, "openai_session.py", MANY)
            beside = Beside(name="openai-agents", steps=MANY, ours=synced, peer=peer)
            beside.report_bytes(0)
            beside.report_synced(0)
            ratio = peer.load / load_seconds(quick)
            print(f"loading in openai-agents against ours, {MANY:,} messages: {ratio:.2f}x")


if __name__ == "__main__":
    main()
