"""`advance` and the reference interpreter agree on every workflow, in every order of ends, kills and duplicates."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.workflows.random_workflows import INPUTS, RandomWorkflow, random_workflows
from model.workflows.reference_run import Reference
from model.workflows.simulated_run import SimulatedRun, some_step, to_the_end
from nightherd.model.workflows.check import check_definition
from nightherd.model.workflows.definition import canonical_json, read_definition
from nightherd.model.workflows.finding import errors_of
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunStatus
from nightherd.model.workflows.steps import Cancel
from soak import often

EXAMPLES = settings(
    max_examples=often(400, soak=20_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000))
def test_every_order_of_ends_comes_to_what_the_reference_says(
    workflow: RandomWorkflow, seed: int
) -> None:
    definition = workflow.definition
    assert read_definition(canonical_json(definition)) == definition
    reference = Reference(
        outcomes=workflow.outcome,
        inputs=INPUTS,
        meanings=workflow.meanings,
        certain=workflow.certain,
    )
    status = reference.workflow(definition.phases)

    run = SimulatedRun(definition, INPUTS, workflow.outcome)
    to_the_end(run, Random(seed))

    assert run.outcome_of_nodes() == reference.nodes
    assert {key: text for key, text in run.prompts.items() if text} == {
        key: text for key, text in reference.prompts.items() if text
    }
    assert run.run.status.value == status
    assert (run.error is None) is (status == "succeeded")


@EXAMPLES
@given(random_workflows())
def test_random_workflows_pass_the_static_checks(workflow: RandomWorkflow) -> None:
    never = "the phase never runs"
    findings = errors_of(check_definition(workflow.definition))

    assert [one.message for one in findings if not one.message.startswith(never)] == []


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000), st.integers(0, 6))
def test_a_cancelled_run_begins_nothing_more_and_ends(
    workflow: RandomWorkflow, seed: int, steps: int
) -> None:
    run, random = SimulatedRun(workflow.definition, INPUTS, workflow.outcome), Random(seed)
    run.advance()
    for _ in range(steps):
        if RUN_LIFECYCLE.is_terminal(run.run.status):
            return
        some_step(run, random)
        run.advance()
    if RUN_LIFECYCLE.is_terminal(run.run.status):
        return
    run.run = msgspec.structs.replace(run.run, is_cancelling=True)
    before = set(run.nodes)

    while True:
        decision = run.advance()
        assert all(isinstance(step, Cancel) for step in decision.steps)
        assert run.decide().steps == ()
        if RUN_LIFECYCLE.is_terminal(run.run.status):
            break
        some_step(run, random)

    assert run.run.status is RunStatus.CANCELLED
    assert set(run.nodes) == before
    assert all(node.has_ended for node in run.nodes.values())
