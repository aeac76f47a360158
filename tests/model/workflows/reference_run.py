"""A reference interpreter of workflows: recursive and synchronous, one phase after the other, nothing shared with `advance`.

It runs a workflow to its end on a table of outcomes, and says what every node came to. Conditions, prompts and items
are values of its own, which also give the text of the expression that means the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nightherd.model.workflows.definition import BlockAction, OnExhausted, OnFailure, Phase

Key = tuple[str, int, int, int]
"""Path, iteration, item, attempt."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of one attempt."""

    status: str
    output: Any = None
    exit_code: int | None = None
    is_final: bool = False


Outcomes = Callable[[Key], Outcome]


class NoValueError(Exception):
    """An expression has no value."""


@dataclass(frozen=True)
class Env:
    """What expressions see; phases by name with their status and output."""

    phases: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    item: Any = None
    iteration: int = 0
    previous: Any = None


@dataclass(frozen=True)
class Meaning:
    """An expression or template, and what it means."""

    text: str
    value: Callable[[Env], Any]


def _field(env: Env, name: str, key: str) -> Any:
    output = env.phases[name][1]
    if output is None:
        raise NoValueError
    return output[key]


def status_is(name: str, status: str) -> Meaning:
    text = f"phases.{name}.status == '{status}'"
    return Meaning(text, lambda env: env.phases[name][0] == status)


def output_is_null(name: str) -> Meaning:
    return Meaning(f"phases.{name}.output == null", lambda env: env.phases[name][1] is None)


def output_ok(name: str) -> Meaning:
    return Meaning(f"phases.{name}.output.ok", lambda env: _field(env, name, "ok"))


def output_list(name: str) -> Meaning:
    return Meaning(f"phases.{name}.output.list", lambda env: _field(env, name, "list"))


def given(name: str) -> Meaning:
    return Meaning(f"inputs.{name}", lambda env: env.inputs[name])


def iteration_below(number: int) -> Meaning:
    return Meaning(f"loop.iteration < {number}", lambda env: env.iteration < number)


def item_is(number: int) -> Meaning:
    return Meaning(f"item == {number}", lambda env: env.item == number)


def negated(inner: Meaning) -> Meaning:
    return Meaning(f"not ({inner.text})", lambda env: not inner.value(env))


def both(left: Meaning, right: Meaning) -> Meaning:
    text = f"({left.text}) and ({right.text})"
    return Meaning(text, lambda env: left.value(env) and right.value(env))


def either(left: Meaning, right: Meaning) -> Meaning:
    text = f"({left.text}) or ({right.text})"
    return Meaning(text, lambda env: left.value(env) or right.value(env))


def shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Result:
    """What became of a phase, or of a part of one."""

    status: str
    output: Any = None
    inner: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    is_tolerated: bool = False
    is_for_a_failure: bool = False
    """Skipped because something above it failed."""

    @property
    def is_good(self) -> bool:
        return self.status == "succeeded" or self.is_tolerated

    @property
    def is_bad(self) -> bool:
        return self.status in ("failed", "cancelled") and not self.is_tolerated

    @property
    def counts_as_bad(self) -> bool:
        return self.is_bad or self.is_for_a_failure


