"""Pacing: a scripted answer that takes its time is streamed word by word, as a model's is."""

from __future__ import annotations

import re

import anyio

from nightherd.ports import TextStream
from nightherd.runtimes.scripted.turn import PlannedTurn

WORD = re.compile(r"\s*\S+\s*")


async def stream_answer(turn: PlannedTurn, stream: TextStream) -> None:
    """Stream the answer over the time that its script gives it; returns at once when it gives none."""
    text = turn.answer.content if turn.answer is not None else None
    if not turn.over or not text:
        return
    words = WORD.findall(text) or [text]
    stream.begin()
    for word in words:
        stream.add(0, word)
        await anyio.sleep(turn.over.total_seconds() / len(words))
