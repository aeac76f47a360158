"""Random workflows: every rule, condition, loop, `for_each`, retry and block, with the meaning of each expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st

from model.workflows.reference_run import (
    Env,
    Key,
    Meaning,
    Outcome,
    both,
    either,
    given,
    item_is,
    iteration_below,
    negated,
    output_is_null,
    output_list,
    output_ok,
    shown,
    status_is,
)
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    ForEach,
    GateAction,
    Loop,
    OnExhausted,
    OnFailure,
    Phase,
    TriggerRule,
    UntilCommand,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.triggers import InputSpec, InputType

OUTPUT = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "v": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["ok", "v", "list"],
}
INPUTS: dict[str, Any] = {"yes": True, "no": False, "none": [], "two": [0, 1], "three": [2, 0, 1]}
SPECS = {
    name: InputSpec(
        type=InputType.LIST if isinstance(value, list) else InputType.BOOLEAN, required=True
    )
    for name, value in INPUTS.items()
}
EAGER = (TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED)
ENDED = ("succeeded", "failed", "skipped")


@dataclass
class Drawing:
    """A workflow while it is drawn."""

    draw: st.DrawFn
    meanings: dict[str, Meaning] = field(default_factory=dict)
    certain: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    left: int = 12
    """How many more phases may be drawn."""

    def chance(self, out_of: int) -> bool:
        return self.draw(st.integers(1, out_of)) == out_of

    def means(self, meaning: Meaning) -> str:
        self.meanings[meaning.text] = meaning
        return meaning.text

    def condition(self, seen: dict[str, bool], place: Place) -> Meaning:
        """A condition over the phases that are `seen`; True for those whose output has fields."""
        choices = [given("yes"), given("no")]
        for name, has_fields in seen.items():
            choices += [status_is(name, status) for status in ENDED]
            choices.append(output_is_null(name))
            if has_fields:
                choices += [output_ok(name)] * 2
        if place.has_item:
            choices += [item_is(0), item_is(1)]
        if place.has_loop:
            choices += [iteration_below(2), iteration_below(3)]
        first = self.draw(st.sampled_from(choices))
        match self.draw(st.sampled_from(["one", "one", "not", "and", "or"])):
            case "not":
                return negated(first)
            case "and":
                return both(first, self.draw(st.sampled_from(choices)))
            case "or":
                return either(first, self.draw(st.sampled_from(choices)))
            case _:
                return first

    def prompt(self, seen: dict[str, bool], place: Place) -> Meaning:
        names = self.draw(st.lists(st.sampled_from(sorted(seen)), max_size=2)) if seen else []
        text = "do " + "".join(f"[${{phases.{name}.output}}]" for name in names)
        text += "<${item}>" if place.has_item else ""
        text += "(${loop.iteration} ${loop.previous})" if place.has_loop else ""

        def value(env: Env) -> str:
            words = [f"[{shown(env.phases[name][1])}]" for name in names]
            words.append(f"<{shown(env.item)}>" if place.has_item else "")
            words.append(f"({env.iteration} {shown(env.previous)})" if place.has_loop else "")
            return "do " + "".join(words)

        return Meaning(text, value)

    def block(
        self, trail: tuple[str, ...], around: dict[str, bool], place: Place
    ) -> tuple[Phase, ...]:
        count = self.draw(st.integers(1, min(4, max(self.left, 1))))
        self.left -= count
        names = [f"p{number}" for number in range(count)]
        before: dict[str, set[str]] = {}
        fields: dict[str, bool] = {}
        phases: list[Phase] = []
        for number, name in enumerate(names):
            needs = (
                self.draw(st.lists(st.sampled_from(names[:number]), unique=True)) if number else []
            )
            rule = self.draw(st.sampled_from(TriggerRule)) if needs else TriggerRule.ALL_SUCCESS
            sets = [before[above] | {above} for above in needs]
            is_certain = len(sets) == 1 or rule not in EAGER
            before[name] = set().union(*sets) if is_certain else set.intersection(*sets)
            here = (*trail, name)
            self.certain[here] = frozenset(before[name])
            seen = {other: has for other, has in around.items() if other not in names}
            seen |= {other: fields[other] for other in before[name]}
            phase = self.phase(here, seen, place, tuple(needs), rule)
            fields[name] = isinstance(phase.action, AgentAction) and phase.for_each is None
            phases.append(phase)
        return tuple(self.draw(st.permutations(phases)))

    def phase(
        self,
        trail: tuple[str, ...],
        seen: dict[str, bool],
        place: Place,
        needs: tuple[str, ...],
        rule: TriggerRule,
    ) -> Phase:
        when = self.means(self.condition(seen, place)) if self.chance(3) else None
        for_each = None
        if self.chance(4):
            lists = [given("none"), given("two"), given("three")]
            lists += [output_list(name) for name, has_fields in seen.items() if has_fields]
            items = self.means(self.draw(st.sampled_from(lists)))
            for_each = ForEach(items=items, max_parallel=self.draw(st.integers(1, 3)))
        has_loop = self.chance(4)
        inside = Place(
            depth=place.depth + 1,
            has_item=place.has_item or for_each is not None,
            has_loop=place.has_loop or has_loop,
        )
        action = self.action(trail, seen, inside)
        retries = self.draw(st.sampled_from([0, 0, 1, 2]))
        return Phase(
            name=trail[-1],
            action=action,
            depends_on=needs,
            trigger_rule=rule,
            when=when,
            for_each=for_each,
            loop=self.loop(trail[-1], action, seen, inside) if has_loop else None,
            retries=retries if isinstance(action, AgentAction | WorkflowAction) else 0,
            on_failure=self.draw(
                st.sampled_from([OnFailure.FAIL, OnFailure.FAIL, OnFailure.CONTINUE])
            ),
        )

    def action(
        self, trail: tuple[str, ...], seen: dict[str, bool], inside: Place
    ) -> AgentAction | BlockAction | GateAction | WaitAction | WorkflowAction:
        kinds = ["agent"] * 5 + ["gate", "wait", "child"]
        if inside.depth < 3 and self.left > 0:
            kinds += ["block"] * 3
        match self.draw(st.sampled_from(kinds)):
            case "block":
                return BlockAction(phases=self.block(trail, seen, inside))
            case "gate":
                return GateAction()
            case "wait":
                return WaitAction(duration="1h")
            case "child":
                return WorkflowAction(workflow="other")
            case _:
                prompt = self.means(self.prompt(seen, inside))
                return AgentAction(agent="a", prompt=prompt, output=OUTPUT)

    def loop(self, name: str, action: Any, seen: dict[str, bool], inside: Place) -> Loop:
        own = {name: isinstance(action, AgentAction)}
        if isinstance(action, BlockAction):
            own |= {
                phase.name: isinstance(phase.action, AgentAction) and phase.for_each is None
                for phase in action.phases
            }
        ways = self.draw(st.sampled_from(["until", "until", "command", "both"]))
        condition = self.condition({**seen, **own}, inside)
        return Loop(
            max_iterations=self.draw(st.integers(1, 3)),
            until=self.means(condition) if ways != "command" else None,
            until_command=UntilCommand(command="make test") if ways != "until" else None,
            on_exhausted=self.draw(st.sampled_from(OnExhausted)),
        )


@dataclass(frozen=True)
class Place:
    """Where in a workflow something is drawn."""

    depth: int = 0
    has_item: bool = False
    has_loop: bool = False


@dataclass(frozen=True)
class RandomWorkflow:
    """A workflow, what its expressions mean, and what becomes of each attempt."""

    definition: WorkflowDefinition
    meanings: dict[str, Meaning]
    certain: dict[tuple[str, ...], frozenset[str]]
    seed: int
    failures: int
    """How many of ten attempts fail."""

    def outcome(self, key: Key) -> Outcome:
        """Return what becomes of an attempt: always the same for the same key."""
        digest = sha256(f"{self.seed} {key}".encode()).digest()
        path = key[0]
        is_failed = digest[0] % 10 < self.failures
        if digest[1] % 40 == 0:
            return Outcome("cancelled")
        if path.endswith(":until"):
            return Outcome("failed" if is_failed else "succeeded", exit_code=digest[2] % 2)
        output = {
            "ok": digest[3] % 2 == 0,
            "v": "ab"[digest[4] % 2],
            "list": list(range(digest[5] % 3)),
        }
        if not is_failed:
            return Outcome("succeeded", output)
        has_output, is_final = digest[6] % 3 == 0, digest[7] % 5 == 0
        return Outcome("failed", output if has_output else None, is_final=is_final)


@st.composite
def random_workflows(draw: st.DrawFn) -> RandomWorkflow:
    random = Drawing(draw)
    phases: Sequence[Phase] = random.block((), {}, Place())
    definition = WorkflowDefinition(name="random", phases=tuple(phases), inputs=SPECS)
    return RandomWorkflow(
        definition=definition,
        meanings=random.meanings,
        certain=random.certain,
        seed=draw(st.integers(0, 1_000_000)),
        failures=draw(st.sampled_from([0, 2, 5])),
    )
