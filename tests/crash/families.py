"""Families: a job and the child that it has a part of its work done by, and what has to be true of both."""

from __future__ import annotations

from collections.abc import Sequence

from crash.ground import Ground, check_calls
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.wiring.stores import open_reader

TURN_COST = 1_000
TURNS = {"boss": 3, "helper": 3}
FLEET = """\
lease: 5m
mirror: false
limits: {per_day: 1000}
agents:
  - name: boss
    runtime: native
    allowed_tools: [Edit, Spawn]
    instances: {max_concurrent: 2}
    script:
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "one ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - tool: Spawn
        input: {agent: helper, prompt: "${inputs.tag}-child"}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: done
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
  - name: helper
    runtime: native
    allowed_tools: [Edit]
    instances: {max_concurrent: 2}
    script:
      - tool: Edit
        input: {file_path: "counter-${prompt}", old_string: ".", new_string: "early ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - sleep: 1ms
      - tool: Edit
        input: {file_path: "counter-${prompt}", old_string: ".", new_string: "late ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: helped
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
"""


def lay_counters(ground: Ground, *tags: str) -> None:
    for tag in tags:
        ground.lay_counter(tag)
        ground.lay_counter(f"{tag}-child")


def families(ground: Ground) -> dict[str, tuple[Job, Job | None]]:
    """Every parent by its tag, with its child if it has one; never two."""
    reader = open_reader(ground.state)
    try:
        found: dict[str, tuple[Job, Job | None]] = {}
        for job in reader.list_jobs(JobQuery(limit=1_000)):
            texts = reader.find_texts(job.id)
            assert texts is not None
            if job.parent_job_id is None:
                children = reader.jobs_of_parent(job.id)
                assert len(children) <= 1, "one child for one call"
                assert texts.inputs["tag"] not in found
                found[texts.inputs["tag"]] = (job, children[0] if children else None)
        return found
    finally:
        reader.close()


def check_family_is_done(ground: Ground, tag: str, parent: Job, child: Job | None) -> None:
    """Both have done everything once; a call that has a child has its answer."""
    check_is_done(parent, ground.journal(parent))
    check_calls(ground, tag, edits_in(ground.journal(parent)))
    (answer,) = spawned_in(ground.journal(parent))
    if child is None:
        assert not answer.success, "the call was cut off before it had a child"
        return
    check_is_done(child, ground.journal(child))
    check_calls(ground, f"{tag}-child", ground.journal(child))
    assert (answer.success, answer.result) == (True, "helped")


def check_is_done(job: Job, events: Sequence[Event]) -> None:
    """Every turn once, in order, and what the model was asked for is what was paid."""
    assert (job.status, job.turns) == (JobStatus.COMPLETED, TURNS[job.agent]), job
    whole = [
        event.turn
        for event in events
        if isinstance(event, AssistantEvent | ToolUseEvent) and event.end
    ]
    assert whole == [*range(1, TURNS[job.agent] + 1)]
    assert job.cost_microusd == asked_in(events) * TURN_COST


def asked_in(events: Sequence[Event]) -> int:
    """How often the model answered."""
    return sum(isinstance(event, AssistantEvent) and event.usage is not None for event in events)


def edits_in(events: Sequence[Event]) -> list[Event]:
    """The events but for calls of children and what came of them."""
    calls = {
        event.tool_use_id
        for event in events
        if isinstance(event, ToolUseEvent) and event.tool_name == "Spawn"
    }
    return [
        event
        for event in events
        if not (isinstance(event, ToolUseEvent | ToolResultEvent) and event.tool_use_id in calls)
    ]


def spawned_in(events: Sequence[Event]) -> list[ToolResultEvent]:
    """What came of the calls that have children."""
    left = edits_in(events)
    return [one for one in events if isinstance(one, ToolResultEvent) and one not in left]
