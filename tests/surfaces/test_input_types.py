"""Inputs keep their JSON types in `state.json` and `jobs show`; prompts have them as text."""

from __future__ import annotations

import json
from pathlib import Path

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: counter
    runtime: scripted
    limits: {turns: 9}
    schedules:
      nightly:
        type: interval
        interval: 1h
        prompt: Count ${inputs.most}, ${inputs.dry}, ${inputs.word}.
        inputs: {most: 3, dry: true, share: 0.5, word: "7", none: null, names: [a, 1], big: 99999999999999999999}
    script: [{say: "${prompt}"}]
"""
INPUTS = {
    "most": 3,
    "dry": True,
    "share": 0.5,
    "word": "7",
    "none": None,
    "names": ["a", 1],
    "big": "99999999999999999999",
}


def test_inputs_of_a_schedule_keep_their_types(fleet: Path, cli: Cli) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET)

    cli("schedule", "run", "counter/nightly")
    assert cli("worker", "--until-idle").code == 0

    shown = cli("jobs", "show", "@last", "--json").data
    (path,) = fleet.glob(".nightherd/threads/*/state.json")
    assert shown["inputs"] == json.loads(path.read_text())["inputs"] == INPUTS
    assert shown["summary"] == "Count 3, true, 7."
    assert "most=3" in cli("jobs", "show", "@last").out
    again = cli("jobs", "retry", "@last", "--json").data
    assert cli("jobs", "show", again["id"], "--json").data["inputs"] == INPUTS
    assert cli("doctor", "--verify").code == 0
