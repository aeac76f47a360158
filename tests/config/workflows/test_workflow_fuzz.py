"""Workflow files that say anything at all: problems with places, never a crash."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.workflows.workflow_folder import WorkflowFolder
from nightherd.model.workflows.definition import canonical_json, read_definition
from soak import often

KEYS = [
    *("name", "phases", "inputs", "triggers", "on", "concurrency", "limits", "agent", "prompt"),
    *(
        "bash",
        "python",
        "workflow",
        "gate",
        "wait",
        "review",
        "fix",
        "loop",
        "until",
        "when",
        "env",
    ),
    *("until_command", "for_each", "items", "depends_on", "trigger_rule", "output", "type", "key"),
    *("properties", "required", "messages", "on_start", "summary", "artifact", "phase", "file"),
    *("session", "max_iterations", "max_parallel", "retries", "stdin", "schedules", "webhooks"),
    *("default", "prompt_file", "for", "event", "cron", "interval", "a", "b", "title", "chat"),
]
WORDS = [
    *(
        "a",
        "b",
        "w",
        "coder",
        "reviewer",
        "text",
        "list",
        "object",
        "string",
        "1h",
        "own",
        "github",
    ),
    *("all_done", "one_failed", "phases.a.output", "inputs.title", "item == 1", "not (", "'", ""),
    *(
        "${",
        "${inputs.title}",
        "${phases.a.output.x}",
        "${loop.previous}",
        "$${",
        "diff",
        "\n",
        "é",
    ),
]
LEAVES = (
    st.sampled_from(WORDS) | st.integers(-2, 1_001) | st.booleans() | st.none() | st.floats(-1, 1)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
VERBS = st.one_of(
    st.fixed_dictionaries({"agent": st.just("coder"), "prompt": st.sampled_from(WORDS)}),
    st.fixed_dictionaries({"bash": st.sampled_from(WORDS)}),
    st.fixed_dictionaries({"wait": LEAVES}),
    st.fixed_dictionaries({"gate": st.fixed_dictionaries({"summary": st.sampled_from(WORDS)})}),
    st.fixed_dictionaries({"workflow": st.sampled_from(["w", "x"])}),
)
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "depends_on": st.lists(st.sampled_from("abc"), max_size=2),
        "when": st.sampled_from(WORDS),
        "for_each": st.sampled_from(WORDS) | VALUES,
        "loop": st.fixed_dictionaries({"max_iterations": LEAVES, "until": st.sampled_from(WORDS)}),
        "output": VALUES,
        "retries": LEAVES,
        "messages": VALUES,
    },
)


def phase(name: str, verb: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, **verb, **more}


PHASES = st.lists(st.builds(phase, st.sampled_from("abc"), VERBS, EXTRAS), max_size=3)
NESTED = st.lists(
    st.builds(phase, st.sampled_from("abc"), VERBS, EXTRAS)
    | st.builds(phase, st.sampled_from("abc"), st.builds(lambda inner: {"phases": inner}, PHASES), EXTRAS),
    max_size=4,
)  # fmt: skip
DOCUMENTS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"phases": VALUES}),
    st.fixed_dictionaries({"phases": NESTED}, optional={"inputs": VALUES, "on": VALUES}),
)


@settings(
    max_examples=often(300, soak=20_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(DOCUMENTS)
def test_any_document_is_a_workflow_or_has_problems_with_places(document: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        flows = WorkflowFolder(Path(directory))
        text = json.dumps(document, indent=1, ensure_ascii=False)
        flows.workflow(text)

        loaded = flows.load()

        problems = flows.findings.errors
        lines = text.split("\n")
        for problem in problems:
            assert 1 <= problem.place.line <= len(lines)
            assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1
        if not problems:
            definition = loaded["w"].definition
            assert read_definition(canonical_json(definition)) == definition
