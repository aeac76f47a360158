"""Templates: fleets that work as they are, from `init` to the end, in real processes; nothing is overwritten."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import Components
from document_reader import REPOSITORY, Reader
from nightherd.cli.fleet.template import TEMPLATES, template_texts
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.web.socket_file import connect
from runtimes.claude.claude_stage import make_stage
from surfaces.drivers import Cli

NAMES = sorted(TEMPLATES)
SECRET = "hook-secret-of-this-test"
BRANCH = "review/discount"
NO_DAEMON = 69


class Herd:
    """A fleet from a template, and a person at its shell."""

    def __init__(self, folder: Path, name: str, *before: str) -> None:
        self.reader = Reader(folder)
        self.root = self.reader.directory
        self.shell(" && ".join([*before, f"nightherd init --template {name}"]))

    def shell(self, line: str, *, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.root,
            env=self.reader.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    def data(self, words: str) -> Any:
        return json.loads(self.shell(f"nightherd {words} --json"))["data"]

    def follow_readme(self) -> None:
        self.reader.follow(self.root / "README.md")

    def wait_for(self, status: str) -> None:
        """Wait until the newest job has the status: `worker` runs whatever can run."""
        self.shell(
            f'until nightherd jobs --json | grep -q \'"status":"{status}"\'; do sleep 0.1; done'
        )

    def pushed(self) -> list[str]:
        """The subjects of what is on the review branch of the remote."""
        seen = self.shell(f"git -C origin.git log --format=%s {BRANCH} --", codes=(0, 128))
        return seen.splitlines()


@pytest.fixture
def make_herd(tmp_path: Path, components: Components) -> Iterator[Callable[..., Herd]]:
    components.program("git")
    made: list[Herd] = []

    def make(name: str, *before: str) -> Herd:
        made.append(Herd(tmp_path, name, *before))
        return made[-1]

    yield make
    for herd in made:
        herd.shell("nightherd stop --now", codes=(0, NO_DAEMON))


MakeHerd = Callable[..., Herd]
REPOSITORY_WITH_A_COMMIT = ("git init -q -b main", "git commit -q --allow-empty -m Begin")


def test_nightly_works_from_its_readme_to_the_end(make_herd: MakeHerd) -> None:
    herd = make_herd("nightly", *REPOSITORY_WITH_A_COMMIT)

    herd.follow_readme()

    assert "Report of the night" in (herd.root / "reports" / "report.md").read_text()
    assert not (herd.root / "reports" / "draft.md").exists()
    assert herd.shell("git log --format= --name-only").split() == ["reports/report.md"]
    (slot,) = herd.data("schedule list")
    assert (slot["id"], slot["status"]) == ("caretaker/nightly", "idle")
    assert herd.data("status")["inbox"]["waiting"] == 0


@pytest.mark.parametrize("before", [(), ("git init -q",)])
def test_nightly_works_in_the_directory_itself_where_no_worktree_can_be_made(
    before: tuple[str, ...], make_herd: MakeHerd
) -> None:
    herd = make_herd("nightly", *before)

    herd.shell("nightherd config check")
    herd.shell("nightherd schedule run caretaker/nightly && nightherd worker --until-idle")
    herd.shell("nightherd inbox approve @last && nightherd worker --until-idle")

    assert [path.name for path in (herd.root / "reports").iterdir()] == ["report.md"]
    assert herd.data("workspace list --all") == []


def test_line_that_is_a_comment_where_no_worktree_can_be_made_works_later(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd("nightly")
    herd.shell(" && ".join(REPOSITORY_WITH_A_COMMIT))
    herd.shell("sed -i 's/#working_directory/working_directory/' nightherd.yaml")

    herd.shell("nightherd config check && nightherd run caretaker", codes=(8,))

    (workspace,) = herd.data("workspace list")
    assert workspace["mode"] == "worktree"
    assert not (herd.root / "reports").exists()


def test_pr_review_works_from_its_readme_to_one_push(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")

    herd.follow_readme()

    assert herd.pushed() == ["Subtract the discount", "Add discounts"]
    (job,) = herd.data("jobs")
    assert job["status"] == "completed"
    assert herd.data(f"jobs show {job['id']}")["denials"] == []
    assert herd.shell("git -C checkout status --porcelain --branch") == "## main\n"
    assert herd.data("workspace list") == []


def test_repository_is_cloned_when_there_is_no_checkout(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh && rm -rf checkout")

    herd.shell("nightherd config check && nightherd run reviewer", codes=(8,))
    herd.shell("nightherd inbox approve @last && nightherd worker --until-idle")

    assert herd.pushed() == ["Subtract the discount", "Add discounts"]


def test_reviewer_that_is_told_no_pushes_nothing_and_says_so(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh; nightherd run reviewer", codes=(8,))

    herd.shell(
        "nightherd inbox reject @last -m 'add a test first' && nightherd worker --until-idle"
    )

    assert herd.pushed() == []
    shown = herd.data("jobs show @last")
    (denied,) = shown["denials"]
    assert (shown["status"], denied["tool_name"]) == ("completed", "mcp__publish__push")
    assert "add a test first" in denied["reason"]


def test_only_the_publishing_server_has_the_credential(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh")
    token = (herd.root / "push-token").read_text()
    fleet = yaml.safe_load((herd.root / "nightherd.yaml").read_text())
    commands = [f"env > {herd.root}/environment", "git push origin HEAD:other"]
    fleet["agents"][0] |= {
        "allowed_tools": ["Bash"],
        "script": [{"tool": "Bash", "input": {"command": one}} for one in commands],
    }
    (herd.root / "nightherd.yaml").write_text(yaml.safe_dump(fleet))

    herd.shell("nightherd run reviewer", codes=(8,))
    herd.shell("nightherd inbox approve @last && nightherd worker --until-idle")

    assert token not in (herd.root / "environment").read_text()
    assert "a token is needed to push" in herd.shell("nightherd jobs tail @last -n all")
    assert herd.shell("git -C origin.git branch --list").split() == ["main"]
    journals = [path.read_text() for path in (herd.root / ".nightherd/jobs").glob("*.jsonl")]
    assert all(token not in text for text in journals)


def test_publishing_server_runs_nothing_of_the_repository_and_checks_the_commit(
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

    said = [
        call_push(herd, {"branch": "main"}),
        call_push(herd, {"branch": "fix", "commit": "0" * 40}),
        call_push(herd, {"branch": "--force"}),
        call_push(herd, {"branch": "fix", "commit": at}),
    ]

    assert [one["isError"] for one in said] == [True, True, True, False]
    assert said[-1]["content"][0]["text"] == f"pushed {at} to fix"
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


def call_push(herd: Herd, arguments: dict[str, str]) -> Any:
    """Call the tool of the template's server, as a runtime does."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    request["params"] = {"name": "push", "arguments": arguments}
    settings = {"PUSH_URL": "origin.git", "PUSH_TOKEN_FILE": "push-token"}
    done = subprocess.run(
        ["python3", "../publish.py"],
        cwd=herd.root / "checkout",
        env={**herd.reader.environment, **settings},
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["result"]


def test_a_pull_request_starts_the_reviewer_once(make_herd: MakeHerd) -> None:
    herd = make_herd("pr-review")
    herd.shell("sh sample.sh")
    herd.reader.environment["HOOK_SECRET"] = SECRET
    herd.shell("nightherd start --detach")

    answers = [deliver(herd, "delivery-1"), deliver(herd, "delivery-1")]
    herd.wait_for("suspended")

    assert answers == [202, 202]
    (job,) = herd.data("jobs")
    assert (job["trigger_type"], job["suspend_reason"]) == ("webhook", "approval")
    prompt = herd.data(f"jobs show {job['id']}")["prompt"]
    assert prompt.startswith("Review pull request 7, branch feature:\nAdd discounts")
    herd.shell("nightherd inbox approve @last")
    herd.wait_for("completed")
    assert herd.pushed() == ["Subtract the discount", "Add discounts"]


def deliver(herd: Herd, delivery: str) -> int:
    """Send what GitHub sends for a new pull request to the daemon's socket; the status of the answer."""
    pull = {"number": 7, "title": "Add discounts", "head": {"ref": "feature"}}
    body = json.dumps({"action": "opened", "pull_request": pull}).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    client = http.client.HTTPConnection("localhost")
    client.sock = connect(herd.root / ".nightherd/daemon.sock")
    headers = {
        "content-type": "application/json",
        "x-github-event": "pull_request",
        "x-github-delivery": delivery,
        "x-hub-signature-256": f"sha256={signature}",
    }
    client.request("POST", "/v1/hooks/pull-request", body, headers)
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
        Say(text="May I push?", calls=(Call("mcp__publish__push", {"branch": BRANCH}),)),
        Say(text="Reviewed and pushed."),
    )
    with MessagesApi(*says) as api:
        theirs = stage.environment(api)
        path = f"{stage.programs}{os.pathsep}{herd.reader.environment['PATH']}"
        herd.reader.environment |= {**theirs, "PATH": path}

        herd.shell("nightherd run reviewer", codes=(8,))
        assert herd.pushed() == []
        herd.shell("nightherd inbox approve @last && nightherd worker --until-idle")

    assert herd.pushed() == ["Reviewed", "Add discounts"]
    (job,) = herd.data("jobs")
    assert (job["status"], job["summary"]) == ("completed", "Reviewed and pushed.")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["runtime: cli", "runtime: scripted"])
