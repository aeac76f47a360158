"""Instance: one place in a run where a phase is: which item and iteration of it, inside which block."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.workflows.definition import Phase
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION, UNTIL, NodeKey

SEGMENT = re.compile(r"([a-z][a-z0-9_]*)(?:\[(\d+)\])?(?:\[(\d+)\])?")


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A phase, or one item or iteration of it."""

    phase: Phase
    block: tuple[Phase, ...]
    """The phases among which it stands."""
    path: str
    outer: Instance | None = None
    """The block around it."""
    item: int = NO_ITEM
    iteration: int = NO_ITERATION

    def key(self, attempt: int = 1) -> NodeKey:
        """Return the key of its node."""
        return NodeKey(self.path, self.iteration, self.item, attempt)

    @property
    def until_key(self) -> NodeKey:
        """The key of the command that decides whether the loop ends after this iteration."""
        return NodeKey(f"{self.path}{UNTIL}", self.iteration, self.item)

    @property
    def is_phase(self) -> bool:
        """Whether it is the phase itself and not an item or iteration of it."""
        return self.item == NO_ITEM and self.iteration == NO_ITERATION

    @property
    def whole(self) -> Instance:
        """The phase that this is an item or iteration of."""
        return replace(self, item=NO_ITEM, iteration=NO_ITERATION)

    def of_item(self, item: int) -> Instance:
        """Return one item of it."""
        return replace(self, item=item)

    def of_iteration(self, iteration: int) -> Instance:
        """Return one iteration of it."""
        return replace(self, iteration=iteration)

    def inner(self, phase: Phase) -> Instance:
        """Return a phase inside this block."""
        path = self.key().inside + phase.name
        return Instance(phase=phase, block=self.phase.block, path=path, outer=self)

    def inside(self) -> Iterator[Instance]:
        """Yield the phases inside this block."""
        return (self.inner(phase) for phase in self.phase.block)

    def around(self) -> Iterator[Instance]:
        """Yield this instance and the blocks around it, innermost first."""
        current: Instance | None = self
        while current is not None:
            yield current
            current = current.outer

    def sibling(self, name: str) -> Instance | None:
        """Return the phase of that name in the same block."""
        for phase in self.block:
            if phase.name == name:
                prefix = self.path[: len(self.path) - len(self.phase.name)]
                return replace(self.whole, phase=phase, path=prefix + name)
        return None

    def before(self) -> Instance | None:
        """Return the same place in the iteration before, of the nearest loop around it."""
        if self.iteration != NO_ITERATION:
            return self.of_iteration(self.iteration - 1) if self.iteration > 1 else None
        if self.outer is None:
            return None
        outer = self.outer.before()
        return None if outer is None else replace(outer.inner(self.phase), item=self.item)


def top_level(phases: tuple[Phase, ...]) -> Iterator[Instance]:
    """Yield the phases of a workflow."""
    return (Instance(phase=phase, block=phases, path=phase.name) for phase in phases)


def locate(phases: tuple[Phase, ...], key: NodeKey) -> Instance:
    """Return the instance that a key names, or raise `InvalidValueError`."""
    *outer, last = key.path.removesuffix(UNTIL).split("/")
    block: Instance | None = None
    for segment in outer:
        match = SEGMENT.fullmatch(segment)
        found = None if match is None else _named(phases, match[1], block)
        block = None if match is None else _numbered(found, match)
        if block is None:
            raise InvalidValueError(f"the workflow has no node {key}")
        phases = block.phase.block
    instance = _named(phases, last, block)
    if instance is None:
        raise InvalidValueError(f"the workflow has no node {key}")
    return replace(instance, item=key.item, iteration=key.iteration)


def _named(phases: tuple[Phase, ...], name: str, outer: Instance | None) -> Instance | None:
    """Return the phase of that name, inside a block or of the workflow itself."""
    for phase in phases:
        if phase.name == name:
            if outer is not None:
                return outer.inner(phase)
            return Instance(phase=phase, block=phases, path=name)
    return None


def _numbered(block: Instance | None, match: re.Match[str]) -> Instance | None:
    """Return the item and iteration of a block that a part of a path names."""
    if block is None:
        return None
    numbers = [int(number) for number in match.groups()[1:] if number is not None]
    wanted = (block.phase.for_each is not None) + (block.phase.loop is not None)
    if len(numbers) != wanted:
        return None
    if block.phase.for_each is not None:
        block = block.of_item(numbers.pop(0))
    return block if block.phase.loop is None else block.of_iteration(numbers.pop(0))
