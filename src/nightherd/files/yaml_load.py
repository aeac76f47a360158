"""The YAML reader: from text to nodes with places, or to plain values; bounded, tag-free, duplicate keys reported.

Fleet files and state files mean the same, because both are read here. Built on the parser's events, so that nothing is constructed that the file did not spell out. Aliases share
their node but count with everything they stand for, which is what stops an alias bomb.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml
from yaml import events

from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    Plain,
    ScalarNode,
    SequenceNode,
    Source,
    Spot,
    problem_at,
    resolve_plain,
)
from nightherd.model.problem import MOST_PROBLEMS, Problem
from nightherd.model.text import quote

DEEPEST = 100
MOST_VALUES = 100_000
"""How many values a fleet file may have, aliases counted with all they stand for."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BYTE_ORDER_MARK = "\ufeff"


def forbidden_character(text: str) -> int | None:
    """Return where the first character is that YAML does not allow, a byte order mark in the middle included."""
    # The parser's own pattern: compiling another one like it takes milliseconds at every start.
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    places = (text.find(BYTE_ORDER_MARK), -1 if found is None else found.start())
    return min((place for place in places if place >= 0), default=None)


class StopComposingError(Exception):
    """The rest of the file cannot be understood."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


class Anchor(msgspec.Struct):
    """A named node, how many values it stands for and how deep it goes; no node while it is being read."""

    node: Node | None = None
    values: int = 0
    height: int = 0


class Composer(msgspec.Struct):
    """Reads the events of one document."""

    source: Source
    stream: Iterator[events.Event]
    most_values: int = MOST_VALUES
    problems: list[Problem] = msgspec.field(default_factory=list)
    anchors: dict[str, Anchor] = msgspec.field(default_factory=dict)
    values: int = 0
    reached: int = 0

    def spot(self, event: events.Event) -> Spot:
        """Where the event begins; what continues in the next line is marked to the end of its first."""
        start, end = event.start_mark, event.end_mark
        if start is None or end is None:
            return Spot(self.source, 1, 1)
        if start.line == end.line:
            width = end.column - start.column
        else:
            line = self.source.lines[start.line] if start.line < len(self.source.lines) else ""
            width = len(line.rstrip()) - start.column
        return Spot(self.source, start.line + 1, start.column + 1, width if width > 0 else 1)

    def stop(self, spot: Spot, message: str, hint: str | None = None) -> StopComposingError:
        """The error that ends this file."""
        return StopComposingError(problem_at(spot, message, hint=hint))

    def complain(self, problem: Problem) -> None:
        """Keep a problem that does not end the file, unless it has had too many."""
        self.problems.append(problem)
        if len(self.problems) >= MOST_PROBLEMS:
            raise StopComposingError(problem)

    def count(self, event: events.Event, values: int = 1) -> None:
        """Count values against the bound."""
        self.values += values
        if self.values > self.most_values:
            raise self.stop(
                self.spot(event),
                f"more than {self.most_values:,} values in one file, aliases counted",
            )

    def reach(self, event: events.Event, depth: int) -> None:
        """Note how deep the document goes, against the bound."""
        if depth > DEEPEST:
            raise self.stop(self.spot(event), f"nested more than {DEEPEST} levels deep")
        self.reached = max(self.reached, depth)

    def document(self) -> Node | None:
        """The one document of the file, or None when there is none."""
        node: Node | None = None
        for event in self.stream:
            if isinstance(event, events.DocumentStartEvent):
                if node is not None:
                    raise self.stop(self.spot(event), "a second document begins here; one is read")
                node = self.node(next(self.stream), 1)
        return node

    def node(self, event: events.Event, depth: int) -> Node:
        """The node that begins with `event`."""
        if isinstance(event, events.AliasEvent):
            return self.alias(event, depth)
        if depth > self.reached:
            self.reach(event, depth)
        assert isinstance(  # noqa: S101 (the parser's grammar: nothing else begins a node)
            event, events.ScalarEvent | events.SequenceStartEvent | events.MappingStartEvent
        )
        if event.tag is not None:
            self.refuse_tag(event)
        if event.anchor is not None:
            return self.anchored(event.anchor, event, depth)
        return self.content(event, depth)

    def anchored(self, name: str, event: events.Event, depth: int) -> Node:
        """A node with a name; what it holds is measured, for the aliases to come."""
        self.anchors[name] = Anchor()
        before, outer = self.values, self.reached
        self.reached = depth
        node = self.content(event, depth)
        self.anchors[name] = Anchor(node, self.values - before, self.reached - depth)
        self.reached = max(outer, self.reached)
        return node

    def content(self, event: events.Event, depth: int) -> Node:
        """The node itself, its properties dealt with."""
        self.count(event)
        if isinstance(event, events.ScalarEvent):
            return ScalarNode(self.spot(event), event.value, not event.style)
        if isinstance(event, events.SequenceStartEvent):
            return self.sequence(event, depth)
        return self.mapping(event, depth)

    def refuse_tag(
        self, event: events.ScalarEvent | events.SequenceStartEvent | events.MappingStartEvent
    ) -> None:
        """Report a tag; the value is read as if it had none."""
        tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
        self.complain(
            problem_at(
                self.spot(event), f"the tag {quote(tag)} is not allowed", hint="remove the tag"
            )
        )

    def alias(self, event: events.AliasEvent, depth: int) -> Node:
        """The node an alias stands for, counted in full."""
        anchor = self.anchors.get(event.anchor or "")
        if anchor is None:
            raise self.stop(self.spot(event), f"no anchor &{event.anchor} before this alias")
        if anchor.node is None:
            raise self.stop(
                self.spot(event), f"the alias *{event.anchor} stands inside its own anchor"
            )
        self.reach(event, depth + anchor.height)
        self.count(event, anchor.values)
        return anchor.node

    def sequence(self, start: events.Event, depth: int) -> SequenceNode:
        """A list, up to its end event."""
        items: list[Node] = []
        for event in self.stream:
            if isinstance(event, events.SequenceEndEvent):
                break
            items.append(self.node(event, depth + 1))
        return SequenceNode(self.spot(start), tuple(items))

    def mapping(self, start: events.Event, depth: int) -> MappingNode:
        """A mapping, up to its end event; keys of its own win over merged ones."""
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for event in self.stream:
            if isinstance(event, events.MappingEndEvent):
                break
            key = self.node(event, depth + 1)
            value = self.node(next(self.stream), depth + 1)
            if not isinstance(key, ScalarNode):
                self.complain(problem_at(key, "a key must be a text, not a list or mapping"))
            elif key.plain and key.text == "<<":
                merged.append(value)
            elif key.text in entries:
                first = entries[key.text].key.spot.line
                message = f"the key {quote(key.text)} is here twice"
                self.complain(problem_at(key, message, hint=f"the first is in line {first}"))
            else:
                entries[key.text] = Entry(key, value)
        for value in merged:
            self.merge_key(start, entries, value)
        return MappingNode(self.spot(start), entries)

    def merge_key(self, start: events.Event, entries: dict[str, Entry], value: Node) -> None:
        """Add what `<<` names: a mapping, or a list of mappings of which the first wins."""
        for part in value.items if isinstance(value, SequenceNode) else (value,):
            if not isinstance(part, MappingNode):
                self.complain(problem_at(part, "'<<' takes a mapping or a list of mappings"))
                continue
            self.count(start, len(part.entries))
            for key, entry in part.entries.items():
                entries.setdefault(key, entry)


def compose(
    source: Source, text: str, *, most_values: int = MOST_VALUES
) -> tuple[Node | None, list[Problem]]:
    """Return the document in `text` and what is wrong with it; None for an empty or unreadable one."""
    composer = Composer(source, yaml.parse(text, Loader=LOADER), most_values)
    try:
        return composer.document(), composer.problems
    except StopComposingError as stopped:
        return None, [*composer.problems, stopped.problem]
    except yaml.YAMLError as error:
        return None, [*composer.problems, syntax_problem(source, error)]


def syntax_problem(source: Source, error: yaml.YAMLError) -> Problem:
    """What the parser stumbled over, in plain words."""
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    # The parser gives up behind the last line when something was never closed.
    line = min(line, max(1, len(source.lines)))
    reason = getattr(error, "problem", None) or "it cannot be read"
    context = getattr(error, "context", None)
    text = source.line(line) or ""
    hint = None
    if "\t" in text[: len(text) - len(text.lstrip())]:
        hint = "indent with spaces, not with tabs"
    elif "${" in text:
        hint = "inside { } and [ ] put ${...} in quotes, or give the value a line of its own"
    elif context is not None and getattr(error, "context_mark", None) is not None:
        hint = f"{context} that begins in line {error.context_mark.line + 1}"  # type: ignore[attr-defined] # libyaml's own attribute
    spot = Spot(source, line, column)
    return problem_at(spot, f"not valid YAML: {reason}", hint=hint)


def load_yaml(text: str) -> Any:
    """Return the one document in `text` as plain values, None when it is empty; or raise `yaml.YAMLError`."""
    # State files may be long, but no text spells more values than it has characters: only aliases do.
    node, problems = compose(
        Source.of_text("", text), text, most_values=max(MOST_VALUES, len(text) + 1)
    )
    if problems:
        first = problems[0]
        raise yaml.YAMLError(
            f"line {first.place.line}, column {first.place.column}: {first.message}"
        )
    return None if node is None else _value(node)


def _value(node: Node) -> Any:
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, MappingNode):
        return {_scalar(entry.key): _value(entry.value) for entry in node.entries.values()}
    return [_value(item) for item in node.items]


def _scalar(node: ScalarNode) -> Plain:
    return resolve_plain(node.text) if node.plain else node.text
