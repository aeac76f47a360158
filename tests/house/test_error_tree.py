"""The error tree drawn in errors.py is the error tree there is."""

from __future__ import annotations

import inspect
import re

import pytest

from nightherd import errors

LINE = re.compile(r"(?P<indent>[│├└─ ]*)(?P<name>\w+Error)\b\s*(?P<code>\d+)?")

Drawn = dict[str, tuple[str | None, int]]


def drawn_tree() -> Drawn:
    """Each class in the drawing with its parent and its exit code, written or inherited."""
    tree: Drawn = {}
    above: list[tuple[int, str]] = []
    drawing = (errors.__doc__ or "").split("```")[1]
    for line in filter(None, drawing.splitlines()):
        match = LINE.match(line)
        assert match is not None, line
        depth, name, code = len(match["indent"]), match["name"], match["code"]
        above = [entry for entry in above if entry[0] < depth]
        parent = above[-1][1] if above else None
        tree[name] = (parent, int(code) if code else tree[parent][1] if parent else 1)
        above.append((depth, name))
    return tree


def error_classes() -> dict[str, type[errors.NightherdError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.NightherdError)
    }


def test_every_error_is_in_the_drawing_and_nothing_else_is() -> None:
    assert set(drawn_tree()) == set(error_classes())


def test_drawing_shows_each_error_under_its_parent_with_its_exit_code() -> None:
    actual = {
        name: (None if cls is errors.NightherdError else cls.__bases__[0].__name__, cls.exit_code)
        for name, cls in error_classes().items()
    }

    assert drawn_tree() == actual


@pytest.mark.parametrize("name", error_classes())
def test_every_error_has_a_sentence_of_its_own(name: str) -> None:
    documented = error_classes()[name].__dict__.get("__doc__")

    assert documented, f"{name} has no docstring, which is its default message"
