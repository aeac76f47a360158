"""What the phases of a workflow do, from their checked keys: actions, prompts from files, and `review` written out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from nightherd.config.documents import UnreadableError, decode, read_bytes
from nightherd.config.merge import absolute_path
from nightherd.config.report import Findings
from nightherd.config.resolve_agent import json_inputs
from nightherd.config.schema.phase import (
    AgentPhase,
    BashPhase,
    GatePhase,
    PythonPhase,
    WaitPhase,
    WorkflowPhase,
)
from nightherd.config.schema.phase_parts import AgentWork, Output, Review, RunLimits
from nightherd.config.schema.phase_parts import Artifact as ArtifactSchema
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.config.workflows.places import Places, RawText, value_at
from nightherd.config.workflows.skills import Skills
from nightherd.config.workflows.sources import WorkflowHome
from nightherd.files.yaml_nodes import MappingNode, ScalarNode, problem_at
from nightherd.model.limits.limits import NO_LIMITS, LimitName, Limits, OnLimit
from nightherd.model.problem import Problem
from nightherd.model.text import quote
from nightherd.model.workflows.check import OWN_SESSION
from nightherd.model.workflows.definition import (
    AgentAction,
    Artifact,
    ArtifactKind,
    BlockAction,
    CommandAction,
    GateAction,
    GateKind,
    Language,
    Loop,
    OnExhausted,
    OnInterrupt,
    Phase,
    WaitAction,
    WorkflowAction,
)
from nightherd.model.workflows.finding import DefinitionPath

REVIEW_OUTPUT = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether nothing has to be changed."},
        "comments": {"type": "string", "description": "What has to be changed."},
    },
    "required": ["approved", "comments"],
}
"""What a review answers."""


class ActionResolver(msgspec.Struct):
    """Turns the checked keys of phases into actions, and remembers where each part stands."""

    findings: Findings
    home: WorkflowHome
    skills: Skills
    places: Places
    where: str
    """What the workflow is called in problems."""

    def agent(self, phase: AgentPhase, node: MappingNode, path: DefinitionPath) -> AgentAction:
        """A job of an agent."""
        self.places.put((*path, "output"), value_at(node, "output"))
        return self.work(phase, node, path, output=resolve_output(phase.output))

    def work(
        self,
        work: AgentWork,
        node: MappingNode,
        path: DefinitionPath,
        *,
        output: Mapping[str, object] | None = None,
    ) -> AgentAction:
        """What an agent is asked."""
        for key in ("agent", "prompt", "session"):
            self.places.put((*path, key), value_at(node, key))
        prompt = work.prompt or ""
        file = node.get("prompt_file")
        if work.prompt_file is not None and isinstance(file, ScalarNode):
            prompt = self.prompt_file(file, path, needs_text=work.skill is None)
        agent, skill = self.home.qualified(work.agent), node.get("skill")
        skill_text = ""
        if work.skill is not None and isinstance(skill, ScalarNode):
            skill_text = self.skills.text(skill, agent, self.where)
        return AgentAction(
            agent=agent,
            prompt=prompt,
            skill=work.skill,
            skill_text=skill_text,
            model=work.model,
            limits=resolve_run_limits(work.limits),
            session=None if work.session in (None, OWN_SESSION) else work.session,
            output=output,
        )

    def prompt_file(self, named_by: ScalarNode, path: DefinitionPath, *, needs_text: bool) -> str:
        """Return the text of the file that holds a prompt; mistakes in it are shown there."""
        file = absolute_path(named_by, self.home.environ)
        self.findings.opened(file)
        try:
            decoded = decode(file, read_bytes(file))
        except UnreadableError as error:
            name = quote(named_by.shown, limit=SHOWN_PATH_LIMIT)
            message = f"the file {name} cannot be read: {error}"
            self.findings.add(problem_at(named_by, message, path=self.where))
            return ""
        if isinstance(decoded, Problem):
            self.findings.add(replace(decoded, path=self.where))
            return ""
        source, text = decoded
        if needs_text and not text.strip():
            name = quote(named_by.shown, limit=SHOWN_PATH_LIMIT)
            self.findings.add(problem_at(named_by, f"the file {name} is empty", path=self.where))
        self.places.put((*path, "prompt"), RawText(source, text))
        return text

    def command(
        self, phase: BashPhase | PythonPhase, node: MappingNode, path: DefinitionPath
    ) -> CommandAction:
        """A command."""
        language = Language.BASH if isinstance(phase, BashPhase) else Language.PYTHON
        text = phase.bash if isinstance(phase, BashPhase) else phase.python
        self.places.put((*path, "command"), value_at(node, language.value))
        for key in ("env", "stdin", "output", "container"):
            self.places.put((*path, key), value_at(node, key))
        return CommandAction(
            language=language,
            command=text,
            env=dict(phase.env),
            stdin=phase.stdin,
            on_interrupt=OnInterrupt(phase.on_interrupt),
            output=resolve_output(phase.output),
            container=self.place(phase.container),
        )

    def place(self, container: str | bool | None) -> str | bool | None:
        """Where a command runs: an agent is meant of the same fleet."""
        return self.home.qualified(container) if isinstance(container, str) else container

    def workflow(
        self, phase: WorkflowPhase, node: MappingNode, path: DefinitionPath
    ) -> WorkflowAction:
        """A run of another workflow; which one that is, is known when all are read."""
        for key in ("workflow", "inputs"):
            self.places.put((*path, key), value_at(node, key))
        return WorkflowAction(
            workflow=self.home.qualified(phase.workflow), inputs=json_inputs(phase.inputs)
        )

    def gate(self, phase: GatePhase, node: MappingNode, path: DefinitionPath) -> GateAction:
        """A wait for a person."""
        gate = phase.gate
        for key in ("summary", "artifact", "quorum"):
            self.places.put((*path, key), value_at(node, "gate", key))
        return GateAction(
            gate=GateKind(gate.kind),
            summary=gate.summary,
            artifact=resolve_artifact(gate.artifact),
            approvers=gate.approvers,
            quorum=gate.quorum,
            expires=gate.expires,
            remind=gate.remind,
        )

    def wait(self, phase: WaitPhase, node: MappingNode, path: DefinitionPath) -> WaitAction:
        """A wait for a time or an event."""
        wait = phase.wait
        self.places.put((*path, "duration"), value_at(node, "wait", "for"))
        self.places.put((*path, "until"), value_at(node, "wait", "until"))
        return WaitAction(duration=wait.duration, until=wait.until, event=wait.event)

    def review(
        self, review: Review, node: MappingNode, path: DefinitionPath
    ) -> tuple[BlockAction, Loop]:
        """Write `review` out: a loop that reviews, and fixes unless it approves or was the last.

        So nothing that was fixed goes on without a review.
        """
        phases = (*path, "phases")
        self.places.put(path, node)
        fix_node = node.get("fix")
        assert isinstance(fix_node, MappingNode)  # noqa: S101 (the schema has checked it)
        self.places.put((*phases, 1), fix_node)
        looks = self.work(review, node, (*phases, 0, "action"), output=REVIEW_OUTPUT)
        repairs = self.work(review.fix, fix_node, (*phases, 1, "action"))
        has_more = f"loop.iteration < {review.max_cycles}"
        block = BlockAction(
            phases=(
                Phase(name="review", action=looks),
                Phase(
                    name="fix",
                    action=repairs,
                    depends_on=("review",),
                    when=f"not phases.review.output.approved and {has_more}",
                ),
            )
        )
        loop = Loop(
            max_iterations=review.max_cycles,
            until="phases.review.output.approved",
            fresh_context=review.fresh_context,
            on_exhausted=OnExhausted(review.on_exhausted),
        )
        return block, loop


def resolve_output(output: Output) -> Mapping[str, object] | None:
    """Return the JSON Schema of an output; None for text."""
    return None if output is None else json_inputs(output)


def resolve_artifact(artifact: ArtifactSchema | None) -> Artifact | None:
    """Return what a gate shows."""
    if artifact is None:
        return None
    if artifact.file is not None:
        return Artifact(kind=ArtifactKind.FILE, file=artifact.file)
    if artifact.diff:
        return Artifact(kind=ArtifactKind.DIFF)
    return Artifact(kind=ArtifactKind.OUTPUT, phase=artifact.phase)


def resolve_run_limits(limits: RunLimits | None) -> Limits:
    """Return what a run or a phase may use."""
    if limits is None:
        return NO_LIMITS
    is_fatal = limits.on_reached == "fail"
    return Limits(
        spend=limits.spend,
        turns=limits.turns,
        tokens=limits.tokens,
        spawns=limits.spawns,
        depth=limits.depth,
        duration=limits.duration,
        outcomes=dict.fromkeys(LimitName, OnLimit.FAIL) if is_fatal else {},
    )
