"""A graph of one node that adds a message of a kilobyte at each step, saved by LangGraph's SqliteSaver.

Arguments: how many steps, and `full` or `delta` (the messages in a DeltaChannel). Runs in an environment of its own
that has langgraph; prints the milliseconds of a step near the end and the bytes of the database.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import (  # type: ignore[import-not-found]  # only its own environment has it
    DeltaChannel,
)
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

TEXT = "x" * 1_000


def appended(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*(state or []), *(one for write in writes for one in write)]


def joined(state: list[Any], more: list[Any]) -> list[Any]:
    return [*(state or []), *more]


class Full(TypedDict):
    messages: Annotated[list[Any], joined]


class Delta(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(appended)]


def measure(path: Path, steps: int, state: type) -> tuple[float, int]:
    times: list[float] = []

    def say(_: Any) -> dict[str, list[Any]]:
        times.append(time.perf_counter())
        return {"messages": [{"role": "assistant", "content": TEXT}]}

    def go_on(_: Any) -> str:
        return "say" if len(times) < steps else END

    graph = StateGraph(state)
    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", go_on)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        compiled = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
        compiled.invoke({"messages": []}, config, durability="sync")
    last = times[-max(steps // 20, 5) :]
    size = sum(one.stat().st_size for one in path.parent.iterdir())
    return (last[-1] - last[0]) / (len(last) - 1), size


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kind = {"full": Full, "delta": Delta}[sys.argv[2]]
        seconds, size = measure(Path(folder) / "saved.db", int(sys.argv[1]), kind)
    print(f"{seconds * 1e3:.3f} {size}")


if __name__ == "__main__":
    main()
