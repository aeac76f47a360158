"""What an approval changes: the arguments of a call, or the text of a gate's artifact, from a file or an editor."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.runs.inputs import read_text
from nightherd.errors import InvalidValueError, RefusedError, UsageError
from nightherd.model.json_text import parse_json
from nightherd.views.people.inbox import find_item_id, show_item
from nightherd.views.workflows.gate_artifact import ARTIFACT
from nightherd.wiring.stores import open_reader
from nightherd.wiring.workspaces import open_artifacts

NAMED = f"{ARTIFACT}="


def read_changed(text: str, cwd: Path) -> dict[str, Any]:
    """Return the value of `--input`: a JSON object, `artifact=TEXT` or `artifact=@FILE`."""
    if text.startswith(NAMED):
        return {ARTIFACT: read_text(text.removeprefix(NAMED), cwd, f"--input {ARTIFACT}")}
    try:
        value = parse_json(text)
    except InvalidValueError as error:
        raise UsageError(f"--input is not JSON: {error.message}") from error
    if not isinstance(value, dict):
        raise UsageError("--input is not a JSON object", hint='--input \'{"command": "git push"}\'')
    return value


def edited_artifact(invocation: Invocation, reference: str) -> dict[str, Any]:
    """Let the person change the artifact of a gate in their editor; `RefusedError` when there is none to change."""
    state_dir = invocation.state_directory()
    with closing(open_reader(state_dir)) as reader:
        shown = show_item(reader, find_item_id(reader, reference), open_artifacts(state_dir))
    artifact = shown.artifact
    if artifact is None:
        raise RefusedError(f"{shown.item.id} shows no artifact that could be changed")
    if artifact.text is None:
        raise RefusedError(f"{shown.item.id}: {artifact.problem or 'its artifact is not there'}")
    suffix = Path(artifact.file).suffix if artifact.file else ".md"
    try:
        text = click.edit(artifact.text, extension=suffix, env=dict(invocation.environ))
    except click.ClickException as error:
        raise RefusedError(error.message, hint="EDITOR=vi nightherd ...") from error
    if text is None or text == artifact.text:
        raise RefusedError(
            "nothing was changed, so nothing was approved",
            hint=f"nightherd inbox approve {shown.item.id}",
        )
    return {ARTIFACT: text}
