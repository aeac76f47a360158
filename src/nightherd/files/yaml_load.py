"""Reading YAML as other programs mean it: YAML 1.2's core words, and no surprises.

A date stays text, `on` and `no` are words, `010` is ten; a key given twice is an error, and so is nesting
that only an attack has.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from yaml import SafeLoader as FastLoader
else:
    FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 100
"""Levels of nesting; the fast reader, which recurses in C, must never see much more."""

TAG = "tag:yaml.org,2002:"
INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
FLOAT = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")


class CoreLoader(FastLoader):
    """Knows YAML 1.2's core words and nothing else."""

    # Its own table: the one it would inherit has dates, sexagesimals and `yes`.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (the library's own name and shape)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are all different, or a `ConstructorError`."""
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(
                "while reading a mapping", node.start_mark, "a key is given twice", node.start_mark
            )
        return mapping


def load_yaml(text: str) -> Any:
    """The one document in `text`; None when it is empty. Anything unreadable is a `yaml.YAMLError`."""
    depth = 0
    for event in yaml.parse(text, Loader=FastLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise yaml.YAMLError(f"nested more than {DEEPEST} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    try:
        return yaml.load(text, Loader=CoreLoader)  # noqa: S506 (a subclass of the safe loader)
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = node.value
    return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


CoreLoader.add_implicit_resolver(f"{TAG}bool", BOOL, list("tTfF"))
CoreLoader.add_implicit_resolver(f"{TAG}null", NULL, ["~", "n", "N", ""])
CoreLoader.add_implicit_resolver(f"{TAG}int", INT, list("-+0123456789"))
CoreLoader.add_implicit_resolver(f"{TAG}float", FLOAT, list("-+.0123456789"))
CoreLoader.add_constructor(f"{TAG}int", _construct_int)
CoreLoader.add_constructor(f"{TAG}float", _construct_float)
