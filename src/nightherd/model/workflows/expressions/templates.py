"""Templates: texts with `${expression}` in them. `$${` writes `${` itself.

What is filled in is never evaluated again, and never becomes part of a command: commands get values by their
environment and standard input. In prompts, values that other people wrote are marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.tagged_text import mark_untrusted
from nightherd.model.workflows.expressions.checker import check_tree
from nightherd.model.workflows.expressions.evaluate import EvaluationError, Scope, evaluate
from nightherd.model.workflows.expressions.parser import parse
from nightherd.model.workflows.expressions.tree import Mistake, Path, Tree, paths_of
from nightherd.model.workflows.expressions.types import ANY, TEXT, Names, Type

OPENING = re.compile(r"\$\$\{|\$\{")
INSIDE = re.compile(r"""(?:[^'"}]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*""", re.DOTALL)
HINT = "write '$${' for the text '${'"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One `${expression}`; `start` is where the expression begins in the template."""

    tree: Tree
    start: int


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A template cut into texts and places."""

    parts: tuple[str | Place, ...]

    @property
    def places(self) -> Iterator[Place]:
        """The places, in order."""
        return (part for part in self.parts if isinstance(part, Place))

    @property
    def whole(self) -> Place | None:
        """The place that is the whole template, if it is nothing else."""
        match self.parts:
            case (Place() as only,):
                return only
            case _:
                return None

    @property
    def paths(self) -> Iterator[Path]:
        """Every path that it uses."""
        return (path for place in self.places for path in paths_of(place.tree))


def parse_template(text: str) -> Template | Mistake:
    """Return the parts of a template, or the first thing that is wrong with it."""
    parts: list[str | Place] = []
    literal: list[str] = []
    place = 0
    while (match := OPENING.search(text, place)) is not None:
        literal.append(text[place : match.start()])
        if match[0] == "$${":
            literal.append("${")
            place = match.end()
            continue
        inside = INSIDE.match(text, match.end())
        end = match.end() if inside is None else inside.end()
        if text[end : end + 1] != "}":
            return Mistake(message="'${' is not closed", start=match.start(), width=2, hint=HINT)
        tree = parse(text[match.end() : end])
        if isinstance(tree, Mistake):
            return replace(tree, start=tree.start + match.end())
        parts += ["".join(literal), Place(tree=tree, start=match.end())]
        literal.clear()
        place = end + 1
    parts.append("".join((*literal, text[place:])))
    return Template(parts=tuple(part for part in parts if part != ""))


class CheckedTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """What a template gives, and what is wrong with it."""

    type: Type
    mistakes: tuple[Mistake, ...] = ()
    template: Template | None = None


def check_template(text: str, names: Names) -> CheckedTemplate:
    """Check every expression of a template; a template that is a single place gives the value itself."""
    template = parse_template(text)
    if isinstance(template, Mistake):
        return CheckedTemplate(type=ANY, mistakes=(template,))
    mistakes: list[Mistake] = []
    kind = TEXT
    for place in template.places:
        checked = check_tree(place.tree, names)
        mistakes += [_moved(mistake, place.start) for mistake in checked.mistakes]
        if place is template.whole:
            kind = checked.type
    return CheckedTemplate(type=kind, mistakes=tuple(mistakes), template=template)


def _moved(mistake: Mistake, start: int) -> Mistake:
    hint = HINT if mistake.word and mistake.hint is None else mistake.hint
    return replace(mistake, start=mistake.start + start, hint=hint)


def render_plain(template: Template, scope: Scope) -> str | EvaluationError:
    """Return the text with every value filled in as it is."""
    return _render(template, scope, lambda _, text: text)


def render_prompt(template: Template, scope: Scope) -> str | EvaluationError:
    """Return the text for a model: values that other people wrote are marked as such."""

    def marked(place: Place, text: str) -> str:
        paths = (path for path in paths_of(place.tree) if scope.is_untrusted(path.names))
        source = next(paths, None)
        return text if source is None else mark_untrusted(text, str(source))

    return _render(template, scope, marked)


def render_value(template: Template, scope: Scope) -> Any | EvaluationError:
    """Return the value of a template that is a single place, with its type; else its text."""
    if template.whole is not None:
        return evaluate(template.whole.tree, scope)
    return render_plain(template, scope)


def value_text(value: Any) -> str:
    """Return a value as templates have it: text as it is, nothing for null, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _render(
    template: Template, scope: Scope, finish: Callable[[Place, str], str]
) -> str | EvaluationError:
    texts: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        value = evaluate(part.tree, scope)
        if isinstance(value, EvaluationError):
            return replace(value, start=value.start + part.start, end=value.end + part.start)
        try:
            text = value_text(value)
        except RecursionError:
            message = "the value is nested too deeply"
            return EvaluationError(message=message, start=part.start, end=part.start)
        is_harmless = value is None or isinstance(value, bool | int | float)
        texts.append(text if is_harmless else finish(part, text))
    return "".join(texts)
