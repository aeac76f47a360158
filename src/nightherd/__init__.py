"""nightherd runs fleets of AI agents unattended and never loses their work.

The names below are the library: stable, documented in docs/guide/library.md, and loaded when first used, so
that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightherd.errors import (
        AtomicWriteError,
        InvalidInputsError,
        JobTimeoutError,
        MalformedResponseError,
        NightherdError,
        RunnerError,
        SafeReadError,
        SDKInitializationError,
        SDKStreamingError,
        StateDirectoryCreateError,
        StateDirectoryValidationError,
        StateError,
        StateFileError,
        WorkspaceError,
        WorkspaceNotFoundError,
    )
    from nightherd.files.atomic import append_jsonl, atomic_write_file, atomic_write_json
    from nightherd.files.permission import permission_error_message
    from nightherd.files.reading import (
        ReadFailed,
        ReadOk,
        safe_read_json,
        safe_read_jsonl,
        safe_read_yaml,
    )
    from nightherd.files.yaml_dump import atomic_write_yaml
    from nightherd.library.cancel import Cancel
    from nightherd.library.fleet import OpenFleet, Order, RunnerResult, open_fleet
    from nightherd.library.inbox import Inbox
    from nightherd.library.jobs import (
        append_job_output,
        create_job,
        get_job,
        is_terminal_message,
        is_valid_job_output_input,
        list_jobs,
        load_state,
        read_job_output,
        resume_from_state,
        save_state,
        update_job,
        validate_state,
    )
    from nightherd.library.runs import Workflow
    from nightherd.library.sessions import (
        SessionInfo,
        clear_session,
        get_session_info,
        update_session_info,
    )
    from nightherd.library.state import (
        create_default_schedule_state,
        generate_job_id,
        generate_session_id,
        get_agent_state,
        get_state_directory,
        init_state_directory,
        update_agent_state,
    )
    from nightherd.library.workspaces import JobDiff, Workspaces
    from nightherd.mirror.fleet_state import read_fleet_state
    from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef, ToolAnswer
    from nightherd.model.inbox.item import InboxItem, InboxQuery
    from nightherd.model.jobs.failure import RunnerErrorDetails, classify_error
    from nightherd.model.jobs.job import JobQuery
    from nightherd.model.jobs.lost import Lost, ObservedJob
    from nightherd.model.sessions.session import SessionQuery
    from nightherd.model.workflows.rows import RunQuery, WorkflowRun
    from nightherd.model.workspaces.workspace import WorkspaceQuery
    from nightherd.state.directory import StateDirectory, validate_state_directory
    from nightherd.views.runs.document import RunView

__version__ = "0.1.0"

__all__ = [
    "AtomicWriteError",
    "Cancel",
    "Inbox",
    "InboxItem",
    "InboxQuery",
    "InjectedMcpServerDef",
    "InjectedMcpToolDef",
    "InvalidInputsError",
    "JobDiff",
    "JobQuery",
    "JobTimeoutError",
    "Lost",
    "MalformedResponseError",
    "NightherdError",
    "ObservedJob",
    "OpenFleet",
    "Order",
    "ReadFailed",
    "ReadOk",
    "RunQuery",
    "RunView",
    "RunnerError",
    "RunnerErrorDetails",
    "RunnerResult",
    "SDKInitializationError",
    "SDKStreamingError",
    "SafeReadError",
    "SessionInfo",
    "SessionQuery",
    "StateDirectory",
    "StateDirectoryCreateError",
    "StateDirectoryValidationError",
    "StateError",
    "StateFileError",
    "ToolAnswer",
    "Workflow",
    "WorkflowRun",
    "WorkspaceError",
    "WorkspaceNotFoundError",
    "WorkspaceQuery",
    "Workspaces",
    "__version__",
    "append_job_output",
    "append_jsonl",
    "atomic_write_file",
    "atomic_write_json",
    "atomic_write_yaml",
    "classify_error",
    "clear_session",
    "create_default_schedule_state",
    "create_job",
    "generate_job_id",
    "generate_session_id",
    "get_agent_state",
    "get_job",
    "get_session_info",
    "get_state_directory",
    "init_state_directory",
    "is_terminal_message",
    "is_valid_job_output_input",
    "list_jobs",
    "load_state",
    "open_fleet",
    "permission_error_message",
    "read_fleet_state",
    "read_job_output",
    "resume_from_state",
    "safe_read_json",
    "safe_read_jsonl",
    "safe_read_yaml",
    "save_state",
    "update_agent_state",
    "update_job",
    "update_session_info",
    "validate_state",
    "validate_state_directory",
]

_HOMES = {
    "AtomicWriteError": "nightherd.errors",
    "Cancel": "nightherd.library.cancel",
    "Inbox": "nightherd.library.inbox",
    "InboxItem": "nightherd.model.inbox.item",
    "InboxQuery": "nightherd.model.inbox.item",
    "InjectedMcpServerDef": "nightherd.model.agents.mcp",
    "InjectedMcpToolDef": "nightherd.model.agents.mcp",
    "InvalidInputsError": "nightherd.errors",
    "JobDiff": "nightherd.library.workspaces",
    "JobQuery": "nightherd.model.jobs.job",
    "Lost": "nightherd.model.jobs.lost",
    "ObservedJob": "nightherd.model.jobs.lost",
    "JobTimeoutError": "nightherd.errors",
    "MalformedResponseError": "nightherd.errors",
    "NightherdError": "nightherd.errors",
    "OpenFleet": "nightherd.library.fleet",
    "Order": "nightherd.library.fleet",
    "ReadFailed": "nightherd.files.reading",
    "ReadOk": "nightherd.files.reading",
    "RunQuery": "nightherd.model.workflows.rows",
    "RunView": "nightherd.views.runs.document",
    "RunnerError": "nightherd.errors",
    "RunnerErrorDetails": "nightherd.model.jobs.failure",
    "RunnerResult": "nightherd.library.fleet",
    "SDKInitializationError": "nightherd.errors",
    "SDKStreamingError": "nightherd.errors",
    "SafeReadError": "nightherd.errors",
    "SessionInfo": "nightherd.library.sessions",
    "SessionQuery": "nightherd.model.sessions.session",
    "StateDirectory": "nightherd.state.directory",
    "StateDirectoryCreateError": "nightherd.errors",
    "StateDirectoryValidationError": "nightherd.errors",
    "StateError": "nightherd.errors",
    "StateFileError": "nightherd.errors",
    "ToolAnswer": "nightherd.model.agents.mcp",
    "Workflow": "nightherd.library.runs",
    "WorkflowRun": "nightherd.model.workflows.rows",
    "WorkspaceError": "nightherd.errors",
    "WorkspaceNotFoundError": "nightherd.errors",
    "WorkspaceQuery": "nightherd.model.workspaces.workspace",
    "Workspaces": "nightherd.library.workspaces",
    "append_job_output": "nightherd.library.jobs",
    "append_jsonl": "nightherd.files.atomic",
    "atomic_write_file": "nightherd.files.atomic",
    "atomic_write_json": "nightherd.files.atomic",
    "atomic_write_yaml": "nightherd.files.yaml_dump",
    "classify_error": "nightherd.model.jobs.failure",
    "clear_session": "nightherd.library.sessions",
    "create_default_schedule_state": "nightherd.library.state",
    "create_job": "nightherd.library.jobs",
    "generate_job_id": "nightherd.library.state",
    "generate_session_id": "nightherd.library.state",
    "get_agent_state": "nightherd.library.state",
    "get_job": "nightherd.library.jobs",
    "get_session_info": "nightherd.library.sessions",
    "get_state_directory": "nightherd.library.state",
    "init_state_directory": "nightherd.library.state",
    "is_terminal_message": "nightherd.library.jobs",
    "is_valid_job_output_input": "nightherd.library.jobs",
    "list_jobs": "nightherd.library.jobs",
    "load_state": "nightherd.library.jobs",
    "open_fleet": "nightherd.library.fleet",
    "permission_error_message": "nightherd.files.permission",
    "read_fleet_state": "nightherd.mirror.fleet_state",
    "read_job_output": "nightherd.library.jobs",
    "resume_from_state": "nightherd.library.jobs",
    "safe_read_json": "nightherd.files.reading",
    "safe_read_jsonl": "nightherd.files.reading",
    "safe_read_yaml": "nightherd.files.reading",
    "save_state": "nightherd.library.jobs",
    "update_agent_state": "nightherd.library.state",
    "update_job": "nightherd.library.jobs",
    "update_session_info": "nightherd.library.sessions",
    "validate_state": "nightherd.library.jobs",
    "validate_state_directory": "nightherd.state.directory",
}


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
