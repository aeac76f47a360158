"""The pages of every key say what the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.config.json_schema import schema_of
from nightherd.config.reference import (
    BEGIN,
    END,
    keys_of,
    reference,
    updated,
    workflow_reference,
)
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import FleetSettings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.wiring.runtimes import RUNTIMES

FORMATS = Path(__file__).resolve().parents[2] / "docs" / "formats"
REFERENCES = {
    "fleet-file.md": lambda: reference([one.capabilities for one in RUNTIMES.values()]),
    "workflow-file.md": workflow_reference,
}
MODELS = {"fleet-file.md": (AgentSchema, FleetSettings), "workflow-file.md": (WorkflowFile,)}
HOW = "write it anew: PYTHONPATH=tests python -m config.test_reference_page"


@pytest.mark.parametrize("name", REFERENCES)
def test_the_page_holds_the_reference_of_this_schema(name: str) -> None:
    page = (FORMATS / name).read_text()

    assert BEGIN in page
    assert END in page
    assert page == updated(page, REFERENCES[name]()), HOW


@pytest.mark.parametrize("name", MODELS)
def test_the_page_has_a_row_for_every_key(name: str) -> None:
    page = (FORMATS / name).read_text()

    missing = [
        key.path
        for model in MODELS[name]
        for key in keys_of(schema_of(model))
        if f"| `{key.path}` |" not in page
    ]

    assert missing == []


if __name__ == "__main__":
    for name, text in REFERENCES.items():
        page = FORMATS / name
        page.write_text(updated(page.read_text(), text()))
