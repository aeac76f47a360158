"""Loading a fleet: from a path to a resolved `Fleet`, or to every problem at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nightherd.config.assemble import Assembly
from nightherd.config.checks import (
    AGENT_HOOKS,
    LIMIT_HOOKS,
    check_capabilities,
    check_chat_schedules,
    check_idempotent,
    check_script,
    check_submitted,
    secret_variables,
    settings_files,
    settings_fingerprints,
    unsupported_keys,
)
from nightherd.config.containers import check_container
from nightherd.config.discovery import FLEET_FILE_NAMES, STATE_DIRECTORY, find_fleet_file
from nightherd.config.documents import Documents
from nightherd.config.endpoints import check_endpoints, check_endpoints_are_used, endpoints_of
from nightherd.config.layers import Draft, Section
from nightherd.config.not_active import AGENT_KEYS, FLEET_KEYS, inactive_keys, outer_keys
from nightherd.config.origins import with_declared
from nightherd.config.persistence import check_project_file
from nightherd.config.report import Findings
from nightherd.config.repository import check_repository, check_worktrees
from nightherd.config.resolve import FILE_VERSION, is_readable_version, resolve_agent, resolve_fleet
from nightherd.config.resolve_chat import chat_schedules
from nightherd.config.resolve_notify import check_targets
from nightherd.config.resolve_work import check_work_sources, check_work_tokens
from nightherd.config.schema.agent import DEFAULT_RUNTIME
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import FleetFile, FleetSettings
from nightherd.config.validate import check
from nightherd.config.wording import not_one_of
from nightherd.config.workflows.load import KnownNames, load_workflows
from nightherd.config.workflows.report import LoadedWorkflow
from nightherd.errors import (
    ConfigInvalidError,
    ConfigNotFoundError,
    InvalidValueError,
    RefusedError,
)
from nightherd.files.yaml_nodes import MappingNode, place_of, problem_at, text_of
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.runtime import KnownRuntimes, RuntimeCapabilities
from nightherd.model.problem import Place, Problem, Severity
from nightherd.model.schedules.jobs import prompt_text
from nightherd.model.schedules.rule import Schedule
from nightherd.model.text import PLACE, input_values, quote
from nightherd.model.webhooks import PAYLOAD
from nightherd.model.work.request import ANY_ISSUE, issue_request


class LoadedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet that can be used, what has to be said about it, and where each of its values came from."""

    fleet: Fleet
    notices: tuple[Problem, ...]
    blocked: tuple[Problem, ...]
    """Settings of single agents that cannot be honoured: those agents do not run."""
    settings: Section
    """What the fleet file says about the fleet itself."""
    agents: Mapping[str, Section]
    """Each agent's settings, by qualified name."""
    workflows: Mapping[str, LoadedWorkflow]
    """Each workflow with its settings, by qualified name."""


class CheckedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found: errors, what blocks single agents, notices; and the fleet when there is no error."""

    file: Path
    problems: tuple[Problem, ...]
    loaded: LoadedFleet | None
    files: tuple[str, ...] = ()
    """Every file it was read from; each may have a `.env` beside it."""
    directories: tuple[str, ...] = ()
    """Directories that more of its files may be put into, there or not."""
    workflow_files: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The file of every workflow that is declared, by qualified name."""
    settings_files: tuple[str, ...] = ()
    """Claude's settings files that its agents obey, there or not."""


def load_fleet(
    path: Path | str,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    runtimes: KnownRuntimes,
    state_dir: Path | None = None,
) -> LoadedFleet:
    """The fleet at `path` (a file, or a directory to search upward from), ready to use.

    Raises `ConfigNotFoundError` when no file is found, `ConfigInvalidError` with all problems otherwise.
    Reads files only; nothing is written, and the process's environment is what `environ` says.
    """
    checked = check_fleet(path, environ=environ, cwd=cwd, runtimes=runtimes, state_dir=state_dir)
    if checked.loaded is None:
        raise ConfigInvalidError(
            [problem for problem in checked.problems if problem.severity is Severity.ERROR]
        )
    return checked.loaded


