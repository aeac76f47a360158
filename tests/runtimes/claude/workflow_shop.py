"""A shop whose workflows run on the real `claude`, and a model that answers by what it is asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Say
from runtimes.claude.workspace_shop import Row, Shop

NOTHING_LEFT = Say(text="I was not expected to be asked that.")


class PromptedModel(MessagesApi):
    """A model with a script for each prompt: the mark that the conversation holds last says which.

    Phases may run in any order, at the same time and again: each mark goes on where it was.
    """

    def __init__(self, scripts: Mapping[str, tuple[Answer, ...]]) -> None:
        super().__init__(NOTHING_LEFT)
        self._left = {mark: list(answers) for mark, answers in scripts.items()}
        self._lock = threading.Lock()
        self.marks: list[str | None] = []
        """The mark of every request."""

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The next answer for the mark."""
        with self._lock:
            answer, name = super().take(asked)
            mark = self._mark_of(asked)
            self.marks.append(mark)
            left = self._left.get(mark) if mark is not None else None
            return (left.pop(0) if left else answer), name

    def _mark_of(self, asked: Asked) -> str | None:
        for text in reversed(asked.texts):
            place = {mark: text.rfind(mark) for mark in self._left}
            mark = max(place, key=lambda mark: place[mark])
            if place[mark] >= 0:
                return mark
        return None

    def asked_for(self, mark: str) -> list[Asked]:
        """The requests whose last prompt has the mark."""
        return [asked for asked, known in zip(self.asked, self.marks, strict=True) if known == mark]


class WorkflowShop(Shop):
    """A shop with workflows, which follow its agents."""

    def work(self) -> None:
        """Work until nothing is left that a worker can do."""
        done = self.nightherd("worker", "--until-idle")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def run_workflow(self, name: str, *words: str) -> Row:
        """Run a workflow until it ends or waits for others; return its document."""
        self.nightherd("workflow", "run", name, "--wait", *words)
        return self.run_shown()

    def run_shown(self, run_id: str = "@last") -> Row:
        """A run, as the command shows it."""
        shown: Row = self.data("runs", "show", run_id, "--all")
        return shown

    def approve(self, item: str = "@last") -> None:
        """Say yes to what waits."""
        done = self.nightherd("inbox", "approve", item)
        assert done.returncode == 0, done.stderr


def nodes_of(run: Row) -> dict[str, Row]:
    """The nodes of a run's document, by path."""
    found: dict[str, Row] = {}

    def add(nodes: list[Row]) -> None:
        for node in nodes:
            found[node["path"]] = node
            add(node["nodes"])

    add(run["nodes"])
    return found


def statuses_of(run: Row) -> dict[str, Any]:
    """The status of every node of a run's document, by path."""
    return {path: node["status"] for path, node in nodes_of(run).items()}
