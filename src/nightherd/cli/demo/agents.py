"""The demo's fleet: scripted agents that fix, review, inspect and advertise, and a workflow that publishes."""

from __future__ import annotations

from nightherd.cli.demo.stage import BANNER, CHECK_COUNT, CHECKS, PROGRAM, PUBLISHED_WITHOUT, REMOTE

FIXER = """\
  - name: fixer
    description: Runs the tests, finds the bug, fixes it, runs the tests again.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: The tests fail. Fix the program, not the tests.
    script:
      - sleep: 200ms
      - think: First I want to see it fail.
      - say: I will run the tests.
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - usage: {input_tokens: 1210, output_tokens: 64, cost_usd: 0.0046}
      - sleep: 200ms
      - say: A discount of 20 % raises the price. I will look at the program.
      - tool: Read
        input: {file_path: pricing.py}
      - usage: {input_tokens: 1480, output_tokens: 71, cost_usd: 0.0055}
      - sleep: 200ms
      - say: The discount is added where it should be subtracted.
      - tool: Edit
        input: {file_path: pricing.py, old_string: (100 + discount), new_string: (100 - discount)}
      - usage: {input_tokens: 1630, output_tokens: 98, cost_usd: 0.0064}
      - sleep: 200ms
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - usage: {input_tokens: 1770, output_tokens: 40, cost_usd: 0.0059}
      - say: Fixed. total() now subtracts the discount, and all tests pass.
      - usage: {input_tokens: 1850, output_tokens: 33, cost_usd: 0.0060}
"""

REVIEWER = """\
  - name: reviewer
    description: Reviews the change, and approves it once it is tested.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: shop
    script:
      - say: I will read the change.
      - tool: Bash
        input: {command: LOOK}
      - usage: {input_tokens: 940, output_tokens: 52, cost_usd: 0.0037}
      - say: '{"approved": false, "comments": "Nothing tests a discount of 100 %."}'
      - usage: {input_tokens: 980, output_tokens: 20, cost_usd: 0.0033}
      - end: true
      - tool: Bash
        input: {command: python3 -B -m unittest -q}
      - say: '{"approved": true, "comments": ""}'
      - usage: {input_tokens: 1120, output_tokens: 20, cost_usd: 0.0037}
"""

EDITOR = """\
  - name: editor
    description: Does what the review asks for.
    runtime: scripted
    working_directory: shop
    script:
      - tool: Edit
        input:
          file_path: test_pricing.py
          old_string: "discount=20), 80)\\n"
          new_string: "discount=20), 80)\\n        self.assertEqual(total([30, 70], discount=100), 0)\\n"
      - usage: {input_tokens: 1030, output_tokens: 64, cost_usd: 0.0041}
      - say: A discount of 100 % is tested now.
"""

INSPECTOR = f"""\
  - name: inspector
    description: Runs the tests five times and records each run, within its budget.
    runtime: RUNTIME
    limits: {{spend: 0.50}}
    allowed_tools: [Bash]
    working_directory: shop
    default_prompt: Make sure that it stays fixed.
    script:
      - repeat: {CHECK_COUNT}
        steps:
          - tool: Bash
            input: {{command: "echo check ${{turn}} >> {CHECKS}; sleep 0.2; python3 -B -m unittest -q"}}
          - usage: {{input_tokens: 310, output_tokens: 12, cost_usd: 0.20}}
      - say: Five checks are recorded.
"""

COPYWRITER = f"""\
  - name: copywriter
    description: Writes the shop's banner, each time in a git worktree of its own.
    runtime: scripted
    allowed_tools: [Bash]
    working_directory: {{root: shop, mode: worktree}}
    script:
      - say: I will make a file for the banner.
      - tool: Write
        input:
          file_path: {BANNER}
          content: |
            BANNER = ""
      - usage: {{input_tokens: 640, output_tokens: 48, cost_usd: 0.0026}}
      - say: It has to fit into the window, so I will add a test.
      - tool: Write
        input:
          file_path: test_banner.py
          content: |
            import unittest

            from banner import BANNER


            class Banner(unittest.TestCase):
                def test_it_fits_into_the_window(self) -> None:
                    self.assertIn(len(BANNER), range(1, 30))
      - usage: {{input_tokens: 730, output_tokens: 92, cost_usd: 0.0036}}
      - say: "Now the text: ${{prompt}}."
      - tool: Edit
        input:
          file_path: {BANNER}
          old_string: BANNER = ""
          new_string: BANNER = "${{prompt}}"
      - usage: {{input_tokens: 860, output_tokens: 50, cost_usd: 0.0033}}
      - tool: Bash
        input: {{command: python3 -B -m unittest -q}}
      - usage: {{input_tokens: 950, output_tokens: 31, cost_usd: 0.0033}}
      - say: "The banner says: ${{prompt}}."
"""
"""It has no prompt of its own. The first two turns are the same for every text."""

SHIP = """\
workflows:
  ship:
    description: Review, fix, approval, push.
    working_directory: shop
    phases:
      - name: review
        review:
          agent: reviewer
          prompt: Review what changed.
          fix: {agent: editor}
      - name: approve
        gate: {summary: The fix is reviewed and tested. Push it?}
      - name: push
        bash: PUSH
"""

PUBLISH_WITH_GIT = (
    f"git commit -q -a --allow-empty -m 'Subtract the discount' && git push -q ../{REMOTE} HEAD:fix"
)
"""Every run of it would add a commit to what arrives."""
PUBLISH_WITHOUT = f"echo Subtract the discount >> ../{PUBLISHED_WITHOUT}"

LOOK_WITH_GIT = "git diff --stat"
LOOK_WITHOUT = f"cat {PROGRAM}"


def fleet_text(
    *, has_git: bool, has_native: bool, has_worktrees: bool, port: int | None = None
) -> str:
    """The fleet file. The agent with a limit is native where that is installed; its script is the same.

    With a `port` its daemon serves the dashboard there.
    """
    reviewer = REVIEWER.replace("LOOK", LOOK_WITH_GIT if has_git else LOOK_WITHOUT)
    inspector = INSPECTOR.replace("RUNTIME", "native" if has_native else "scripted")
    ship = SHIP.replace("PUSH", PUBLISH_WITH_GIT if has_git else PUBLISH_WITHOUT)
    agents = [FIXER, reviewer, EDITOR, inspector, *([COPYWRITER] if has_worktrees else [])]
    web = [] if port is None else [f"web: {{enabled: true, port: {port}}}\n"]
    return "\n".join(["fleet:\n  name: demo\n", *web, ship, "agents:", *agents])
