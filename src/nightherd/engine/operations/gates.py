"""Answering gates: the artifact as it is then, or as the person left it, goes with the answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from anyio import to_thread

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.requests import Answer
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.inbox.item import InboxItem, InboxTexts, Verdict
from nightherd.model.workflows.definition import ArtifactKind
from nightherd.next_step import Action, NextStep
from nightherd.views.workflows.gate_artifact import (
    ARTIFACT,
    directory_of_run,
    gate_artifact,
    has_directory,
    is_gate,
)

DECIDING = (Verdict.APPROVE, Verdict.REPLY)
"""Answers with which an artifact goes on to the next phase."""


def check_gate_input(given: Mapping[str, Any], item: InboxItem, texts: InboxTexts) -> None:
    """`InvalidValueError` unless the input is the text of the gate's artifact.

    `RefusedError` where several people have to approve: nobody would know which text the others have seen.
    """
    if "artifact_kind" not in texts.body:
        raise InvalidValueError(f"{item.id} shows no artifact that could be changed")
    if set(given) != {ARTIFACT} or not isinstance(given[ARTIFACT], str):
        raise InvalidValueError(f"a gate takes the text of its {ARTIFACT}, and nothing else")
    if item.quorum > 1:
        raise RefusedError(
            f"{item.id} needs {item.quorum} people: they approve the same text, or one rejects",
            next_step=NextStep(Action.SHOW_INBOX_ITEM, item=item.id),
        )


async def gate_input(
    request: Answer, item: InboxItem, texts: InboxTexts, context: FleetContext
) -> dict[str, Any] | None:
    """Return the input to record with an answer to a gate.

    A file that the person changed is replaced in the run's directory before the answer is on record. If the run has
    no workspace yet, it is written when that is made.
    `RefusedError` when the artifact cannot be read and the person gave no text for it.
    """
    is_open = item.is_pending and _may_answer(request, item, texts, context.clock.now())
    if not is_gate(item) or request.verdict not in DECIDING or not is_open:
        return request.input
    return await to_thread.run_sync(_gate_input, request, item, texts, context)


def _gate_input(
    request: Answer, item: InboxItem, texts: InboxTexts, context: FleetContext
) -> dict[str, Any] | None:
    kind = texts.body.get("artifact_kind")
    is_file = kind == ArtifactKind.FILE.value
    if request.input is not None:
        if is_file and context.artifacts is not None and has_directory(item, context.reader):
            directory = directory_of_run(item, context.reader, context.artifacts.files)
            file, text = str(texts.body.get("file") or ""), request.input[ARTIFACT]
            context.artifacts.files.write(directory, file, text)
        return request.input
    shown = gate_artifact(item, texts, context.reader, context.artifacts)
    if shown is None or shown.kind is ArtifactKind.OUTPUT or context.artifacts is None:
        return None
    if shown.text is None:
        hint = f"reject it, or give the text with --input {ARTIFACT}=@FILE" if is_file else None
        raise RefusedError(f"{item.id}: {shown.problem}", hint=hint)
    return {ARTIFACT: context.secrets.mask(shown.text)}


def _may_answer(request: Answer, item: InboxItem, texts: InboxTexts, at: datetime) -> bool:
    """Whether the answer would count; else nothing is read or written, and recording it says why."""
    if texts.approvers and request.by not in texts.approvers:
        return False
    if request.seen_hash is not None and request.seen_hash != item.hash:
        return False
    return item.expires_at is None or item.expires_at > at
