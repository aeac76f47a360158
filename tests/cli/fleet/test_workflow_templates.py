"""The templates with workflows: from `init` to one push, in real processes; only one program has the credential."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.fleet.herd import Herd, MakeHerd
from components import Components
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.web.socket_file import connect
from runtimes.claude.claude_stage import make_stage

SECRET = "hook-secret-of-this-test"
WAITS = 8
TITLE = "Discounts raise the price"
FIXED = ["Subtract the discount", "Add discounts"]
TESTED = ["Test that a discount of 100 % is free", *FIXED]


def test_pr_review_works_from_its_readme_to_one_push(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")

    herd.follow_readme()

    assert herd.pushed("review/main") == FIXED
    (run,) = herd.data("runs")
    assert run["status"] == "succeeded"
    assert herd.shell("git -C checkout status --porcelain --branch") == "## main\n"
    herd.shell("nightherd workspace clean")
    assert herd.data("workspace list") == []


def test_repository_is_cloned_when_there_is_no_checkout(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh && rm -rf checkout")

    herd.shell("nightherd config check && nightherd workflow run pr-review", codes=(WAITS,))
    herd.answer("approve @last")

    assert herd.pushed("review/main") == FIXED


def test_review_that_is_told_no_pushes_nothing_and_says_so(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh; nightherd workflow run pr-review", codes=(WAITS,))

    herd.answer("reject @last -m 'add a test first'")

    assert herd.pushed("review/main") == []
    (run,) = herd.data("runs")
    assert run["status"] == "failed"
    assert "add a test first" in run["error"]


def test_commit_that_was_not_approved_is_not_pushed(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh; nightherd workflow run pr-review", codes=(WAITS,))
    workspace = f".nightherd-workspaces/{herd.data('runs')[0]['id']}"
    herd.shell(f"git -C {workspace} commit -q --allow-empty -m 'Something else'")

    herd.answer("approve @last")

    assert herd.pushed("review/main") == []
    assert "the latest commit is" in herd.data("runs show @last")["error"]


def test_only_the_publishing_program_has_the_credential(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh")
    token = (herd.root / "push-token").read_text()
    fleet = yaml.safe_load((herd.root / "nightherd.yaml").read_text())
    workflow = fleet["workflows"]["pr-review"]
    workflow["triggers"] = workflow.pop(True)  # this reader takes `on` for a boolean
    commands = [f"env > {herd.root}/environment", "git push origin HEAD:other"]
    calls = [{"tool": "Bash", "input": {"command": command}} for command in commands]
    fleet["agents"][0] |= {
        "allowed_tools": ["Bash"],
        "denied_tools": [],
        "script": [*calls, {"say": '{"changed": true, "why": "to see what happens"}'}],
    }
    (herd.root / "nightherd.yaml").write_text(yaml.safe_dump(fleet))

    herd.shell("nightherd workflow run pr-review", codes=(WAITS,))
    assert herd.shell("git -C origin.git branch --list").split() == ["main"]
    herd.answer("approve @last")

    assert token not in (herd.root / "environment").read_text()
    assert "a token is needed to push" in herd.shell("nightherd runs tail @last -n all")
    assert herd.shell("git -C origin.git branch --list").split() == ["main", "review/main"]
    journals = [path.read_text() for path in (herd.root / ".nightherd/jobs").glob("*.jsonl")]
    assert all(token not in text for text in journals)


def test_publishing_program_runs_nothing_of_the_repository_and_checks_the_commit(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh && git -C checkout switch -q -c fix")
    hook = herd.root / "checkout/.git/hooks/pre-push"
    hook.write_text(f"#!/bin/sh\nenv > {herd.root}/stolen\n")
    hook.chmod(0o755)
    herd.shell(f"git -C checkout config core.fsmonitor 'env > {herd.root}/stolen; false'")
    herd.shell(f"git -C checkout config url.{herd.root}/other.git.insteadOf {herd.root}/origin.git")
    at = herd.shell("git -C checkout rev-parse fix").strip()
    refused = (f"checkout {at} main", f"checkout {'0' * 40} fix", f"checkout {at} --force")

    assert herd.shell("python3 publish.py head checkout").strip() == at
    for arguments in refused:
        herd.shell(f"python3 publish.py push {arguments}", codes=(1,))
    said = [herd.shell(f"python3 publish.py push checkout {at} fix") for _ in range(2)]

    assert said == [f"pushed {at} to fix\n"] * 2
    assert herd.shell("git -C origin.git rev-parse fix").strip() == at
    assert not (herd.root / "stolen").exists()


def test_the_token_is_given_to_git_by_its_credential_helper(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    program = "import publish; print(publish.HELPER)"
    helper = herd.shell(f"python3 -c '{program}'").strip()
    line = 'git -c credential.helper= -c credential.helper="$HELPER" credential fill'
    herd.reader.environment |= {"HELPER": helper, "PUSH_TOKEN": "token-of-this-test"}

    said = herd.shell(f"printf 'protocol=https\\nhost=example.com\\n\\n' | {line}").split()

    assert {"username=x-access-token", "password=token-of-this-test"} <= {*said}


def test_a_pull_request_starts_one_run(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh")
    herd.reader.environment["HOOK_SECRET"] = SECRET
    herd.shell("nightherd start --detach")
    pull = {"number": 7, "title": "Add discounts", "head": {"ref": "feature"}}
    message = {"action": "opened", "pull_request": pull}

    answers = [deliver(herd, "pull-request", message, event="pull_request") for _ in range(2)]
    herd.wait_for_run("paused")

    assert answers == [202, 202]
    (run,) = herd.data("runs")
    assert run["trigger_type"] == "webhook"
    prompt = herd.data("jobs --agent reviewer")[0]["id"]
    assert herd.data(f"jobs show {prompt}")["prompt"].startswith(
        'Review pull request 7: <untrusted source="inputs.title">Add discounts</untrusted>\n'
    )
    herd.shell("nightherd inbox approve @last")
    herd.wait_for_run("succeeded")
    assert herd.pushed("review/feature") == FIXED


def deliver(herd: Herd, endpoint: str, message: dict[str, Any], *, event: str) -> int:
    """Send what GitHub sends to the daemon's socket, as delivery 1; the status of the answer."""
    body = json.dumps(message).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    client = http.client.HTTPConnection("localhost")
    client.sock = connect(herd.root / ".nightherd/daemon.sock")
    headers = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": f"delivery-{message.get('label', {}).get('name', 1)}",
        "x-hub-signature-256": f"sha256={signature}",
    }
    client.request("POST", f"/v1/hooks/{endpoint}", body, headers)
    answer = client.getresponse()
    answer.read()
    client.close()
    return answer.status


