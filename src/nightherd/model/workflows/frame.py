"""Frame: the names that exist at one place of a definition, while it is checked from the outside to the inside."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from nightherd.model.workflows.definition import Phase
from nightherd.model.workflows.expressions.types import Names, Type
from nightherd.model.workflows.graph import Certain, certain_before
from nightherd.model.workflows.names import loop_names, phase_names, root_types
from nightherd.model.workflows.triggers import TRIGGER_NAMES

NO_ITEM = "'item' exists only inside for_each"
NO_LOOP = "'loop' exists only inside a loop"


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the phases of a block, for all of them together."""

    types: Mapping[str, Type]
    """The type of each `phases.X`."""
    certain: Certain
    inside: Mapping[str, str]
    """The phases of blocks inside this one, with the block of each."""


def block_of(phases: tuple[Phase, ...]) -> Block:
    """Return what is known about the phases of a block."""
    return Block(
        types={phase.name: phase_names(phase) for phase in phases},
        certain=certain_before(phases),
        inside={inner.name: phase.name for phase in phases for inner in phase.block},
    )


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What expressions can see."""

    inputs: Type
    visible: Mapping[str, Type] = msgspec.field(default_factory=dict)
    """The types of `phases.X`."""
    absent: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Phases that cannot be used here, and why."""
    item: Type | None = None
    loop: Type | None = None

    @property
    def names(self) -> Names:
        """The roots with their types, and why others are not there."""
        absent: dict[tuple[str, ...], str] = {
            ("phases", name): reason for name, reason in self.absent.items()
        }
        if self.item is None:
            absent["item",] = NO_ITEM
        if self.loop is None:
            absent["loop",] = NO_LOOP
        types = root_types(self.inputs, TRIGGER_NAMES, self.visible, item=self.item, loop=self.loop)
        return Names(types=types, absent=absent)

    def of_phase(self, phase: Phase, block: Block) -> Frame:
        """Return what `when` and `for_each` of a phase see: what is around its block, and what ended before."""
        certain = block.certain.get(phase.name, frozenset())
        visible = {name: kind for name, kind in self.visible.items() if name not in block.types}
        absent = {name: why for name, why in self.absent.items() if name not in block.types}
        for name in block.inside.keys() - block.types.keys() - visible.keys():
            absent.setdefault(name, _inside(name, block.inside[name]))
        for name, kind in block.types.items():
            if name in certain:
                visible[name] = kind
            else:
                absent[name] = _why_absent(name, phase)
        return replace(self, visible=visible, absent=absent)

    def of_body(self, phase: Phase, item: Type | None) -> Frame:
        """Return what one instance of the phase sees; `item` is the type of an item of its `for_each`."""
        frame = self if item is None else replace(self, item=item)
        return frame if phase.loop is None else replace(frame, loop=loop_names(phase))

    def of_until(self, phase: Phase) -> Frame:
        """Return what the end of an iteration sees: the phases inside, and the phase's own result."""
        own = phase_names(replace(phase, for_each=None))
        inside = {inner.name: phase_names(inner) for inner in phase.block}
        return self.with_visible({phase.name: own, **inside})

    def of_end(self, phase: Phase) -> Frame:
        """Return what the end of the phase sees."""
        return self.with_visible({phase.name: phase_names(phase)})

    def with_visible(self, phases: Mapping[str, Type]) -> Frame:
        """Return this frame with more phases that have ended."""
        absent = {name: reason for name, reason in self.absent.items() if name not in phases}
        return replace(self, visible={**self.visible, **phases}, absent=absent)


def _why_absent(name: str, phase: Phase) -> str:
    if name == phase.name:
        return f"phase {name!r} has no result yet when this is evaluated"
    return f"phase {name!r} may not have ended when this is evaluated; add it to depends_on"


def _inside(name: str, block: str) -> str:
    return f"phase {name!r} is inside {block!r}: write phases.{block}.output.{name}"
