"""Files that people changed at gates before the run had a workspace: they are written into it when it is made."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.model.secrets import MASK_BEGINS
from nightherd.model.workflows.run import RunId
from nightherd.ports import StateReader
from nightherd.views.workflows.gate_artifact import ARTIFACT


def gate_edits(run_id: RunId, reader: StateReader) -> Iterator[tuple[str, str]]:
    """Yield each file that was answered at a gate after the last job whose files the run keeps, with its text.

    A text with a masked secret is not what the file holds: nobody can have written it.
    """
    nodes = [node for node in reader.nodes_of_run(run_id) if node.ended_at is not None]
    kept = [node for node in nodes if node.kept_from is not None and node.job_id is not None]
    since = max((node.ended_at for node in kept if node.ended_at is not None), default=None)
    for node in nodes:
        is_later = since is None or (node.ended_at is not None and node.ended_at >= since)
        texts = reader.find_item_texts(node.item_id) if node.item_id and is_later else None
        if texts is None:
            continue
        file, text = texts.body.get("file"), (texts.input or {}).get(ARTIFACT)
        if isinstance(file, str) and isinstance(text, str) and MASK_BEGINS not in text:
            yield file, text
