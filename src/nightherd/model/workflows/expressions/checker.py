"""Checking an expression when its file is loaded: every name exists, and every operator gets what it takes.

What may be null is only known at run time: ordering it, or taking a field of it, is allowed here and fails there.
A condition that may be null is a mistake here: write `== true`.
"""

from __future__ import annotations

import msgspec

from nightherd.model.text import quote
from nightherd.model.workflows.expressions.parser import parse
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
    path_text,
)
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    NUMBER,
    Kind,
    Names,
    Type,
    can_be,
    can_equal,
    kind_of,
    optional,
)

EQUALITY = frozenset({"==", "!="})
ORDERED = frozenset({Kind.NUMBER, Kind.TEXT, Kind.ANY})


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What an expression gives, and what is wrong with it."""

    type: Type
    mistakes: tuple[Mistake, ...] = ()
    tree: Tree | None = None
    """None when it cannot be read."""


def check_expression(text: str, names: Names, *, wanted: Kind | None = None) -> Checked:
    """Check an expression where `names` exist; `wanted` is what its place takes."""
    tree = parse(text)
    if isinstance(tree, Mistake):
        return Checked(type=ANY, mistakes=(tree,))
    checker = _Checker(names)
    value_type = checker.check(tree)
    if wanted is Kind.BOOLEAN:
        checker.condition(tree, value_type)
    elif wanted is not None and not can_be(value_type, wanted):
        checker.complain(tree, f"expected {Type(kind=wanted)}, got {value_type}")
    return Checked(type=value_type, mistakes=tuple(checker.mistakes), tree=tree)


def check_tree(tree: Tree, names: Names) -> Checked:
    """Check an expression that is parsed already."""
    checker = _Checker(names)
    return Checked(type=checker.check(tree), mistakes=tuple(checker.mistakes), tree=tree)


class _Checker(msgspec.Struct):
    """Finds the type of each part; what is wrong is collected, and counts as any value from there on."""

    names: Names
    mistakes: list[Mistake] = msgspec.field(default_factory=list)

    def complain(self, part: Tree | Step, message: str, hint: str | None = None) -> None:
        width = max(part.end - part.start, 1)
        self.mistakes.append(Mistake(message=message, start=part.start, width=width, hint=hint))

    def check(self, tree: Tree) -> Type:
        match tree:
            case Literal():
                return Type(kind=kind_of(tree.value))
            case Path():
                return self.path(tree)
            case Not():
                self.condition(tree.operand, self.check(tree.operand))
                return BOOLEAN
            case Logic():
                for operand in tree.operands:
                    self.condition(operand, self.check(operand), tree.operator)
                return BOOLEAN
            case Minus():
                value_type = self.check(tree.operand)
                if not can_be(value_type, Kind.NUMBER):
                    self.complain(tree.operand, f"'-' takes a number, not {value_type}")
                return NUMBER
            case Comparison():
                return self.comparison(tree)
            case Membership():
                return self.membership(tree)

    def condition(self, tree: Tree, value_type: Type, operator: str | None = None) -> None:
        """A condition is true or false, and nothing else."""
        if can_be(value_type, Kind.BOOLEAN):
            if value_type.is_optional:
                hint = "write '== true' or '== false'"
                self.complain(tree, "this may be null; a condition is true or false", hint)
            return
        takes = (
            "a condition is true or false" if operator is None else f"'{operator}' joins conditions"
        )
        self.complain(tree, f"{takes}; this is {value_type}")

    def comparison(self, tree: Comparison) -> Type:
        left, right = self.check(tree.left), self.check(tree.right)
        if tree.operator in EQUALITY:
            self.equality(tree.left, left, tree.right, right)
            return BOOLEAN
        for part, value_type in ((tree.left, left), (tree.right, right)):
            if value_type.kind not in ORDERED:
                message = f"'{tree.operator}' orders numbers or texts; this is {value_type}"
                self.complain(part, message)
                return BOOLEAN
        if not can_equal(left, right):
            self.complain(tree, f"'{tree.operator}' cannot order {left} and {right}")
        return BOOLEAN

    def equality(self, left: Tree, first: Type, right: Tree, second: Type) -> None:
        """Values that can never be equal are a mistake, a misspelt choice too."""
        if not can_equal(first, second):
            start, end = min(left.start, right.start), max(left.end, right.end)
            message = f"{first} never equals {second}"
            self.mistakes.append(Mistake(message=message, start=start, width=end - start))
            return
        for literal, other in ((left, second), (right, first)):
            if isinstance(literal, Literal) and isinstance(literal.value, str) and other.choices:
                self.choice(literal, literal.value, other.choices)

    def choice(self, part: Literal, value: str, choices: tuple[str, ...]) -> None:
        if value not in choices:
            message = f"{quote(value)} is not one of {', '.join(choices)}"
            width = part.end - part.start
            self.mistakes.append(
                Mistake(message=message, start=part.start, width=width, word=value, known=choices)
            )

    def membership(self, tree: Membership) -> Type:
        container, element = self.check(tree.container), self.check(tree.element)
        match container.kind:
            case Kind.ANY:
                pass
            case Kind.TEXT | Kind.OBJECT:
                if not can_be(element, Kind.TEXT):
                    self.complain(tree.element, f"{container} contains texts; this is {element}")
            case Kind.LIST:
                item = container.item or ANY
                self.equality(tree.element, element, tree.element, item)
            case _:
                message = f"texts, lists and objects contain something; this is {container}"
                self.complain(tree.container, message)
        return BOOLEAN

    def path(self, tree: Path) -> Type:
        root = self.names.types.get(tree.root)
        if root is None:
            end = tree.start + len(tree.root)
            self.unknown((tree.root,), tree.start, end, tuple(self.names.types), "name")
            return ANY
        value_type = root
        is_soft = False
        for position, step in enumerate(tree.steps):
            before = tree.names[: position + 1]
            if value_type.kind is Kind.ANY:
                return ANY
            is_soft = is_soft or value_type.is_soft
            inner = self.step(value_type, step, before)
            if inner is None:
                return ANY
            value_type = inner
        if value_type.kind is Kind.NAMESPACE:
            fields = ", ".join(value_type.fields or ()) or "none"
            message = f"{path_text(tree.names)} is not a value; it has the fields {fields}"
            self.complain(tree, message)
            return ANY
        return optional(value_type) if is_soft else value_type

    def step(self, value_type: Type, step: Step, before: tuple[str | int, ...]) -> Type | None:
        """Return what stands one step further; None for a mistake."""
        owner = path_text(before)
        match value_type.kind, step.name:
            case (Kind.OBJECT | Kind.NAMESPACE, str() as name):
                if value_type.fields is None:
                    return ANY
                if name in value_type.fields:
                    return value_type.fields[name]
                whole = (*(str(part) for part in before), name)
                self.unknown(whole, step.start, step.end, tuple(value_type.fields), "field", owner)
            case (Kind.LIST, int()):
                return value_type.item or ANY
            case (Kind.LIST, str() as name):
                self.complain(step, f"{owner} is a list and has no field {quote(name)}", "use [0]")
            case (Kind.OBJECT | Kind.NAMESPACE, int()):
                self.complain(step, f"{owner} is {value_type} and has no index")
            case _:
                self.complain(step, f"{owner} is {value_type} and has no fields")
        return None

    def unknown(
        self,
        names: tuple[str, ...],
        start: int,
        end: int,
        known: tuple[str, ...],
        what: str,
        owner: str = "",
    ) -> None:
        reason = self.names.absent.get(names)
        if reason is not None:
            self.mistakes.append(Mistake(message=reason, start=start, width=end - start))
            return
        message = (
            f"{owner} has no field {quote(names[-1])}"
            if owner
            else f"unknown {what} {quote(names[-1])}"
        )
        self.mistakes.append(
            Mistake(message=message, start=start, width=end - start, word=names[-1], known=known)
        )
