"""A run is the same document on the command line, over the API and in the library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd import open_fleet
from surfaces.drivers import Cli
from web.run_world import serving_runs, start, work_on
from workflow_fleet import WORKFLOW_FLEET

PASSING = {"duration_seconds", "next"}
"""What depends on the moment, or is spelled as each surface spells it."""


def steady(value: Any) -> Any:
    """The document without what passes."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in PASSING}
    return [steady(one) for one in value] if isinstance(value, list) else value


async def over_the_api(directory: Path, workflow: str, **inputs: Any) -> dict[str, Any]:
    async with serving_runs(directory) as world:
        run_id = await start(world, workflow, **inputs)
        await work_on(world)
        document = (await world.get(f"/v1/runs/{run_id}")).document
    assert document["schema"] == "nightherd/v1/workflow_run"
    data = document["data"]
    assert isinstance(data, dict)
    return data


async def in_the_library(directory: Path, run_id: str) -> dict[str, Any]:
    environ = {"PATH": os.environ["PATH"]}
    async with open_fleet(directory / "nightherd.yaml", environ=environ) as fleet:
        return fleet.run_document(run_id)


@pytest.mark.parametrize(
    ("workflow", "inputs", "status"),
    [("build", {"title": "cows"}, "paused"), ("wide", {}, "succeeded"), ("failing", {}, "failed")],
)
def test_one_run_is_one_document(
    cli: Cli, fleet: Path, workflow: str, inputs: dict[str, Any], status: str
) -> None:
    (fleet / "nightherd.yaml").write_text(WORKFLOW_FLEET)
    of_api = anyio.run(lambda: over_the_api(fleet, workflow, **inputs))
    of_library = anyio.run(in_the_library, fleet, of_api["id"])
    of_command = cli("runs", "show", of_api["id"], "--json")

    assert of_command.document["schema"] == "nightherd/v1/workflow_run"
    assert steady(of_command.data) == steady(of_api) == steady(of_library)
    assert of_api["status"] == status
    assert {key for key in PASSING if key in of_api} == {
        key for key in PASSING if key in of_library
    }


def test_each_surface_spells_the_next_step_its_own_way(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(WORKFLOW_FLEET)
    of_api = anyio.run(lambda: over_the_api(fleet, "waiting"))
    of_library = anyio.run(in_the_library, fleet, of_api["id"])
    of_command = cli("runs", "show", of_api["id"], "--json").data

    steps = [one["waits_for"][0]["next"] for one in (of_command, of_api, of_library)]
    assert steps == [
        f"nightherd runs signal {of_api['id']} deployed",
        f'POST /v1/runs/{of_api["id"]}/signal with "event": "deployed"',
        f"send deployed to {of_api['id']}",
    ]


def test_lists_of_runs_and_outputs_are_the_same(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(WORKFLOW_FLEET)

    async def ask() -> tuple[list[Any], Any]:
        async with serving_runs(fleet) as world:
            run_id = await start(world, "quick")
            await work_on(world)
            listed = (await world.get("/v1/runs")).data
            return listed, (await world.get(f"/v1/runs/{run_id}/outputs/first")).data

    listed, output = anyio.run(ask)

    assert steady(cli("runs", "--json").data) == steady(listed)
    assert cli("runs", "show", "@last", "--output", "first", "--json").data == output