def test_the_real_reviewer_is_one_line_away(
    make_herd: MakeHerd, components: Components, tmp_path: Path
) -> None:
    (tmp_path / "claude").mkdir()
    stage = make_stage(tmp_path / "claude", components.claude())
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh")
    herd.shell("sed -i 's/runtime: scripted/runtime: cli/' nightherd.yaml")
    commit = "git commit -q --allow-empty -m Reviewed"
    says = (
        Say(text="I will look.", calls=(Call("Bash", {"command": commit}),)),
        Say(text='{"changed": true, "why": "It was not reviewed."}'),
    )
    with MessagesApi(*says) as api:
        theirs = stage.environment(api)
        path = f"{stage.programs}{os.pathsep}{herd.reader.environment['PATH']}"
        herd.reader.environment |= {**theirs, "PATH": path}

        herd.shell("nightherd workflow run pr-review", codes=(WAITS,))
        assert herd.pushed("review/main") == []
        herd.answer("approve @last")

    assert herd.pushed("review/main") == ["Reviewed", "Add discounts"]
    assert herd.data("runs show @last")["status"] == "succeeded"


def test_issue_to_pr_works_from_its_readme_to_one_push(make_herd: MakeHerd) -> None:
    herd = make_herd("issue-to-pr")

    herd.follow_readme()

    (run,) = herd.data("runs")
    assert run["status"] == "succeeded"
    assert herd.pushed(f"issue/{run['id']}") == TESTED
    assert herd.shell("git -C checkout status --porcelain --branch") == "## main\n"


def test_plan_that_a_person_changed_is_what_the_coder_gets(make_herd: MakeHerd) -> None:
    herd = make_herd("issue-to-pr")
    herd.shell("sh sample.sh")
    herd.shell(f"nightherd workflow run issue-to-pr --input title='{TITLE}'", codes=(WAITS,))

    herd.answer("approve @last --input artifact='Do it my way.'")

    prompts = [
        herd.data(f"jobs show {job['id']}")["prompt"] for job in herd.data("jobs --agent coder")
    ]
    assert prompts[-1].endswith("\n\nDo it my way.")


@pytest.mark.parametrize(("label", "status"), [("nightherd", "paused"), ("bug", "succeeded")])
def test_only_an_issue_with_the_label_starts_work(
    label: str, status: str, make_herd: MakeHerd
) -> None:
    herd = make_herd("issue-to-pr")
    herd.shell("sh sample.sh")
    herd.reader.environment["HOOK_SECRET"] = SECRET
    herd.shell("nightherd start --detach")
    issue = {"number": 3, "title": TITLE, "body": "A discount of 20 % makes it dearer."}
    message = {"action": "labeled", "label": {"name": label}, "issue": issue}

    assert deliver(herd, "issue", message, event="issues") == 202
    herd.wait_for_run(status)

    assert [job["agent"] for job in herd.data("jobs")] == ["planner"] * (label == "nightherd")


def test_pull_request_is_opened_once_with_the_token(make_herd: MakeHerd, tmp_path: Path) -> None:
    herd = make_herd("issue-to-pr")
    herd.shell("sh sample.sh && mkdir programs")
    # Stands for GitHub's program: it lists what was created.
    program = f"""#!/bin/sh
    cd {herd.root}
    echo "$GH_TOKEN" >> tokens
    case "$2" in
        list) cat created 2>/dev/null || true ;;
        create) printf '%s\\n' "$@" > asked; echo https://github.example/pull/1 | tee created ;;
    esac
    """
    gh = herd.root / "programs/gh"
    gh.write_text(program)
    gh.chmod(0o755)
    path = f"{herd.root}/programs{os.pathsep}{herd.reader.environment['PATH']}"
    herd.reader.environment |= {"PATH": path, "PULL_REQUESTS": "owner/name"}

    said = [herd.shell(f"python3 publish.py pull-request fix '{TITLE}'") for _ in range(2)]

    assert said == ["https://github.example/pull/1\n"] * 2
    asked = (herd.root / "asked").read_text().splitlines()
    assert asked[:6] == ["pr", "create", "--repo", "owner/name", "--head", "fix"]
    assert asked[6:8] == ["--title", TITLE]
    assert {*(herd.root / "tokens").read_text().split()} == {(herd.root / "push-token").read_text()}
    assert len((herd.root / "tokens").read_text().split()) == 3


def test_publishing_program_says_what_is_wrong_in_one_line(make_herd: MakeHerd) -> None:
    herd = make_herd("issue-to-pr")

    done = subprocess.run(
        ["python3", "publish.py", "head", "nowhere"],
        cwd=herd.root,
        env=herd.reader.environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("not published: ")
    assert "Traceback" not in done.stderr
