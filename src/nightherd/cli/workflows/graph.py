"""`nightherd workflow graph`: the phases of a workflow as text, or for programs that draw graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.screen.render import one_line
from nightherd.cli.workflows.declared import find_workflow, name_argument
from nightherd.model.workflows.definition import OnFailure, Phase, TriggerRule, WorkflowDefinition
from nightherd.views.workflows.workflows import PhaseView, every_view, phase_views, workflow_graph
from nightherd.wiring.stores import system_clock

LONGEST = 60
"""Characters that are shown of what a phase does."""
BRANCH, LAST, BAR, GAP = "├─ ", "└─ ", "│  ", "   "


@click.command("graph", epilog="Example: nightherd workflow graph build --format mermaid")
@name_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    help="Output format (default: text).",
)
@json_option
@click.pass_obj
def graph(invocation: Invocation, name: str, form: str) -> None:
    """Show the graph of a workflow. Prints its phases and what each waits for."""
    screen = invocation.screen
    definition = find_workflow(invocation, name).definition
    if screen.is_json:
        screen.document("workflow_graph", workflow_graph(definition), system_clock().now())
        return
    draw = {"text": draw_phases, "mermaid": draw_mermaid, "dot": draw_dot}[form]
    screen.show("\n".join(draw(definition)))


def draw_phases(definition: WorkflowDefinition) -> list[str]:
    """A line for each phase: its name, what it does, and when it runs; blocks with what is inside."""
    rows = list(_rows(phase_views(definition), ""))
    name_width = max((len(left) for left, _, _ in rows), default=0)
    does_width = max((len(does) for _, does, _ in rows), default=0)
    return [
        f"{left:<{name_width}}  {does:<{does_width}}  {when}".rstrip() for left, does, when in rows
    ]


def _rows(views: Sequence[PhaseView], indent: str) -> Iterator[tuple[str, str, str]]:
    for place, view in enumerate(views):
        is_last = place == len(views) - 1
        yield f"{indent}{LAST if is_last else BRANCH}{view.phase.name}", _does(view), _terms(view)
        yield from _rows(view.inside, indent + (GAP if is_last else BAR))


def _does(view: PhaseView) -> str:
    return one_line(f"{view.kind} {view.does}".strip(), LONGEST)


def _terms(view: PhaseView) -> str:
    """When the phase runs, and how often."""
    phase = view.phase
    after = f"after {', '.join(phase.depends_on)}" if phase.depends_on else ""
    is_strict = phase.trigger_rule is TriggerRule.ALL_SUCCESS
    words = [after if is_strict else f"{after} ({phase.trigger_rule.value})", *_more(phase)]
    return "; ".join(word for word in words if word)


def _more(phase: Phase) -> Iterator[str]:
    if phase.when is not None:
        yield f"when {one_line(phase.when, LONGEST)}"
    if phase.for_each is not None:
        yield f"for each of {one_line(phase.for_each.items, LONGEST)}"
    if phase.loop is not None:
        yield f"up to {phase.loop.max_iterations} times"
    if phase.retries:
        yield f"retries {phase.retries}"
    if phase.on_failure is OnFailure.CONTINUE:
        yield "may fail"


def draw_mermaid(definition: WorkflowDefinition) -> list[str]:
    """The graph as a Mermaid flowchart; blocks are subgraphs."""
    views = phase_views(definition)
    ids = _ids(views)
    lines = ["flowchart TD", *_mermaid_nodes(views, ids, "  ")]
    for view in every_view(views):
        label = f"|{_mermaid_text(_edge_label(view))}|" if _edge_label(view) else ""
        lines += [f"  {ids[name]} -->{label} {ids[view.path]}" for name in view.depends_on]
    return lines


def _mermaid_nodes(views: Sequence[PhaseView], ids: dict[str, str], indent: str) -> Iterator[str]:
    for view in views:
        text = _mermaid_text(_title(view))
        if view.inside:
            yield f"{indent}subgraph {ids[view.path]}[{text}]"
            yield from _mermaid_nodes(view.inside, ids, indent + "  ")
            yield f"{indent}end"
        else:
            yield f"{indent}{ids[view.path]}[{text}]"


def _mermaid_text(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', "#quot;").replace("<", "&lt;")
    return f'"{escaped}"'


def draw_dot(definition: WorkflowDefinition) -> list[str]:
    """The graph in the language of Graphviz; blocks are clusters."""
    views = phase_views(definition)
    ids = _ids(views)
    lines = [f"digraph {_dot_text(definition.name)} {{", "  compound=true;", "  node [shape=box];"]
    lines += _dot_nodes(views, ids, "  ")
    for view in every_view(views):
        lines += [_dot_edge(name, view, views, ids) for name in view.depends_on]
    return [*lines, "}"]


def _dot_nodes(views: Sequence[PhaseView], ids: dict[str, str], indent: str) -> Iterator[str]:
    for view in views:
        text = _dot_text(_title(view))
        if view.inside:
            yield f"{indent}subgraph cluster_{ids[view.path]} {{"
            yield f"{indent}  label={text};"
            yield from _dot_nodes(view.inside, ids, indent + "  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{ids[view.path]} [label={text}];"


def _dot_edge(name: str, view: PhaseView, views: Sequence[PhaseView], ids: dict[str, str]) -> str:
    """An edge; Graphviz has edges between nodes alone, and cuts them off at the border of a cluster."""
    by_path = {one.path: one for one in every_view(tuple(views))}
    options = [f"label={_dot_text(_edge_label(view))}"] if _edge_label(view) else []
    if by_path[name].inside:
        options.append(f"ltail=cluster_{ids[name]}")
    if view.inside:
        options.append(f"lhead=cluster_{ids[view.path]}")
    ends = f"{ids[_node_in(by_path[name], -1).path]} -> {ids[_node_in(view, 0).path]}"
    return f"  {ends} [{', '.join(options)}];" if options else f"  {ends};"


def _node_in(view: PhaseView, place: int) -> PhaseView:
    while view.inside:
        view = view.inside[place]
    return view


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _ids(views: Sequence[PhaseView]) -> dict[str, str]:
    """Names that mean nothing in either language, by path."""
    return {
        view.path: f"p{number}" for number, view in enumerate(every_view(tuple(views)), start=1)
    }


def _title(view: PhaseView) -> str:
    return f"{view.phase.name}: {_does(view)}"


def _edge_label(view: PhaseView) -> str:
    phase = view.phase
    is_strict = phase.trigger_rule is TriggerRule.ALL_SUCCESS
    words = [] if is_strict else [phase.trigger_rule.value]
    words += [] if phase.when is None else [one_line(phase.when, LONGEST)]
    return "; ".join(words)