@dataclass
class Reference:
    """Runs one workflow."""

    outcomes: Outcomes
    inputs: Mapping[str, Any]
    meanings: Mapping[str, Meaning]
    """By the text of the expression or template."""
    certain: Mapping[tuple[str, ...], frozenset[str]]
    """By the names that lead to a phase: what of its block it may use."""
    nodes: dict[Key, str] = field(default_factory=dict)
    prompts: dict[Key, str] = field(default_factory=dict)

    def workflow(self, phases: tuple[Phase, ...]) -> str:
        results = self.block(phases, "", (), Env(inputs=self.inputs))
        return verdict(phases, results)

    def value(self, text: str, env: Env) -> Any:
        return self.meanings[text].value(env)

    def ended(self, key: Key, status: str) -> Result:
        self.nodes[key] = status
        return Result(status)

    def block(
        self, phases: tuple[Phase, ...], prefix: str, trail: tuple[str, ...], env: Env
    ) -> dict[str, Result]:
        names = {phase.name for phase in phases}
        around = {name: seen for name, seen in env.phases.items() if name not in names}
        results: dict[str, Result] = {}
        left = list(phases)
        while left:
            phase = next(phase for phase in left if set(phase.depends_on) <= results.keys())
            left.remove(phase)
            here = (*trail, phase.name)
            beside = {
                name: (results[name].status, results[name].output) for name in self.certain[here]
            }
            seen = replace(env, phases={**around, **beside})
            above = [results[name] for name in phase.depends_on]
            result = self.phase(phase, above, prefix + phase.name, here, seen)
            is_tolerated = result.status == "failed" and phase.on_failure is OnFailure.CONTINUE
            results[phase.name] = replace(result, is_tolerated=is_tolerated)
        return results

    def phase(
        self, phase: Phase, above: Sequence[Result], path: str, trail: tuple[str, ...], env: Env
    ) -> Result:
        key = (path, 0, -1, 1)
        reason = why_skipped(phase.trigger_rule.value, above)
        if reason is not None:
            self.nodes[key] = f"skipped: {reason}"
            return Result("skipped", is_for_a_failure=reason == "failed")
        try:
            if phase.when is not None and not self.value(phase.when, env):
                self.nodes[key] = "skipped: condition"
                return Result("skipped")
            values = None if phase.for_each is None else self.value(phase.for_each.items, env)
        except NoValueError:
            return self.ended(key, "failed")
        if values is None:
            return self.loop(phase, path, trail, -1, env)
        items = [
            self.loop(phase, path, trail, number, replace(env, item=value))
            for number, value in enumerate(values)
        ]
        statuses = {item.status for item in items}
        worst = next((word for word in ("failed", "cancelled") if word in statuses), "succeeded")
        self.nodes[key] = worst
        is_shown = worst != "cancelled"
        return Result(worst, [item.output for item in items] if is_shown else None)

    def loop(self, phase: Phase, path: str, trail: tuple[str, ...], item: int, env: Env) -> Result:
        loop = phase.loop
        if loop is None:
            return self.body(phase, path, trail, (0, item), env)
        previous: Any = None
        status: str | None = None
        for number in range(1, loop.max_iterations + 1):
            inside = replace(env, iteration=number, previous=previous)
            result = self.body(phase, path, trail, (number, item), inside)
            previous = result.output
            status = self.after(phase, path, (number, item), result, inside)
            if status is not None:
                break
        if status is None:
            status = "succeeded" if loop.on_exhausted is OnExhausted.CONTINUE else "failed"
        self.nodes[path, 0, item, 1] = status
        return Result(status, previous if status != "cancelled" else None)

    def after(
        self, phase: Phase, path: str, place: tuple[int, int], result: Result, env: Env
    ) -> str | None:
        """Return how the loop ends after an iteration; None when it goes on."""
        loop = phase.loop
        assert loop is not None
        if result.status != "succeeded":
            return result.status
        own = {phase.name: (result.status, result.output)}
        seen = replace(env, phases={**env.phases, **own, **result.inner})
        try:
            if loop.until is not None and self.value(loop.until, seen):
                return "succeeded"
        except NoValueError:
            return "failed"
        if loop.until_command is None:
            return None
        key = (f"{path}:until", *place, 1)
        answer = self.outcomes(key)
        self.nodes[key] = answer.status
        if answer.status != "succeeded":
            return answer.status
        return "succeeded" if answer.exit_code == 0 else None

    def body(
        self, phase: Phase, path: str, trail: tuple[str, ...], place: tuple[int, int], env: Env
    ) -> Result:
        number, item = place
        if not isinstance(phase.action, BlockAction):
            return self.attempts(phase, path, place, env)
        brackets = (f"[{item}]" if item >= 0 else "") + (f"[{number}]" if number else "")
        results = self.block(phase.block, f"{path}{brackets}/", trail, env)
        status = verdict(phase.block, results)
        self.nodes[path, number, item, 1] = status
        if status == "cancelled":
            return Result(status)
        inner = {name: (result.status, result.output) for name, result in results.items()}
        outputs = {inside.name: results[inside.name].output for inside in phase.block}
        return Result(status, outputs, inner)

    def attempts(self, phase: Phase, path: str, place: tuple[int, int], env: Env) -> Result:
        outcome = Outcome("failed")
        for attempt in range(1, phase.retries + 2):
            key = (path, *place, attempt)
            prompt = getattr(phase.action, "prompt", None)
            if prompt is not None:
                try:
                    self.prompts[key] = self.value(prompt, env)
                except NoValueError:
                    return self.ended(key, "failed")
            outcome = self.outcomes(key)
            self.nodes[key] = outcome.status
            if outcome.status != "failed" or outcome.is_final:
                break
        has_output = outcome.status in ("succeeded", "failed")
        return Result(outcome.status, outcome.output if has_output else None)


def why_skipped(rule: str, above: Sequence[Result]) -> str | None:
    """Return why a phase does not run: `failed` or `skipped`; None when it runs."""
    goods = [result for result in above if result.is_good]
    bads = [result for result in above if result.counts_as_bad]
    reason = "failed" if bads else "skipped"
    match rule:
        case "all_success":
            return None if len(goods) == len(above) else reason
        case "one_success":
            return None if goods else reason
        case "none_failed_min_one_success":
            return None if goods and not bads else reason
        case "one_failed":
            has_failed = bads or any(result.is_tolerated for result in above)
            return None if has_failed else "skipped"
        case "all_done":
            return None
        case _:
            raise AssertionError(rule)


def verdict(phases: Sequence[Phase], results: Mapping[str, Result]) -> str:
    """Return how a block ends: a failure counts unless a recovery phase that it set off succeeded."""

    def culprits(name: str) -> set[str]:
        result = results[name]
        if result.is_bad:
            return {name}
        if not result.is_for_a_failure:
            return set()
        (phase,) = (phase for phase in phases if phase.name == name)
        return {culprit for above in phase.depends_on for culprit in culprits(above)}

    recovered = {
        culprit
        for phase in phases
        if phase.trigger_rule.value == "one_failed" and results[phase.name].status == "succeeded"
        for name in phase.depends_on
        for culprit in culprits(name)
    }
    left = {
        result.status for name, result in results.items() if result.is_bad and name not in recovered
    }
    return next((word for word in ("failed", "cancelled") if word in left), "succeeded")
