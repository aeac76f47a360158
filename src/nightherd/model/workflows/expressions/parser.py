"""Parsing expressions: Python's own grammar, of which only a small part is allowed.

Paths, comparisons, `and`/`or`/`not`, `in`, `.contains()`, texts, numbers and true/false/null. Everything else is a
mistake with its place: no calls, no arithmetic, no lists, no chained comparisons.
"""

from __future__ import annotations

import ast

import msgspec

from nightherd.model.workflows.expressions.lexer import MistakeError, Words, read_words, refuse
from nightherd.model.workflows.expressions.tree import (
    Comparison,
    Literal,
    Logic,
    Membership,
    Minus,
    Mistake,
    Not,
    Path,
    Step,
    Tree,
)

DEEPEST = 50
CONSTANTS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
CONTAINS = "contains"
NOT_ALLOWED = "this is not part of expressions"
ALLOWED = (
    "paths, comparisons, and/or/not, in, .contains(), texts, numbers, true, false and null are"
)


def parse(text: str) -> Tree | Mistake:
    """Return the tree of an expression, or what is wrong with it."""
    try:
        return _Parser(text, read_words(text)).tree()
    except MistakeError as error:
        return error.mistake


class _Parser(msgspec.Struct):
    """Turns Python's tree of one expression into ours."""

    text: str
    words: Words
    shift: int = 0
    """Characters before the expression: Python's columns begin after them."""

    def tree(self) -> Tree:
        masked = self.words.masked.strip()
        if not masked:
            raise refuse("the expression is empty", 0)
        self.shift = len(self.words.masked) - len(self.words.masked.lstrip())
        try:
            parsed = ast.parse(masked, mode="eval")
        except SyntaxError as error:
            place = self.shift + max((error.offset or 1) - 1, 0)
            last = max(len(self.text) - 1, 0)
            raise refuse("the expression cannot be read here", min(place, last)) from None
        except (RecursionError, MemoryError, ValueError):
            raise refuse("the expression is nested too deeply", 0) from None
        return self.node(parsed.body, 1)

    def place(self, node: ast.expr) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        return self.shift + node.col_offset, self.shift + (node.end_col_offset or node.col_offset)

    def refused(self, node: ast.expr, message: str, hint: str | None = None) -> MistakeError:
        """Return the error for a node."""
        start, end = self.place(node)
        return refuse(message, start, max(end - start, 1), hint)

    def node(self, node: ast.expr, depth: int) -> Tree:
        if depth > DEEPEST:
            raise self.refused(node, f"nested more than {DEEPEST} levels deep")
        match node:
            case ast.BoolOp():
                operator = "and" if isinstance(node.op, ast.And) else "or"
                operands = tuple(self.node(value, depth + 1) for value in node.values)
                return Logic(operator, operands, *self.place(node))
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.node(node.operand, depth + 1), *self.place(node))
            case ast.UnaryOp(op=ast.USub()):
                return Minus(self.node(node.operand, depth + 1), *self.place(node))
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Call():
                return self.contains(node, depth)
            case ast.Constant():
                return self.literal(node)
            case ast.Name(id=name) if name in CONSTANTS:
                return Literal(CONSTANTS[name], *self.place(node))
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.path(node)
            case _:
                raise self.refused(node, NOT_ALLOWED, f"only {ALLOWED}")

    def literal(self, node: ast.Constant) -> Literal:
        start, end = self.place(node)
        if node.value is None or isinstance(node.value, bool):
            return Literal(node.value, start, end)
        if start not in self.words.values:
            raise self.refused(node, NOT_ALLOWED, f"only {ALLOWED}")
        return Literal(self.words.values[start], start, end)

    def comparison(self, node: ast.Compare, depth: int) -> Tree:
        if len(node.ops) > 1:
            hint = "write 'a < b and b < c'"
            raise self.refused(node, "comparisons cannot be chained", hint)
        left = self.node(node.left, depth + 1)
        right = self.node(node.comparators[0], depth + 1)
        place = self.place(node)
        match node.ops[0]:
            case ast.In():
                return Membership(left, right, False, *place)
            case ast.NotIn():
                return Membership(left, right, True, *place)
            case operator:
                return Comparison(COMPARISONS[type(operator)], left, right, *place)

    def contains(self, node: ast.Call, depth: int) -> Membership:
        target = node.func
        is_contains = isinstance(target, ast.Attribute) and target.attr == CONTAINS
        if not isinstance(target, ast.Attribute) or not is_contains:
            raise self.refused(node, "functions cannot be called", "only .contains() is there")
        if len(node.args) != 1 or node.keywords:
            raise self.refused(node, ".contains() takes one value")
        container = self.node(target.value, depth + 1)
        element = self.node(node.args[0], depth + 1)
        return Membership(element, container, False, *self.place(node))

    def path(self, node: ast.expr) -> Path:
        """Return the path that ends with `node`; fields are read from the text, where no keyword is masked."""
        start, end = self.place(node)
        steps: list[Step] = []
        base = node
        while not isinstance(base, ast.Name):
            if len(steps) >= DEEPEST:
                raise self.refused(node, f"more than {DEEPEST} fields deep")
            steps.append(self.step(base))
            base = base.value if isinstance(base, ast.Attribute | ast.Subscript) else base
        if base.id in CONSTANTS:
            raise self.refused(base, f"{base.id} has no fields")
        return Path(base.id, tuple(reversed(steps)), start, end)

    def step(self, node: ast.expr) -> Step:
        match node:
            case ast.Attribute():
                end = self.place(node)[1]
                start = end - len(node.attr)
                return Step(self.text[start:end], start, end)
            case ast.Subscript():
                return self.subscript(node.slice)
            case ast.Constant():
                raise self.refused(node, "a text or number has no fields")
            case _:
                raise self.refused(node, "only a name has fields")

    def subscript(self, node: ast.expr) -> Step:
        start, end = self.place(node)
        sign, literal = 1, node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, literal = -1, node.operand
        index = self.literal(literal).value if isinstance(literal, ast.Constant) else None
        match index:
            case str() if sign == 1:
                return Step(index, start, end)
            case int() if not isinstance(index, bool):
                return Step(sign * index, start, end)
            case _:
                raise self.refused(node, "an index is a text or a whole number")
