"""How long LangGraph's SqliteSaver takes to have a conversation back that it saved as one whole list.

Argument: how many messages of a kilobyte. They are saved in one step: what a load reads is the last list alone, and
to come to it step by step writes gigabytes. Runs in an environment of its own that has langgraph. Prints the least
processor milliseconds of loading the conversation again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.messages import (  # type: ignore[import-not-found]  # only its own environment has it
    AIMessage,
)
from langgraph_checkpoints import (  # type: ignore[import-not-found]  # beside this script
    LOADS,
    TEXT,
    Full,
    compiled,
    load,
)


def main() -> None:
    messages = int(sys.argv[1])
    config: dict[str, Any] = {"configurable": {"thread_id": "bench"}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.db"
        graph = compiled(path, messages, Full, [], synced=False)
        said = [AIMessage(TEXT) for _ in range(messages)]
        graph.update_state(config, {"messages": said}, as_node="say")
        graph.checkpointer.conn.close()
        print(min(load(path, messages, Full, config) for _ in range(LOADS)) * 1e3)


if __name__ == "__main__":
    main()
