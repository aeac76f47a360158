"""`work_source` in fleet files: what schedules inherit, which tokens go where, and what is wrong with it."""

from __future__ import annotations

import pytest

from config.folder import Folder
from nightherd.model.secrets import secrets_of
from nightherd.model.work.source import OnSuccess, WorkSource

AGENT = """\
agents:
  - name: a
    runtime: scripted
    default_prompt: go
    script: [{say: x}]
"""
TOKEN = {"GITHUB_TOKEN": "ghp_4f8a91c2d7e6"}


def sources(folder: Folder, text: str, **environ: str) -> dict[str, WorkSource | None]:
    """The source of each schedule of agent `a`, where its keys are `text`."""
    folder.write("nightherd.yaml", AGENT + text)
    (agent,) = folder.load(**{**TOKEN, **environ}).fleet.agents.values()
    return {name: schedule.work for name, schedule in agent.schedules.items()}


def errors(folder: Folder, text: str) -> list[str]:
    folder.write("nightherd.yaml", AGENT + text)
    return [one.message for one in folder.check(**TOKEN).problems if one.severity == "error"]


def test_schedule_has_what_its_agent_says_and_its_own(folder: Folder) -> None:
    found = sources(
        folder,
        """\
    work_source: {type: github, repo: acme/app, labels: {ready: go, done: done}, max_attempts: 5}
    schedules:
      own: {interval: 1h, work_source: {type: github, labels: {ready: now}, on_success: keep, lock: false}}
      same: {cron: "@daily"}
      none: {interval: 1h, work_source: {type: none}}
      hook: {type: webhook}
""",
    )

    assert found["same"] == WorkSource(repo="acme/app", ready="go", done="done", max_attempts=5)
    assert found["own"] == WorkSource(
        repo="acme/app",
        ready="now",
        done="done",
        max_attempts=5,
        on_success=OnSuccess.KEEP,
        lock=False,
    )
    assert found["none"] is None
    assert found["hook"] is None


def test_herdctls_source_is_read_as_it_is(folder: Folder) -> None:
    found = sources(
        folder,
        """\
    schedules:
      issues:
        interval: 5m
        work_source:
          type: github
          repo: acme/app
          labels: {ready: ready, in_progress: agent-working}
          exclude_labels: [blocked, wip]
          cleanup_on_failure: true
          cleanup_in_progress: true
          auth: {token_env: GITHUB_TOKEN}
""",
    )

    assert found["issues"] == WorkSource(
        repo="acme/app", exclude_labels=("blocked", "wip"), cleanup_in_progress=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{type: github}", "a github work source needs 'repo'"),
        ("{type: gitlab, repo: a/b}", "'gitlab' is not one of github, none"),
        ("{type: github, repo: a/..}", "'a/..' is not a repository"),
        (
            "{type: github, repo: a/b, labels: {in_progress: Ready}}",
            "'labels.ready' and 'labels.in_progress' are both 'Ready'",
        ),
        (
            "{type: github, repo: a/b, labels: {ready: 'a,b'}}",
            "'labels.ready' is 'a,b': GitHub lists no issues by a label with a comma",
        ),
        (
            "{type: github, repo: a/b, base_url: 'https://git.example/api/v3'}",
            "'GITHUB_TOKEN' is for https://api.github.com; another server needs a token of its own",
        ),
        (
            "{type: github, repo: a/b, base_url: 'http://git.example/api/v3', auth: {token_env: T}}",
            "not the address of an API",
        ),
        (
            "{type: github, repo: a/b, base_url: 'https://me:pw@git.example', auth: {token_env: T}}",
            "not the address of an API",
        ),
        ("{type: github, repo: a/b, max_attempts: 0}", "expected at least 1, got the number 0"),
    ],
)
def test_mistake_is_one_problem(folder: Folder, text: str, message: str) -> None:
    line = f"    work_source: {text}\n    schedules: {{x: {{interval: 1h}}}}\n"
    found = errors(folder, line)

    assert len(found) == 1, found
    assert found[0].startswith(message)
    assert "pw" not in found[0]


def test_token_is_for_one_server(folder: Folder) -> None:
    found = errors(
        folder,
        """\
    schedules:
      one: {interval: 1h, work_source: {type: github, repo: a/b, base_url: "https://one.example", auth: {token_env: T}}}
      two: {interval: 1h, work_source: {type: github, repo: a/b, base_url: "https://two.example", auth: {token_env: T}}}
""",
    )

    assert found == [
        "the token in T is used for https://one.example; https://two.example needs one of its own"
    ]


def test_prompt_that_uses_an_unknown_value_is_a_mistake(folder: Folder) -> None:
    found = errors(
        folder,
        """\
    work_source: {type: github, repo: a/b}
    schedules: {x: {interval: 1h, prompt: "${inputs.issue_title} ${inputs.nothing}"}}
""",
    )

    assert len(found) == 1
    assert "inputs.nothing" in found[0]


def test_missing_token_is_told_once_with_its_line(folder: Folder) -> None:
    folder.write(
        "nightherd.yaml",
        AGENT
        + """\
    work_source: {type: github, repo: a/b}
    schedules: {x: {interval: 1h}, y: {interval: 2h}}
""",
    )
    told = [(one.place.line, one.message) for one in folder.load().notices]
    quiet = folder.load(**TOKEN).notices

    assert told == [(6, "no issue of a/b is taken: GITHUB_TOKEN is not set")]
    assert quiet == ()


def test_source_of_a_schedule_without_a_time_is_told(folder: Folder) -> None:
    folder.write(
        "nightherd.yaml",
        AGENT + "    schedules: {x: {type: webhook, work_source: {type: github, repo: a/b}}}\n",
    )

    (notice,) = folder.load(**TOKEN).notices
    assert "schedules of type interval and cron take issues" in notice.message


def test_tokens_are_known_as_secrets(folder: Folder) -> None:
    text = "    work_source: {type: github, repo: a/b, auth: {token_env: PLAIN}}\n    schedules: {x: {interval: 1h}}\n"
    folder.write("nightherd.yaml", AGENT + text)
    environ = {"PLAIN": "not-like-a-token-at-all"}
    secrets = secrets_of(folder.load(**environ).fleet, environ)

    assert "not-like" not in str(secrets.mask("It is not-like-a-token-at-all."))


def test_message_fires_no_schedule_that_takes_issues(folder: Folder) -> None:
    found = errors(
        folder,
        """\
    work_source: {type: github, repo: a/b}
    schedules: {x: {interval: 1h}}
webhooks: {secret_env: S, endpoints: {in: {agent: a, schedule: x}}}
""",
    )

    assert found == ["'x' takes issues at its slots; a message cannot fire it"]
