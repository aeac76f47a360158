"""A graph of one node that adds a message of a kilobyte at each step, saved by LangGraph's SqliteSaver.

Arguments: how many steps; `full` or `delta` (the messages in a DeltaChannel); `synced` or `unsynced` (the saver
syncs each commit by itself, and is told not to for the second); `plain` or `typed`: messages as bare mappings,
which is cheaper for it, or as the message objects that agents there are written with. Runs in an environment of
its own that has langgraph. Prints the milliseconds of a step near the end (the median of its last twentieth), the bytes it
left, and the least milliseconds of loading the conversation again: by the clock, and of the processor.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (  # type: ignore[import-not-found]  # only its own environment has it
    AIMessage,
)
from langgraph.channels.delta import DeltaChannel  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

TEXT = "x" * 1_000
LOADS = 5


def appended(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*(state or []), *(one for write in writes for one in write)]


def joined(state: list[Any], more: list[Any]) -> list[Any]:
    return [*(state or []), *more]


class Full(TypedDict):
    messages: Annotated[list[Any], joined]


class Delta(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(appended)]


def plain() -> Any:
    return {"role": "assistant", "content": TEXT}


def typed() -> Any:
    return AIMessage(TEXT)


def compiled(path: Path, steps: int, state: type, times: list[float], *, synced: bool) -> Any:
    make = {"plain": plain, "typed": typed}[sys.argv[4]]

    def say(_: Any) -> dict[str, list[Any]]:
        times.append(time.perf_counter())
        return {"messages": [make()]}

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


def load(path: Path, steps: int, state: type, config: dict[str, Any]) -> tuple[float, float]:
    """The conversation as a new process would get it; seconds by the clock and of the processor."""
    graph = compiled(path, steps, state, [], synced=True)
    begun, used = time.perf_counter(), time.process_time()
    found = len(graph.get_state(config).values["messages"])
    took = time.perf_counter() - begun, time.process_time() - used
    graph.checkpointer.conn.close()
    if found != steps:
        raise SystemExit(f"{found} messages are there, not {steps}")
    return took


def measure(
    path: Path, steps: int, state: type, *, synced: bool
) -> tuple[float, int, float, float]:
    times: list[float] = []
    graph = compiled(path, steps, state, times, synced=synced)
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
    graph.invoke({"messages": []}, config, durability="sync")
    graph.checkpointer.conn.close()
    last = times[-max(steps // 20, 6) :]
    step = statistics.median(after - before for before, after in pairwise(last))
    size = sum(one.stat().st_size for one in path.parent.iterdir())
    loads = [load(path, steps, state, config) for _ in range(LOADS)]
    return step, size, min(one for one, _ in loads), min(one for _, one in loads)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kind = {"full": Full, "delta": Delta}[sys.argv[2]]
        step, size, took, used = measure(
            Path(folder) / "saved.db", int(sys.argv[1]), kind, synced=sys.argv[3] == "synced"
        )
    print(f"{step * 1e3:.3f} {size} {took * 1e3:.3f} {used * 1e3:.3f}")


if __name__ == "__main__":
    main()
