"""A run drawn as text: its phases as a tree with states, times and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from nightherd.cli.screen.render import GLYPHS, Screen, length, neutralise, one_line
from nightherd.model.units import format_usd
from nightherd.model.workflows.node import NodeStatus
from nightherd.views.runs.tree import NOT_RUN, PENDING, NodeView

MOST_ITEMS = 5
"""Items of a list that are drawn without `--all`: those that are open or failed."""
ERROR_LIMIT = 160
SETTLED = frozenset({NodeStatus.SUCCEEDED.value, NodeStatus.SKIPPED.value})


def draw_nodes(nodes: Sequence[NodeView], screen: Screen, *, is_all: bool) -> list[str]:
    """Return a line for each phase; loops and lists are summarised unless `is_all`."""
    cells = list(_rows(nodes, 0, is_all=is_all))
    name_width = max((len(left) for left, *_ in cells), default=0)
    does_width = max((len(does) for _, does, _, _ in cells), default=0)
    lines: list[str] = []
    for left, does, right, view in cells:
        padded = f"{left:<{name_width}}  {does:<{does_width}}  {right}".rstrip()
        lines.append(_colored(padded, left, view, screen))
        indent = " " * (len(left) - len(left.lstrip()) + 2)
        if view.node is not None and view.node.error and not view.inside:
            text = one_line(view.node.error, ERROR_LIMIT)
            is_bad = view.status == NodeStatus.FAILED.value
            lines.append(indent + (screen.out.bad(text) if is_bad else screen.out.dim(text)))
        if view.node is not None and view.node.message:
            lines.append(indent + one_line(view.node.message, ERROR_LIMIT))
    return lines


def _rows(
    nodes: Sequence[NodeView], depth: int, *, is_all: bool
) -> Iterator[tuple[str, str, str, NodeView]]:
    """Yield the name, what it does, how it stands, and the node of each line."""
    for view in nodes:
        glyph = GLYPHS[view.status][0]
        name = view.path.rpartition("/")[2]
        yield f"{'  ' * depth}{glyph} {name}", _does(view), _stands(view), view
        yield from _rows(_shown_inside(view, is_all=is_all), depth + 1, is_all=is_all)


def _does(view: NodeView) -> str:
    said = neutralise(f"{view.kind} {view.does}".strip())
    if not view.is_group:
        return said
    is_list = view.phase is not None and view.phase.for_each is not None
    counted = [one for one in view.inside if one.kind != "until"]
    total = "?" if view.total is None else str(view.total)
    if not is_list:
        return f"{said}, iteration {len(counted)} of at most {total}" if counted else said
    if not counted:
        return said if view.total is None else f"{said}, {total} items"
    counts = Counter(one.status for one in counted)
    stands = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return f"{said}, {total} items: {stands}"


def _stands(view: NodeView) -> str:
    """The status as a word, with time, cost, attempts and what it comes after."""
    parts = ["not run" if view.status == NOT_RUN else view.status]
    if view.status not in (PENDING, NOT_RUN, NodeStatus.SKIPPED.value):
        parts += [length(view.took)] if view.took is not None else []
        parts += [format_usd(view.cost)] if view.cost else []
    node = view.node
    if node is not None and node.attempt > 1:
        parts.append(f"attempt {node.attempt}")
    if node is not None and node.exit_code:
        parts.append(f"exit code {node.exit_code}")
    if node is not None and node.kept_from is not None:
        parts.append(f"kept from {node.kept_from}")
    if view.job is not None and view.job.lost is not None:
        parts.append("lost its worker")
    if view.child is not None:
        parts.append(view.child.id)
    phase = view.phase
    if phase is not None and phase.depends_on and not _is_part(view):
        parts.append(f"after {', '.join(phase.depends_on)}")
    return ", ".join(parts)


def _is_part(view: NodeView) -> bool:
    """Whether it is an item or iteration, not the whole phase."""
    return view.path.endswith("]")


def _shown_inside(view: NodeView, *, is_all: bool) -> Sequence[NodeView]:
    if is_all or not view.is_group:
        return view.inside
    is_list = view.phase is not None and view.phase.for_each is not None
    if is_list:
        return [one for one in view.inside if one.status not in SETTLED][:MOST_ITEMS]
    latest = [one for one in view.inside if one.kind != "until"][-1:]
    # A loop of a single phase says all there is in its own line.
    return [one for one in latest if one.inside]


def _colored(line: str, left: str, view: NodeView, screen: Screen) -> str:
    """The line with its sign in the colour of its status."""
    if not screen.out.is_colored:
        return line
    glyph, color = GLYPHS[view.status]
    place = len(left) - len(left.lstrip())
    return f"{line[:place]}\x1b[{color}m{glyph}\x1b[0m{line[place + 1 :]}"
