"""The page of every key says what the schema says."""

from __future__ import annotations

from pathlib import Path

from nightherd.config.json_schema import schema_of
from nightherd.config.reference import BEGIN, END, keys_of, updated
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import FleetSettings
from nightherd.wiring.runtimes import RUNTIMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats" / "fleet-file.md"
HOW = (
    'write it anew: python -c "from pathlib import Path; from nightherd.config.reference import updated; '
    "from nightherd.wiring.runtimes import RUNTIMES; p = Path('docs/formats/fleet-file.md'); "
    'p.write_text(updated(p.read_text(), [one.capabilities for one in RUNTIMES.values()]))"'
)


def test_the_page_holds_the_reference_of_this_schema() -> None:
    page = PAGE.read_text()

    assert BEGIN in page
    assert END in page
    assert page == updated(page, [one.capabilities for one in RUNTIMES.values()]), HOW


def test_the_page_has_a_row_for_every_key() -> None:
    page = PAGE.read_text()

    missing = [
        key.path
        for model in (AgentSchema, FleetSettings)
        for key in keys_of(schema_of(model))
        if f"| `{key.path}` |" not in page
    ]

    assert missing == []
