"""A graph of one node that adds a message of a kilobyte at each step, saved by LangGraph's SqliteSaver.

Arguments: how many steps; `full` or `delta` (the messages in a DeltaChannel); `synced` or `unsynced`: the saver
syncs each commit by itself, and is told not to for the second. Runs in an environment of its own that has
langgraph. Prints the milliseconds of a step near the end (the least mean of a hundred in a row), by the clock and
of the processor, the bytes it left, and the least processor milliseconds of loading the conversation again.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (  # type: ignore[import-not-found]  # only its own environment has it
    AIMessage,
)
from langgraph.channels.delta import DeltaChannel  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

TEXT = "x" * 1_000
LOADS = 15
LAST, BLOCK = 500, 100


def appended(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*(state or []), *(one for write in writes for one in write)]


def joined(state: list[Any], more: list[Any]) -> list[Any]:
    return [*(state or []), *more]


class Full(TypedDict):
    messages: Annotated[list[Any], joined]


class Delta(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(appended)]


Moment = tuple[float, float]
"""By the clock, and of the processor."""


def moment() -> Moment:
    return time.perf_counter(), time.process_time()


def compiled(path: Path, steps: int, state: type, times: list[Moment], *, synced: bool) -> Any:
    def say(_: Any) -> dict[str, list[Any]]:
        times.append(moment())
        return {"messages": [AIMessage(TEXT)]}

    def go_on(_: Any) -> str:
        return "say" if len(times) < steps else END

    graph = StateGraph(state)
    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", go_on)
    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    saver.setup()
    if not synced:
        saver.conn.execute("PRAGMA synchronous = NORMAL")
    return graph.compile(checkpointer=saver)


def load(path: Path, steps: int, state: type, config: dict[str, Any]) -> float:
    """The conversation as a new process would get it; seconds of the processor."""
    graph = compiled(path, steps, state, [], synced=True)
    begun = time.process_time()
    found = len(graph.get_state(config).values["messages"])
    took = time.process_time() - begun
    graph.checkpointer.conn.close()
    if found != steps:
        raise SystemExit(f"{found} messages are there, not {steps}")
    return took


def step_near_end(moments: list[Moment], clock: int) -> float:
    """The least mean of a hundred steps in a row among the last: what is done every hundred is in it."""
    times = [one[clock] for one in moments]
    ends = range(len(times) - 1, max(len(times) - 1 - LAST, 0), -BLOCK)
    spans = [(max(end - BLOCK, 0), end) for end in ends]
    return min((times[end] - times[start]) / (end - start) for start, end in spans)


def measure(path: Path, steps: int, state: type, *, synced: bool) -> None:
    times: list[Moment] = []
    graph = compiled(path, steps, state, times, synced=synced)
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
    graph.invoke({"messages": []}, config, durability="sync")
    graph.checkpointer.conn.close()
    size = sum(one.stat().st_size for one in path.parent.iterdir())
    least = min(load(path, steps, state, config) for _ in range(LOADS))
    clock, processor = (step_near_end(times, which) * 1e3 for which in (0, 1))
    print(f"{clock:.3f} {processor:.3f} {size} {least * 1e3:.3f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kind = {"full": Full, "delta": Delta}[sys.argv[2]]
        path = Path(folder) / "saved.db"
        measure(path, int(sys.argv[1]), kind, synced=sys.argv[3] == "synced")


if __name__ == "__main__":
    main()
