"""Advice: what a person can do about a job that failed, or waits, by the code it has."""

from __future__ import annotations

import re

from nightherd.errors import InvalidValueError
from nightherd.model.duration import format_duration, parse_duration
from nightherd.model.job import CHILD_WAITS, PRICE_UNKNOWN, Job, JobStatus, SuspendReason
from nightherd.model.session_terms import TIMEOUT_KEY

GO_ON = "nightherd jobs resume {job}"
AGAIN = "nightherd jobs retry {job}"
LATER = f"later: {AGAIN}"
SOONER = f"sooner: {GO_ON}"
EXCEEDED = "_exceeded"
"""How the codes of limits end."""
MORE = "nightherd jobs resume {{job}} --raise {limit}={maximum}"
MISSING_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
AMOUNTS = {
    "spend": re.compile(r"\$([\d,]+\.\d+)"),
    "duration": re.compile(r"\b((?:\d+(?:\.\d+)?(?:ms|[wdhms]))+)\b"),
}
"""How amounts stand in what is said about a limit; counts are plain numbers."""
COUNTS = re.compile(r"(?<![\w.$])([\d,]*\d)(?![\w.])")
SHARED = "nightherd limits show {agent}"
ABOVE = "nightherd jobs show {parent}"
"""A job that waits for what is not its own, and has one above it: that one knows more."""
ADVICE = {
    "missing_cli": "install Claude Code, or put `claude` on the PATH of the worker",
    "start_failed": f"check the machine's memory, disk and limits of processes and open files, then: {AGAIN}",
    "missing_api_key": "log in with `claude /login`, or export ANTHROPIC_API_KEY",
    "auth_failed": f"check the key: the provider does not accept it; then: {AGAIN}",
    "token_expired": f"claude /login, then: {AGAIN}",
    "billing": f"check the credit of the account, then: {AGAIN}",
    "working_directory": "nightherd config show {agent} --origin",
    "model_not_found": "nightherd config show {agent} --origin",
    "no_model": "nightherd config show {agent} --origin",
    "no_script": "nightherd config show {agent} --origin",
    "template": "nightherd config show {agent} --origin",
    "missing_provider": "pip install 'nightherd[native]'",
    "rate_limited": f"{LATER}; fewer at once: max_concurrent",
    "overloaded": LATER,
    "server_error": LATER,
    "network": f"check the connection, the addresses of MCP servers and the firewall, then: {AGAIN}",
    PRICE_UNKNOWN: f"add the model to `prices:` in the fleet file, then: {GO_ON}",
    CHILD_WAITS: "nightherd jobs show {job} names the job it waits for: resume that one, and this one follows",
    "session_held": f"Claude's own background agent has the session: stop it with `claude agents`, then: {GO_ON}",
    "stalled": GO_ON,
    "killed": GO_ON,
    "interrupted": GO_ON,
    "timeout": f"raise job_timeout, then: {GO_ON}",
    "max_turns": f"raise max_turns, then: {GO_ON}",
    "limit": f"raise the limit, then: {GO_ON}",
    "prompt_too_long": "give it less, or let the session be summarised: session.max_context_tokens",
    "malformed_answer": f"{AGAIN}; it may be an old version: claude --version",
    "no_result": f"{GO_ON}; it may be an old version: claude --version",
    "journal_failed": "nightherd doctor",
    "unreadable_record": "nightherd doctor",
}
"""What to do about it, where that is known."""


def advice_on(job: Job) -> str | None:
    """What to do about the job's failure, or its waiting; None when nothing is known to help."""
    code = job.error_code or ""
    limit = code.removesuffix(EXCEEDED)
    known = ADVICE.get(code)
    if limit != code:
        known = MORE.format(limit=limit, maximum=_enough(limit, job.error or ""))
    if code == "missing_api_key":
        known = f"{key_advice(job.error or '')}, then: {AGAIN}"
    if code == "timeout" and TIMEOUT_KEY in (job.error or ""):
        known = f"raise {TIMEOUT_KEY}, then: {GO_ON}"
    if job.suspend_reason is SuspendReason.BUDGET:
        known = SHARED if job.parent_job_id is None or job.not_before is not None else ABOVE
    if known is None and job.suspend_reason is SuspendReason.ERROR:
        known = LATER if job.resumes_at is not None else GO_ON
    if known is None:
        return None
    if job.status is JobStatus.SUSPENDED:  # once more, as a new job, would do the same work twice
        known = known.replace(LATER, SOONER) if job.resumes_at is not None else known
        known = known.replace(AGAIN, GO_ON)
    return known.format(job=job.id, agent=job.agent, parent=job.parent_job_id)


def key_advice(error: str) -> str:
    """What to do about a missing key, by the variable that the error names."""
    variable = MISSING_KEY.search(error)
    if variable is None:
        return ADVICE["missing_api_key"]
    return f"export {variable[0]}, or set it in .env beside the fleet file"


def _enough(limit: str, error: str) -> str:
    """A maximum that lets the job go on: twice the largest amount that the error names."""
    amounts = AMOUNTS.get(limit, COUNTS).findall(error)
    try:
        match limit:
            case "spend":
                return f"{2 * max(float(one.replace(',', '')) for one in amounts):.2f}"
            case "duration":
                return format_duration(2 * max(parse_duration(one) for one in amounts))
            case _:
                return str(2 * max(int(one.replace(",", "")) for one in amounts))
    except (ValueError, InvalidValueError):  # none that can be read
        return "MAXIMUM"
