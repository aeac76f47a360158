"""What can be done about an error, as a value that each surface spells its own way."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Action(StrEnum):
    """What can be done about an error. `cli/next_steps.py` and `web/problem.py` say how."""

    ACCEPT_CONFIG = "accept_config"
    CANCEL_JOB = "cancel_job"
    CHECK_CONFIG = "check_config"
    CREATE_FLEET = "create_fleet"
    EXPORT_SESSION = "export_session"
    FOLLOW_JOB = "follow_job"
    IMPORT_CLAUDE = "import_claude"
    IMPORT_HERDCTL = "import_herdctl"
    ANSWER_INBOX_ITEM = "answer_inbox_item"
    LIST_AGENTS = "list_agents"
    LIST_CHECKPOINTS = "list_checkpoints"
    LIST_INBOX = "list_inbox"
    LIST_JOBS = "list_jobs"
    LIST_SCHEDULES = "list_schedules"
    LIST_SESSIONS = "list_sessions"
    MANAGE_DAEMON = "manage_daemon"
    RAISE_SHARED_LIMIT = "raise_shared_limit"
    RESTART_DAEMON = "restart_daemon"
    RESUME_JOB_WITH_PROMPT = "resume_job_with_prompt"
    RESUME_SESSION_AS = "resume_session_as"
    RESUME_SESSION_WITH_PROMPT = "resume_session_with_prompt"
    RUN = "run"
    RUN_IN_CHANNEL = "run_in_channel"
    RUN_IN_SESSION = "run_in_session"
    RUN_WITH_PROMPT = "run_with_prompt"
    SHOW_CONFIG = "show_config"
    SHOW_EVENTS = "show_events"
    SHOW_INBOX_ITEM = "show_inbox_item"
    SHOW_JOB = "show_job"
    SHOW_STATUS = "show_status"
    START_DAEMON = "start_daemon"
    START_WORKER = "start_worker"
    TAKE_OVER_SESSION = "take_over_session"


class NextStep(NamedTuple):
    """An action, and what it is about as far as that is known."""

    action: Action
    agent: str | None = None
    job: str | None = None
    session: str | None = None
    item: str | None = None