def check_fleet(
    path: Path | str,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    runtimes: KnownRuntimes,
    state_dir: Path | None = None,
) -> CheckedFleet:
    """Everything there is to say about the fleet at `path`; problems are values here.

    A project's own `config/` is in `state_dir`, else in the state directory beside the fleet file. Raises
    only `ConfigNotFoundError`.
    """
    file = locate(path, cwd)
    findings = Findings()
    assembly = Assembly(environ, findings, Documents(findings))
    assembly.assemble(str(file))
    settings = check_settings(assembly, findings)
    agents = check_agents(assembly.drafts, assembly.fleets, findings, runtimes)
    check_project_file(state_dir or file.parent / STATE_DIRECTORY, findings)
    known: dict[str, Agent | None] = {
        **dict.fromkeys(draft.path.removeprefix("agents.") for draft in assembly.drafts),
        **{one.name: one for one, _ in agents},
    }
    workflow_files: dict[str, str] = {}
    workflows = check_workflows(assembly, settings, known, workflow_files)
    if settings is not None:
        check_endpoints(settings, assembly.fleets[0][1], known, findings)
    if not findings.errors:
        check_hooks(assembly.fleets[0][1], agents, findings)
        checked = [(agent, section.node) for agent, section in agents]
        check_work_tokens(checked, {**assembly.dotenv, **environ}, findings)
    if settings is not None and not findings.errors:
        definitions = [workflow.definition for workflow in workflows.values()]
        check_endpoints_are_used(settings, assembly.fleets[0][1], definitions, findings)
    loaded = None
    if settings is not None and not findings.errors:
        loaded = complete(assembly, settings, agents, workflows, file=str(file))
    return CheckedFleet(
        file=file,
        problems=findings.errors + findings.blocked + findings.notices,
        loaded=loaded,
        files=findings.files,
        directories=findings.directories,
        workflow_files=workflow_files,
        settings_files=tuple(
            dict.fromkeys(one for agent, _ in agents for one in settings_files(agent))
        ),
    )


def complete(
    assembly: Assembly,
    settings: FleetSettings,
    agents: Sequence[tuple[Agent, Section]],
    workflows: Mapping[str, LoadedWorkflow],
    *,
    file: str,
) -> LoadedFleet:
    """The fleet of all the parts, which are right."""
    findings, environ = assembly.findings, assembly.environ
    fleet = resolve_fleet(
        settings,
        [agent for agent, _ in agents],
        file=file,
        files=findings.files,
        environment={k: one for k, one in assembly.dotenv.items() if k not in environ},
        dotenv=assembly.dotenv,
    )
    documents = [node for _, node in assembly.fleets] + [one.node for _, one in agents]
    section = Section(assembly.fleets[0][1], settings)
    return LoadedFleet(
        fleet=replace(
            fleet,
            agents=with_declared(fleet.agents, agents, section),
            workflows={name: workflow.definition for name, workflow in workflows.items()},
            secret_variables=secret_variables(documents, settings),
        ),
        notices=findings.notices,
        blocked=findings.blocked,
        settings=section,
        agents={agent.name: section for agent, section in agents},
        workflows=workflows,
    )


def check_workflows(
    assembly: Assembly,
    settings: FleetSettings | None,
    agents: Mapping[str, Agent | None],
    declared: dict[str, str],
) -> dict[str, LoadedWorkflow]:
    """The workflows of all fleet files, those that are right; None stands for an agent that is broken.

    `declared` gets the file of each, also of those that are wrong.
    """
    directories = {
        name: None if agent is None else agent.working_directory for name, agent in agents.items()
    }
    contained = [name for name, agent in agents.items() if agent and agent.container]
    webhooks = None if settings is None else endpoints_of(settings).keys()
    return load_workflows(
        assembly.workflow_homes,
        documents=assembly.documents,
        findings=assembly.findings,
        known=KnownNames(agents=directories, webhooks=webhooks, contained=contained),
        budget=assembly.budget,
        declared=declared,
    )


def check_hooks(
    fleet: MappingNode, agents: Sequence[tuple[Agent, Section]], findings: Findings
) -> None:
    """Every agent that a hook submits is there, and every notify target has an address."""
    names = [agent.name for agent, _ in agents]
    check_submitted(fleet, LIMIT_HOOKS, names, findings)
    for agent, section in agents:
        path = f"agents.{agent.name}"
        check_submitted(section.node, AGENT_HOOKS, names, findings, path=path)
    check_targets(fleet, [(agent, section.node) for agent, section in agents], findings)


def place_of_value(node: MappingNode, key: str) -> Place | None:
    """Return where the value of `key` stands in a checked document."""
    entry = node.entries.get(key)
    return None if entry is None else place_of(entry.value.spot)


def locate(path: Path | str, cwd: Path) -> Path:
    """The fleet file meant by `path`, absolute; one that is named need not exist."""
    start = cwd / path
    if not start.is_dir():
        return start
    fleet_file = find_fleet_file(start)
    if fleet_file is None:
        raise ConfigNotFoundError(
            f"no {FLEET_FILE_NAMES[0]} in {start} or in any directory above it",
        )
    return fleet_file


def check_settings(assembly: Assembly, findings: Findings) -> FleetSettings | None:
    """The first fleet file's own settings; those of the others are only checked."""
    first: FleetSettings | None = None
    for number, (names, node) in enumerate(assembly.fleets):
        path = ".".join(("fleets", *names)) if names else ""
        settings = check(FleetSettings, node, findings, path=path, whole=FleetFile)
        findings.extend(inactive_keys(node, FLEET_KEYS, path))
        findings.extend(outer_keys(node, path) if names else ())
        if settings is not None and not is_readable_version(settings):
            version = node.get("version") or node
            message = f"this nightherd reads version {FILE_VERSION} of fleet files"
            findings.add(problem_at(version, message, path="version"))
        if number == 0:
            first = settings
    return first


