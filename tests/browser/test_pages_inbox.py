"""The page Inbox: every answer, by mouse, by keyboard and in a phone-sized window; two people; what changes meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Route, expect

from browser.fleet_world import FleetWorld, shared
from browser.looks import PHONE_DARK, Look, both_looks
from browser.visitor import Visitors
from browser.workflow_world import WORKFLOW_FLEET, paused_run, until_run
from nightherd.model.access.role import Role

ASKERS = """\
  - name: pusher
    runtime: scripted
    default_prompt: Release it
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)"}]
    script:
      - say: All tests pass.
      - tool: Bash
        input: {command: echo pushed >> pushed}
      - say: Pushed.
  - name: editor
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: Edit}]
    script:
      - tool: Edit
        input: {file_path: price.txt, old_string: "1", new_string: "2"}
  - name: hider
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)"}]
    script:
      - tool: Bash
        input: {command: "echo one \\e[8m; touch hidden \\e[0m\\u202e"}
  - name: chooser
    runtime: scripted
    default_prompt: go
    questions: true
    script: [{tool: ask_person, input: {question: "Which server?", options: [staging, production]}}, {say: Thank you.}]
  - name: twice
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)", quorum: 2}]
    script: [{tool: Bash, input: {command: echo both >> both}}]
  - name: guarded
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(echo:*)", approvers: [bob]}]
    script: [{tool: Bash, input: {command: echo guarded}}]
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script: [{repeat: 2, steps: [{say: word}, {usage: {output_tokens: 1, cost_usd: 0.001}}]}]
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{fail: {code: bad_luck, message: No luck today.}}]
"""

WRITER = """\
  - name: writer
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script: [{say: Hello.}]
"""
"""It can write the fleet file, so a person has to accept what that gives it."""
FLEET_AGENTS = ASKERS


async def decided(fleet: FleetWorld, item_id: str) -> str:
    """What became of the item, once something did."""

    async def is_so() -> bool:
        return bool((await fleet.get(f"/v1/inbox/{item_id}"))["status"] != "pending")

    await fleet.until(is_so)
    return str((await fleet.get(f"/v1/inbox/{item_id}"))["status"])


@both_looks
async def test_the_list_and_an_item_side_by_side_or_one_after_the_other(
    fleet: FleetWorld, visit: Visitors, look: Look
) -> None:
    question, approval = await fleet.waiting_job("chooser"), await fleet.waiting_job("pusher")
    alice = await visit(fleet, "/inbox", look=look)
    page = alice.page
    rows = page.get_by_role("list", name="Items").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    if look.is_phone:
        await expect(page.get_by_role("article")).to_be_hidden()
    assert await alice.axe() == []
    await alice.shoot("inbox")

    await rows.first.get_by_role("link").click()

    shown = page.get_by_role("article")
    await expect(shown).to_contain_text("echo pushed >> pushed")
    await expect(shown).to_contain_text("All tests pass.")  # what the agent said
    await expect(shown).to_contain_text("Release it")  # its task
    await expect(shown).to_contain_text("exactly this call runs once")  # what happens on yes
    await expect(shown).to_contain_text("it waits")  # and without an answer
    assert page.url.endswith(f"/inbox/{approval['id']}")
    assert await alice.axe() == []
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await alice.shoot("inbox-item")
    if look.is_phone:
        await page.get_by_role("link", name="All items").click()
        await expect(rows.last).to_contain_text(question["title"])


async def test_a_call_is_approved_in_a_phone_sized_window(
    fleet: FleetWorld, visit: Visitors
) -> None:
    waiting = await fleet.waiting_job("pusher")
    alice = await visit(fleet, "/inbox", look=PHONE_DARK)
    page = alice.page
    await page.get_by_role("list", name="Items").get_by_role("link").first.tap()
    button = page.get_by_role("button", name="Approve")
    box = await button.bounding_box()
    assert box is not None
    assert box["height"] >= 40

    await button.tap()

    await fleet.until_status(waiting["job_id"], "completed")
    assert (fleet.folder / "pushed").read_text() == "pushed\n"
    await expect(page.get_by_role("region", name="Decision")).to_contain_text("(dashboard)")
    shown = await fleet.get(f"/v1/inbox/{waiting['id']}")
    assert (shown["status"], shown["decided_via"]) == ("approved", "dashboard")


async def test_everything_is_answered_by_keyboard_alone(fleet: FleetWorld, visit: Visitors) -> None:
    asked = {
        name: await fleet.waiting_job(name) for name in ("capped", "chooser", "editor", "pusher")
    }
    failed = await fleet.get(f"/v1/inbox/{await fleet.run('broken')}")
    alice = await visit(fleet, "/inbox")
    page = alice.page
    shown, keys = page.get_by_role("article"), page.keyboard

    async def move(key: str, text: str) -> None:
        await keys.press(key)
        await expect(shown).to_contain_text(text)

    await expect(shown).to_contain_text("No luck today.")
    await keys.press("x")
    assert await decided(fleet, failed["id"]) == "answered"

    await move("j", "echo pushed")
    await keys.press("r")
    await keys.type("not today")
    await keys.press("Escape")
    await keys.press("x")
    assert await decided(fleet, asked["pusher"]["id"]) == "rejected"
    rejected = await fleet.get(f"/v1/inbox/{asked['pusher']['id']}")
    assert rejected["reply"] == "not today"

    await move("j", "price.txt")
    await move("j", "Which server?")
    await keys.press("2")
    assert await decided(fleet, asked["chooser"]["id"]) == "answered"
    answered = await fleet.get(f"/v1/inbox/{asked['chooser']['id']}")
    assert answered["reply"] == "production"

    await move("j", "limit of 1")
    await keys.press("a")  # names no maximum yet: the field is where one is typed
    await expect(page.get_by_label(re.compile(r"^turns \(1 of 1\)"))).to_be_focused()
    await keys.type("5")
    await keys.press("Enter")
    assert await decided(fleet, asked["capped"]["id"]) == "answered"
    await fleet.until_status(asked["capped"]["job_id"], "completed")
    # The field takes keys for as long as it is there.
    await expect(page.get_by_role("region", name="Decision")).to_be_visible()

    await move("k", "price.txt")
    await keys.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Approve")
    await keys.press("Escape")
    await keys.press("a")
    assert await decided(fleet, asked["editor"]["id"]) == "approved"


@shared
async def test_an_edit_is_shown_as_the_difference_it_makes(
    fleet: FleetWorld, visit: Visitors
) -> None:
    (fleet.folder / "price.txt").write_text("net\n1\ngross\n")
    waiting = await fleet.waiting_job("editor")
    alice = await visit(fleet, f"/inbox/{waiting['id']}")

    shown = alice.page.get_by_role("article")

    await expect(shown).to_contain_text("-1")
    await expect(shown).to_contain_text("+2")
    await expect(shown).to_contain_text("gross")
    assert await alice.axe() == []


@shared
async def test_what_a_command_hides_is_visible(fleet: FleetWorld, visit: Visitors) -> None:
    waiting = await fleet.waiting_job("hider")
    alice = await visit(fleet, f"/inbox/{waiting['id']}")

    await expect(alice.page.get_by_role("article")).to_contain_text(
        "echo one ␛[8m; touch hidden ␛[0m⟨U+202E⟩"
    )


@shared
async def test_a_call_is_approved_with_other_arguments(fleet: FleetWorld, visit: Visitors) -> None:
    waiting = await fleet.waiting_job("pusher")
    alice = await visit(fleet, f"/inbox/{waiting['id']}")
    page = alice.page
    await expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    (fleet.folder / "pushed").unlink(missing_ok=True)

    await page.keyboard.press("e")
    await page.get_by_label("command").fill("echo other >> pushed")
    assert await alice.axe() == []
    await page.get_by_role("button", name="Approve with changes").click()

    await fleet.until_status(waiting["job_id"], "completed")
    assert (fleet.folder / "pushed").read_text() == "other\n"
    await page.get_by_text("with changes").click()
    await expect(page.get_by_role("region", name="Decision")).to_contain_text("echo other")


@shared
async def test_a_question_is_answered_in_ones_own_words(fleet: FleetWorld, visit: Visitors) -> None:
    waiting = await fleet.waiting_job("chooser")
    alice = await visit(fleet, f"/inbox/{waiting['id']}")
    page = alice.page
    await expect(page.get_by_role("button", name="Reply")).to_be_disabled()

    await page.get_by_label("Your answer").fill("the **third** one")
    await page.keyboard.press("Control+Enter")

    await fleet.until_status(waiting["job_id"], "completed")
    assert (await fleet.get(f"/v1/inbox/{waiting['id']}"))["reply"] == "the **third** one"


@shared
async def test_two_people_answer_one_item_and_the_second_is_told_who_was_first(
    fleet: FleetWorld, visit: Visitors
) -> None:
    waiting = await fleet.waiting_job("pusher")
    path = f"/inbox/{waiting['id']}"
    alice = await visit(fleet, path, role=Role.OPERATOR, name="alice")
    bob = await visit(fleet, path, role=Role.OPERATOR, name="bob")
    bob.complaints.allow("status of 409", r"ERR_FAILED")
    await expect(bob.page.get_by_role("button", name="Reject")).to_be_enabled()
    # Bob's page hears nothing of what Alice does until his own answer is sent.
    sent: list[str] = []

    async def hear(route: Route) -> None:
        await (route.continue_() if sent else route.abort())

    async def send(route: Route) -> None:
        sent.append(route.request.url)
        await route.continue_()

    await bob.page.route("**/v1/stream*", lambda route: route.abort())
    await bob.page.route(f"**/v1{path}", hear)
    await bob.page.route(f"**/v1{path}/answers", send)

    await alice.page.get_by_role("button", name="Approve").click()
    await expect(alice.page.get_by_role("region", name="Decision")).to_contain_text("by alice")
    await bob.page.get_by_role("button", name="Reject").click()

    told = bob.page.get_by_role("alert").filter(has_text="did not count")
    await expect(told).to_contain_text("was approved by alice (dashboard)")
    await expect(bob.page.get_by_role("region", name="Decision")).to_contain_text("by alice")
    await expect(bob.page.get_by_role("button", name="Reject")).to_have_count(0)
    await fleet.until_status(waiting["job_id"], "completed")


async def test_an_item_that_somebody_else_decides_changes_in_place(
    fleet: FleetWorld, visit: Visitors
) -> None:
    waiting = await fleet.waiting_job("pusher")
    alice = await visit(fleet, "/inbox")
    await expect(alice.page.get_by_role("button", name="Approve")).to_be_enabled()

    await fleet.post(f"/v1/inbox/{waiting['id']}/answers", verdict="reject", text="no")

    decision = alice.page.get_by_role("region", name="Decision")
    await expect(decision).to_contain_text("rejected")
    await expect(decision).to_contain_text("(api)")
    await expect(alice.page.get_by_role("list", name="Items").get_by_role("listitem")).to_have_count(0)  # fmt: skip


async def test_an_item_that_is_read_stays_while_others_come(
    fleet: FleetWorld, visit: Visitors
) -> None:
    first = await fleet.waiting_job("pusher")
    alice = await visit(fleet, "/inbox")
    shown = alice.page.get_by_role("article")
    await expect(shown).to_contain_text("echo pushed")

    second = await fleet.waiting_job("chooser")
    await expect(alice.page.get_by_role("list", name="Items").get_by_role("listitem")).to_have_count(2)  # fmt: skip
    await expect(shown).to_contain_text("echo pushed")
    await alice.page.keyboard.press("a")

    assert await decided(fleet, first["id"]) == "approved"
    assert (await fleet.get(f"/v1/inbox/{second['id']}"))["status"] == "pending"


@shared
async def test_two_people_have_to_approve_where_a_quorum_says_so(
    fleet: FleetWorld, visit: Visitors
) -> None:
    waiting = await fleet.waiting_job("twice")
    path = f"/inbox/{waiting['id']}"
    alice = await visit(fleet, path, role=Role.OPERATOR, name="alice")
    bob = await visit(fleet, path, role=Role.OPERATOR, name="bob")
    shown = bob.page.get_by_role("article")
    await expect(shown).to_contain_text("0 of 2")
    await expect(bob.page.get_by_role("button", name="Edit")).to_have_count(0)

    await alice.page.get_by_role("button", name="Approve").click()
    await expect(shown).to_contain_text("1 of 2 (alice)")
    assert not (fleet.folder / "both").exists()
    await bob.page.get_by_role("button", name="Approve").click()

    await fleet.until_status(waiting["job_id"], "completed")
    assert (fleet.folder / "both").read_text() == "both\n"


@shared
async def test_a_comment_decides_nothing(fleet: FleetWorld, visit: Visitors) -> None:
    waiting = await fleet.waiting_job("pusher")
    alice = await visit(fleet, f"/inbox/{waiting['id']}", role=Role.OPERATOR)
    page = alice.page

    await page.get_by_label("Reason or comment").fill("I look at it at nine")
    await page.get_by_role("button", name="Comment").click()

    await expect(page.get_by_role("region", name="Answers")).to_contain_text(
        "alice commented (dashboard)"
    )
    await expect(page.get_by_role("region", name="Answers")).to_contain_text("I look at it at nine")
    assert (await fleet.get(f"/v1/inbox/{waiting['id']}"))["status"] == "pending"


async def test_a_failed_job_is_tried_again(fleet: FleetWorld, visit: Visitors) -> None:
    job = await fleet.run("broken")
    alice = await visit(fleet, "/inbox?kind=failure")

    await alice.page.get_by_role("button", name="Retry").click()

    async def is_again() -> bool:
        return len(await fleet.get("/v1/jobs?q=agent:broken")) == 2

    await fleet.until(is_again)
    await expect(alice.page.get_by_role("region", name="Decision")).to_contain_text("answered")
    assert (await fleet.get(f"/v1/jobs/{job}"))["status"] == "failed"


async def test_decided_items_are_found_by_kind_and_agent(
    fleet: FleetWorld, visit: Visitors
) -> None:
    pushed, chosen = await fleet.waiting_job("pusher"), await fleet.waiting_job("chooser")
    await fleet.post(f"/v1/inbox/{pushed['id']}/answers", verdict="approve")
    await fleet.post(f"/v1/inbox/{chosen['id']}/answers", verdict="reply", text="staging")
    alice = await visit(fleet, "/inbox")
    page = alice.page
    await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()

    await page.get_by_role("link", name="Decided").click()
    rows = page.get_by_role("list", name="Items").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Kind").select_option("question")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("Which server?")
    await page.get_by_label("Agent").select_option("pusher")
    await expect(page.get_by_text("No item fits these filters.")).to_be_visible()
    await page.get_by_label("Kind").select_option("")
    await expect(rows.first).to_contain_text("echo pushed")
    assert page.url.endswith("/inbox?status=decided&agent=pusher")
    await page.reload()
    await expect(rows).to_have_count(1)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
@shared
async def test_who_may_not_answer_is_told_why(
    fleet: FleetWorld, visit: Visitors, role: Role
) -> None:
    waiting = await fleet.waiting_job("guarded")
    alice = await visit(fleet, f"/inbox/{waiting['id']}", role=role, name=role.value)

    await expect(alice.page.get_by_role("button", name="Approve")).to_be_disabled()
    reason = "needs the role operator" if role is Role.VIEWER else "Only bob may answer"
    await expect(alice.page.get_by_role("article")).to_contain_text(reason)
    await alice.page.keyboard.press("a")
    assert (await fleet.get(f"/v1/inbox/{waiting['id']}"))["status"] == "pending"


async def test_the_artifact_of_a_gate_is_changed_before_it_is_approved(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=WORKFLOW_FLEET)
    await fleet.start()
    run = await paused_run(fleet, "news", topic="cows")
    alice = await visit(fleet, "/inbox")
    page = alice.page
    await expect(page.get_by_role("article")).to_contain_text("A draft about cows")
    assert await alice.axe() == []

    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("output of the phase").fill("A better draft.")
    await page.get_by_role("button", name="Approve with changes").click()

    await until_run(fleet, run, "succeeded")
    output = await fleet.get(f"/v1/runs/{run}/outputs/publish")
    assert output["output"] == "A better draft."


async def test_a_changed_fleet_file_is_accepted_by_an_admin(
    new_fleet: Callable[..., FleetWorld], visit: Visitors
) -> None:
    fleet = new_fleet(agents=WRITER)
    file = fleet.folder / "nightherd.yaml"
    file.write_text(file.read_text().replace("reload: auto\n", ""))
    await fleet.start()
    file.write_text(file.read_text().replace("allowed_tools: [Bash]", "allowed_tools: [Bash, WebFetch]"))  # fmt: skip

    async def is_asked() -> bool:
        return bool(await fleet.get("/v1/inbox?kind=reload"))

    await fleet.until(is_asked)
    operator = await visit(fleet, "/inbox", role=Role.OPERATOR, name="olga")
    await expect(operator.page.get_by_role("article")).to_contain_text("WebFetch")
    await expect(operator.page.get_by_role("button", name="Accept")).to_be_disabled()
    assert await operator.axe() == []

    alice = await visit(fleet, "/inbox")
    await alice.page.get_by_role("button", name="Accept").click()

    await expect(alice.page.get_by_role("region", name="Decision")).to_contain_text("answered")
    await expect(operator.page.get_by_role("region", name="Decision")).to_contain_text("answered")