def test_template_is_valid_as_it_is_and_with_claude_and_with_notifications(
    name: str, change: str, cli: Cli, nowhere: Path
) -> None:
    assert cli("init", "--template", name).code == 0
    file = nowhere / "nightherd.yaml"
    text = file.read_text().replace("runtime: scripted", change)
    assert "\n#notify:\n" in text
    file.write_text(text.replace("\n#notify:", "\nnotify:").replace("\n#  ", "\n  "))

    checked = cli("config", "check", "--json")

    assert checked.code == 0
    assert "NOTIFY_URL" in file.read_text()
    assert yaml.safe_load(file.read_text())["notify"][0]["name"] == "me"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("commands", range(len(REPOSITORY_WITH_A_COMMIT) + 1))
def test_template_is_valid_with_and_without_a_repository_and_a_commit(
    name: str, commands: int, cli: Cli, nowhere: Path, components: Components
) -> None:
    components.program("git")
    for command in REPOSITORY_WITH_A_COMMIT[:commands]:
        subprocess.run(command.split(), cwd=nowhere, check=True)

    made = cli("init", "--template", name)

    assert made.code == 0
    is_complete = commands == len(REPOSITORY_WITH_A_COMMIT) or name == "pr-review"
    assert ("no git repository with a commit" in made.err) is not is_complete
    assert cli("config", "check").code == 0
    (agent,) = yaml.safe_load((nowhere / "nightherd.yaml").read_text())["agents"]
    assert ("working_directory" in agent) is is_complete


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_a_person_is_overwritten(name: str, cli: Cli, nowhere: Path) -> None:
    for file in template_texts(name):
        (nowhere / file).write_text("mine")

        refused = cli("init", "--template", name)

        assert (refused.code, refused.out) == (5, "")
        assert file in refused.err
        assert [path.name for path in nowhere.iterdir()] == [file]
        assert (nowhere / file).read_text() == "mine"
        (nowhere / file).unlink()


