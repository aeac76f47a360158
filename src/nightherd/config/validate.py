"""Checking nodes against the schema: every mistake one problem, at its place, in plain words."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nightherd.config.json_schema import keys_at, schema_of
from nightherd.config.merge import to_plain
from nightherd.config.report import Findings
from nightherd.config.wording import complaint, did_you_mean, nearest
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode, Spot, problem_at
from nightherd.model.problem import MOST_PROBLEMS
from nightherd.model.text import quote

Checked = TypeVar("Checked", bound=BaseModel)
Location = tuple[str | int, ...]
INCOMPLETE = frozenset({"missing", "incomplete", "conflict"})
"""Kinds of mistakes that a layer alone cannot have: the layers above may add what is missing."""


class Target:
    """Where an error points: the node, the key before it, the mapping round it, and the path in words."""

    def __init__(self, root: Node, location: Location) -> None:
        self.node: Node = root
        self.parent: MappingNode | None = None
        self.key: ScalarNode | None = None
        self.path: list[str] = []
        self.steps: list[str | int] = []
        self.missing: str | None = None
        for step in location:
            if isinstance(step, str) and step.startswith("("):
                continue  # which form of a union was checked; not a key
            if not self.descend(step):
                break

    def descend(self, step: str | int) -> bool:
        """Go one step down; False when the document ends here."""
        if step == "[key]":
            self.node = self.key or self.node
            return False
        if isinstance(self.node, MappingNode):
            entry = self.node.entries.get(str(step))
            if entry is None:
                self.missing = str(step)
                return False
            self.parent, self.key, self.node = self.node, entry.key, entry.value
            self.path.append(entry.key.text)  # an older name as it was written
            self.steps.append(str(step))
            return True
        if isinstance(self.node, SequenceNode) and isinstance(step, int):
            self.path.append(str(step))
            self.steps.append(step)
            self.parent, self.key = None, None
            self.node = self.node.items[step]
            return True
        return False


def check(
    model: type[Checked],
    node: Node,
    findings: Findings,
    *,
    path: str,
    partial: bool = False,
    whole: type[BaseModel] | None = None,
) -> Checked | None:
    """The node as a `model`, or None with every mistake found.

    `partial` is for a layer that others complete. `whole` is the model that has all keys of the file, for
    the nearest name, when `model` has only some of them.
    """
    try:
        return model.model_validate(to_plain(node))
    except ValidationError as error:
        errors = error.errors(include_url=False)[:MOST_PROBLEMS]
        report(whole or model, node, errors, findings, path=path, partial=partial)
        return None
    except RecursionError:
        findings.add(problem_at(node, "nested too deeply", path=path))
        return None


def report(
    model: type[BaseModel],
    node: Node,
    errors: list[ErrorDetails],
    findings: Findings,
    *,
    path: str,
    partial: bool,
) -> None:
    """Put pydantic's errors into words; a key that is only misspelt is not reported as missing too."""
    guessed: set[tuple[Location, str]] = set()
    for error in errors:
        if error["type"] == "extra_forbidden":
            guess = report_unknown_key(model, node, error["loc"], findings, path)
            guessed.add((error["loc"][:-1], guess or ""))
    for error in errors:
        kind = error["type"]
        if kind == "extra_forbidden" or (partial and kind in INCOMPLETE):
            continue
        target = Target(node, error["loc"])
        if kind == "missing":
            name = str(error["loc"][-1])
            if (error["loc"][:-1], name) not in guessed:
                where = joined(path, target.path)
                findings.add(
                    problem_at(beginning(target.node), f"{quote(name)} is missing", path=where)
                )
            continue
        report_value(error, target, findings, path)


def report_unknown_key(
    model: type[BaseModel], node: Node, location: Location, findings: Findings, path: str
) -> str | None:
    """Report a key that does not exist; returns the key it was probably meant to be."""
    target = Target(node, location)
    name = str(location[-1])
    names = keys_at(schema_of(model), target.steps[:-1])
    findings.add(
        problem_at(
            target.key or target.node,
            f"unknown key {quote(name)}",
            path=joined(path, target.path),
            # A key of another kind of entry is spelt as it should be.
            hint=None if name in names else did_you_mean(name, names),
        )
    )
    return nearest(name, names)


def report_value(error: ErrorDetails, target: Target, findings: Findings, path: str) -> None:
    """Report a value that is not what its key takes."""
    context: dict[str, Any] = error.get("ctx") or {}
    where: Node | Spot = target.node
    if context.get("key"):
        inner = Target(target.node, tuple(str(context["key"]).split(".")))
        where = inner.key or inner.node
        target.path.extend(inner.path)
    elif error["type"] == "incomplete":
        where = beginning(target.node)
    message, hint = complaint(error["type"], context, target.node)
    findings.add(problem_at(where, message, path=joined(path, target.path), hint=hint))


def beginning(node: Node) -> Spot:
    """Where a mapping begins: its first key."""
    if isinstance(node, MappingNode) and node.entries:
        return min(
            (
                entry.key.spot
                for entry in node.entries.values()
                if entry.key.spot.source is node.spot.source
            ),
            key=lambda spot: (spot.line, spot.column),
            default=node.spot,
        )
    return node.spot


def joined(path: str, steps: list[str]) -> str:
    """A dotted path."""
    return ".".join([path, *steps] if path else steps)
