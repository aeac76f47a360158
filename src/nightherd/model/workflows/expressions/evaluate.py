"""Evaluating a checked expression: a value, or why there is none. Nothing is guessed and no error is absorbed.

`and` and `or` evaluate from left to right and stop as soon as the answer is known, as Python does: what is not
reached is not evaluated, and cannot fail. An absent field is an error, not null; only a declared optional field is null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nightherd.model.text import quote
from nightherd.model.workflows.expressions.tree import (
    Comparison,
    Literal,
    Logic,
    Membership,
    Minus,
    Not,
    Path,
    Step,
    Tree,
    path_text,
)
from nightherd.model.workflows.expressions.types import ANY, Kind, Names, Type, described, kind_of

ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class EvaluationError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an expression has no value. A value itself: the phase fails and shows the message."""

    message: str
    start: int = 0
    end: int = 0


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The values that exist where an expression is evaluated."""

    names: Names
    values: Mapping[str, Any]
    untrusted: frozenset[tuple[str | int, ...]] = frozenset({("trigger", "payload")})
    """Paths whose values other people wrote; everything below them too, and what holds them."""

    def is_untrusted(self, path: tuple[str | int, ...]) -> bool:
        """Return whether what stands at `path` comes from other people, or a part of it."""
        return any(path[: len(prefix)] == prefix[: len(path)] for prefix in self.untrusted)


class _NoValueError(Exception):
    """Carries an `EvaluationError` out of the evaluation."""

    def __init__(self, part: Tree | Step, message: str) -> None:
        self.error = EvaluationError(message=message, start=part.start, end=part.end)
        super().__init__(message)


def evaluate(tree: Tree, scope: Scope) -> Any | EvaluationError:
    """Return the value of an expression, or why it has none."""
    try:
        return _value(tree, scope)
    except _NoValueError as error:
        return error.error
    except RecursionError:
        message = "the values are nested too deeply"
        return EvaluationError(message=message, start=tree.start, end=tree.end)


def evaluate_condition(tree: Tree, scope: Scope) -> bool | EvaluationError:
    """Return the value of an expression that must be true or false."""
    value = evaluate(tree, scope)
    if isinstance(value, bool | EvaluationError):
        return value
    message = f"a condition is true or false; this is {described(value)}"
    return EvaluationError(message=message, start=tree.start, end=tree.end)


def equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are the same; true is not 1."""
    kind = kind_of(left)
    if kind is not kind_of(right):
        return False
    match kind:
        case Kind.LIST:
            return len(left) == len(right) and all(map(equal, left, right))
        case Kind.OBJECT:
            return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
        case _:
            return bool(left == right)


def _value(tree: Tree, scope: Scope) -> Any:
    match tree:
        case Literal():
            return tree.value
        case Path():
            return _path(tree, scope)
        case Not():
            return not _condition(tree.operand, scope)
        case Logic():
            stops_at = tree.operator == "or"
            return (
                stops_at
                if any(_condition(operand, scope) is stops_at for operand in tree.operands)
                else not stops_at
            )
        case Minus():
            value = _value(tree.operand, scope)
            if kind_of(value) is not Kind.NUMBER:
                raise _NoValueError(tree.operand, f"'-' takes a number, not {described(value)}")
            return -value
        case Comparison():
            return _comparison(tree, scope)
        case Membership():
            return _contains(tree, scope) is not tree.is_negated


def _condition(tree: Tree, scope: Scope) -> bool:
    value = _value(tree, scope)
    if isinstance(value, bool):
        return value
    raise _NoValueError(tree, f"a condition is true or false; this is {described(value)}")


def _comparison(tree: Comparison, scope: Scope) -> bool:
    left, right = _value(tree.left, scope), _value(tree.right, scope)
    if tree.operator in ("==", "!="):
        return equal(left, right) is (tree.operator == "==")
    if kind_of(left) is kind_of(right) and kind_of(left) in (Kind.NUMBER, Kind.TEXT):
        return ORDERINGS[tree.operator](left, right)
    message = f"'{tree.operator}' cannot order {described(left)} and {described(right)}"
    raise _NoValueError(tree, message)


def _contains(tree: Membership, scope: Scope) -> bool:
    element, container = _value(tree.element, scope), _value(tree.container, scope)
    match kind_of(container), kind_of(element):
        case (Kind.LIST, _):
            return any(equal(item, element) for item in container)
        case (Kind.TEXT | Kind.OBJECT, Kind.TEXT):
            return element in container
        case (Kind.TEXT | Kind.OBJECT, _):
            message = f"{described(container)} contains texts, not {described(element)}"
            raise _NoValueError(tree.element, message)
        case _:
            message = f"texts, lists and objects contain something; this is {described(container)}"
            raise _NoValueError(tree.container, message)


def _path(tree: Path, scope: Scope) -> Any:
    value, known = scope.values.get(tree.root), scope.names.types.get(tree.root)
    if known is None:
        raise _NoValueError(tree, f"there is no {tree.root}")
    for position, step in enumerate(tree.steps):
        if value is None and known.is_soft:
            return None
        value, known = _step(value, known, step, path_text(tree.names[: position + 1]))
    return value


def _step(value: Any, known: Type, step: Step, owner: str) -> tuple[Any, Type]:
    match value, step.name:
        case (Mapping(), str() as name):
            inner = (known.fields or {}).get(name, ANY)
            if name in value:
                return value[name], inner
            if inner.is_optional:
                return None, inner
            raise _NoValueError(step, f"{owner} has no field {quote(name)}")
        case (list() | tuple(), int() as index):
            if -len(value) <= index < len(value):
                return value[index], known.item or ANY
            raise _NoValueError(step, f"{owner} has {len(value)} items and no [{index}]")
        case (list() | tuple() | Mapping(), _):
            raise _NoValueError(step, f"{owner} is {described(value)} and has no {step.name!r}")
        case (None, _):
            raise _NoValueError(step, f"{owner} is null and has no fields")
        case _:
            raise _NoValueError(step, f"{owner} is {described(value)} and has no fields")