def test_another_fleet_file_is_in_the_way_too_and_force_does_not_help(
    cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yml").write_text("# mine\n")

    assert cli("init", "--template", "nightly").code == 5
    assert cli("init", "--template", "nightly", "--force").code == 2
    assert [path.name for path in nowhere.iterdir()] == ["nightherd.yml"]


def test_unknown_template_is_named_with_those_there_are(cli: Cli, nowhere: Path) -> None:
    refused = cli("init", "--template", "weekly")

    assert refused.code == 2
    assert "'weekly' is not one of 'nightly', 'pr-review'" in refused.err
    assert list(nowhere.iterdir()) == []


def test_templates_are_listed_for_people_and_programs(cli: Cli, nowhere: Path) -> None:
    listed = cli("init", "--list-templates")
    described = cli("init", "--list-templates", "--json")

    assert [line.split()[0] for line in listed.out.splitlines()] == NAMES
    assert described.document["schema"] == "nightherd/v1/templates"
    assert [one["name"] for one in described.data] == NAMES
    assert list(nowhere.iterdir()) == []


def test_init_for_programs_names_the_template_and_its_files(cli: Cli, nowhere: Path) -> None:
    made = cli("init", "fleet", "--template", "pr-review", "--json")

    assert made.data["template"] == "pr-review"
    names = {Path(file).name for file in made.data["files"]}
    assert names >= {*template_texts("pr-review")}


def test_templates_are_part_of_the_package() -> None:
    source = REPOSITORY / "src/nightherd/cli/fleet/templates"
    assert sorted(path.name for path in source.iterdir()) == NAMES
    assert all("README.md" in template_texts(name) for name in NAMES)