def blocked_by_fleets(
    draft: Draft, fleets: Sequence[tuple[tuple[str, ...], MappingNode]]
) -> Iterator[Problem]:
    """What the files of the fleets that an agent is in set and that cannot be honoured."""
    for names, node in fleets:
        if draft.fleet[: len(names)] != names:
            continue
        path = ".".join(("fleets", *names)) if names else ""
        asked = [*inactive_keys(node, FLEET_KEYS, path), *(outer_keys(node, path) if names else ())]
        yield from (one for one in asked if one.severity is Severity.BLOCKED)


def check_agents(
    drafts: list[Draft],
    fleets: Sequence[tuple[tuple[str, ...], MappingNode]],
    findings: Findings,
    runtimes: KnownRuntimes,
) -> list[tuple[Agent, Section]]:
    """The agents whose drafts are right, no two of one name."""
    agents: list[tuple[Agent, Section]] = []
    declared: dict[str, Draft] = {}
    for draft in drafts:
        if findings.full:
            break
        checked = check(AgentSchema, draft.node, findings, path=draft.path)
        runtime = check_runtime(draft, findings, runtimes)
        found = tuple(inactive_keys(draft.node, AGENT_KEYS, draft.path, runtime))
        if runtime is not None:
            found += tuple(unsupported_keys(draft.node, draft.path, runtime))
        findings.extend(found)
        if checked is None or runtime is None:
            continue
        repository = check_repository(draft.node, draft.environ, findings, path=draft.path)
        agent = resolve_agent(
            checked,
            fleet=draft.fleet,
            home=draft.home,
            runtimes=runtimes,
            repository=repository,
        )
        agent = replace(
            agent,
            model_place=(
                place_of_value(draft.node, "model")
                or place_of_value(draft.node, "runtime")
                or place_of(draft.declared)
            ),
            project_settings=settings_fingerprints(agent),
            blocked_by=(
                *(one for one in found if one.severity is Severity.BLOCKED),
                *blocked_by_fleets(draft, fleets),
            ),
        )
        check_script(agent, draft, findings)
        check_idempotent(agent, draft, findings)
        check_capabilities(agent, draft, findings)
        check_schedules(agent, chat_schedules(checked), draft, findings)
        check_chat_schedules(agent, checked, draft, findings)
        check_work_sources(agent, checked, draft.node, findings, path=draft.path)
        check_worktrees(agent, draft.node, findings, path=draft.path)
        check_container(
            checked.docker, draft.node, findings, path=draft.path, root=agent.working_directory
        )
        first = declared.setdefault(agent.name, draft)
        if first is not draft:
            message = f"a second agent called {quote(agent.name)}"
            hint = f"the first is at {place_of(first.declared)}"
            findings.add(problem_at(draft.declared, message, path=draft.path, hint=hint))
            continue
        agents.append((agent, Section(draft.node, checked, draft.layers)))
    return agents


def check_runtime(
    draft: Draft, findings: Findings, runtimes: KnownRuntimes
) -> RuntimeCapabilities | None:
    """Return what the agent's runtime can do; None when there is no runtime by that name."""
    node = draft.node.get("runtime")
    path = f"{draft.path}.runtime"
    try:
        runtime = runtimes.find(text_of(node) or DEFAULT_RUNTIME)
    except RefusedError as error:
        findings.add(problem_at(node or draft.declared, error.message, path=path, hint=error.hint))
        return None
    if runtime is None and node is not None:
        message, hint = not_one_of(list(runtimes.names()), node)
        findings.add(problem_at(node, message, path=path, hint=hint))
    return runtime


def check_schedules(
    agent: Agent, of_chats: Collection[str], draft: Draft, findings: Findings
) -> None:
    """A schedule's job has to be asked something, and what its prompt uses has to be there."""
    values = {"repo": agent.repo} if agent.repo is not None else {}
    section = draft.node.get("schedules")
    for schedule in agent.schedules.values():
        entry = section.entries.get(schedule.name) if isinstance(section, MappingNode) else None
        inputs = input_values(schedule.inputs)
        if schedule.name in of_chats and schedule.prompt is None:
            continue  # people say what its jobs are asked
        try:
            if schedule.work is not None:
                issue_request(agent, schedule, schedule.work, ANY_ISSUE)
                continue
            prompt_text(agent, schedule, {**values, **inputs, **payload_of(schedule)})
        except InvalidValueError as error:
            place = entry.key if entry is not None else draft.declared
            path = f"{draft.path}.schedules.{schedule.name}"
            findings.add(problem_at(place, error.message, path=path))


def payload_of(schedule: Schedule) -> dict[str, str]:
    """Stands for what a message will bring, in the prompt of a schedule that no time makes due."""
    if schedule.rule is not None or schedule.prompt is None:
        return {}
    names = (match[1] for match in PLACE.finditer(schedule.prompt))
    return {name: "" for name in names if name.split(".")[0] == PAYLOAD}
