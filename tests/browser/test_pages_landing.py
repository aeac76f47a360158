"""What a job changed is pushed, and a limit of several is raised, on the page of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.visitor import Visitors
from components import Components
from workspace_fleet import git, make_project

CODER = """\
  - name: coder
    runtime: scripted
    allowed_tools: [Write]
    default_prompt: go
    working_directory: {root: project, mode: worktree}
    script: [{tool: Write, input: {file_path: plan.txt, content: "1. rest"}}, {say: Done.}]
"""
CAPPED = """\
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1, spend: 0.5, tokens: 1000, depth: 3}
    script: [{repeat: 4, steps: [{say: word}, {usage: {output_tokens: 1, cost_usd: 0.001}}]}]
"""


async def test_what_a_job_changed_is_pushed_to_the_remote_that_is_named(
    new_fleet: Callable[..., FleetWorld], visit: Visitors, components: Components
) -> None:
    components.program("git")
    fleet = new_fleet(agents=CODER)
    project, bare = fleet.folder / "project", fleet.folder / "bare.git"
    project.mkdir()
    make_project(project)
    git(project, "init", "-q", "--bare", str(bare))
    git(project, "remote", "add", "backup", f"file://{bare}")
    await fleet.start()
    job = await fleet.run("coder")
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await page.get_by_role("button", name="Push …").click()
    dialog = page.get_by_role("dialog", name="Push the changes")
    await dialog.get_by_role("textbox", name="Message of the commit").fill("Plan the rest")
    await dialog.get_by_role("textbox", name="Remote").fill("backup")
    await dialog.get_by_role("button", name="Show what would change").click()
    await expect(dialog.get_by_role("status")).to_contain_text("plan.txt")
    assert git(bare, "branch", "--list") == ""

    await dialog.get_by_role("button", name="Push", exact=True).click()

    await expect(dialog).to_have_count(0)
    branch = git(bare, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    assert git(bare, "log", "-1", "--format=%s", branch) == "Plan the rest"
    assert git(bare, "show", f"{branch}:plan.txt") == "1. rest"


async def test_one_limit_is_raised_and_the_others_stay(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=CAPPED)
    await fleet.start()
    job = (await fleet.waiting_job("capped"))["job_id"]
    before = maxima((await fleet.get(f"/v1/jobs/{job}"))["limits"])
    alice = await visit(fleet, f"/jobs/{job}")
    page = alice.page
    await page.get_by_role("button", name="Raise limits …").click()
    dialog = page.get_by_role("dialog", name="Raise limits")
    await expect(dialog.get_by_role("textbox", name="spend")).to_have_value("")

    await dialog.get_by_role("textbox", name="turns").fill("9")
    await dialog.get_by_role("button", name="Raise and continue").click()

    await fleet.until_status(job, "completed")
    assert before == {"turns": 1, "spend": 0.5, "tokens": 1000, "depth": 3}
    assert maxima((await fleet.get(f"/v1/jobs/{job}"))["limits"]) == {**before, "turns": 9}


def maxima(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The limits of the job itself."""
    return {str(row["limit"]): row["maximum"] for row in rows if row["scope"] == "job"}
