"""Mistakes in workflow files: each found once, at its line and column, in plain words."""

from __future__ import annotations

import pytest

from config.workflows.workflow_folder import WorkflowFolder

MANY_MISTAKES = """\
descripton: typo
inputs:
  n: numbr
concurrency: {when_busy: wait}
triggers:
  schedules:
    s: {cron: "61 * * * *"}
    t: {}
phases:
  - name: a
    agent: coder
    promt: go
  - name: b
    agent: coder
    bash: ls
  - label: c
    bash: ls
  - name: d
  - name: e
    bash: ls
    trigger_rule: all_succes
    retries: -1
    timeout: 5
  - name: f
    gate: {sumary: x}
  - name: g
    wait: {for: 1h, event: x}
  - name: h
    bash: ls
    loop: {until: "true"}
"""


def test_many_mistakes_are_as_many_located_problems(flows: WorkflowFolder) -> None:
    flows.workflow(MANY_MISTAKES)

    assert [error.removeprefix("workflows/w.yaml:") for error in flows.errors()] == [
        "1:1 unknown key 'descripton'",
        "3:6 'numbr' is not one of text, number, boolean, list, object",
        "4:26 'wait' is not one of queue, drop, replace",
        "7:15 '61 * * * *' is not a cron expression: bad minute",
        "8:8 a schedule has either 'interval' or 'cron'",
        "12:5 unknown key 'promt'",
        "15:5 a phase does one thing; this one has agent, bash",
        "16:5 'name' is missing",
        "18:5 a phase needs one of agent, bash, python, workflow, gate, wait, phases, review",
        "21:19 'all_succes' is not one of all_success, one_success, none_failed_min_one_success, all_done, one_failed",
        "22:14 expected at least 0, got the number -1",
        "23:14 expected a duration such as 30m, got the number 5",
        "25:12 unknown key 'sumary'",
        "27:12 a wait has one of 'for', 'until' and 'event'",
        "30:12 'max_iterations' is missing",
    ]


def test_a_misspelt_key_is_suggested(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- name: a\n  agent: coder\n  prompt: x\n  depend_on: [b]\n")

    (problem,) = flows.problems()

    assert problem.hint == "did you mean 'depends_on'?"
    assert problem.path == "workflows.w.phases.0.depend_on"


@pytest.mark.parametrize(
    ("keys", "marked", "message"),
    [
        ('agent: codr, prompt: x', 'codr', "the fleet has no agent 'codr'"),
        ("agent: coder, prompt: '${nope}'", 'nope', "unknown name 'nope'"),
        ('agent: coder, prompt: "a \\"b\\" \\u00e9 ${nope}"', 'nope', "unknown name 'nope'"),
        ("agent: coder, prompt: 'it''s ${nope}'", 'nope', "unknown name 'nope'"),
        ("agent: coder, prompt: &anchor '${nope}'", 'nope', "unknown name 'nope'"),
        ("bash: ls, when: phases.zz.status == 'x'", 'zz', "phases has no field 'zz'"),
        ("bash: ls, when: 1 < 'x'", '1 <', "'<' cannot order a number and a text"),
        ('bash: ls, when: a bb', 'bb', 'the expression cannot be read here'),
        ("bash: 'echo ${inputs.x}'", '${', "a command cannot contain expressions"),
        ("bash: ls, env: {A: '${nope}'}", 'nope', "unknown name 'nope'"),
        ("bash: ls, stdin: '${nope}'", 'nope', "unknown name 'nope'"),
        ('bash: ls, for_each: inputs.x', 'x', "inputs has no field 'x'"),
        ('bash: ls, for_each: {items: inputs.x}', 'x', "inputs has no field 'x'"),
        ('bash: ls, loop: {max_iterations: 2}', '{max', "a loop needs 'until' or 'until_command' to end it"),
        ('bash: ls, loop: {max_iterations: 2, until: inputs.zz}', 'zz', "inputs has no field 'zz'"),
        ("bash: ls, loop: {max_iterations: 2, until_command: 'a ${item}'}", '${', "a command cannot contain expressions"),
        ("bash: ls, loop: {max_iterations: 2, until_command: {python: '${ run.id }'}}", '${', "a command cannot contain expressions"),
        ('bash: ls, loop: {max_iterations: 2, until_command: {}}', '{}', "an until_command has either 'bash' or 'python'"),
        ('bash: ls, depends_on: [bb]', 'bb', "there is no phase 'bb' beside this one"),
        ('bash: ls, depends_on: bb', 'bb', "there is no phase 'bb' beside this one"),
        ('bash: ls, depends_on: [a]', '[a', 'these phases wait for each other: a -> a'),
        ('bash: ls, trigger_rule: one_failed', 'one_f', 'the phase never runs: one_failed needs a phase to depend on'),
        ('bash: ls, when: false', 'false', 'the phase never runs: its condition is always false'),
        ('bash: ls, output: {type: objct}', 'objct', 'a type is one of string, number, integer, boolean, null, array, object'),
        ('bash: ls, output: {typ: object}', 'typ', "'typ' is not supported in the schema of an output"),
        ('bash: ls, output: json', 'json', "expected a mapping of keys to values, got the text 'json'"),
        ("bash: ls, messages: {on_start: '${nope}'}", 'nope', "unknown name 'nope'"),
        ('bash: ls, session: x', 'session', "unknown key 'session'"),
        ("gate: {summary: '${nope}'}", 'nope', "unknown name 'nope'"),
        ('gate: {summary: x}, retries: 1', '1', 'a gate is not tried again: only agents, commands and workflows take retries'),
        ('gate: {summary: x, quorum: 2, approvers: [a]}', '2', 'quorum 2 cannot be reached by 1 approvers'),
        ('gate: {summary: x, artifact: {phase: bb}}', 'bb', "phases has no field 'bb'"),
        ('gate: {summary: x, artifact: {}}', '{}', "an artifact has one of 'file', 'diff' and 'phase'"),
        ('gate: ok?', 'ok', "expected a mapping of keys to values, got the text 'ok?'"),
        ("wait: '${nope}'", 'nope', "unknown name 'nope'"),
        ("wait: {for: '${nope}'}", 'nope', "unknown name 'nope'"),
        ('wait: 1h, timeout: 1m', '1m', 'a wait for a time ends by itself and takes no timeout'),
        ("agent: coder, prompt: ' '", "prompt", 'the prompt is empty'),
        ('gate: {summary: x, kind: reply, quorum: 2}', '2', "one reply answers a gate: only 'kind: approve' takes a quorum"),
        ('wait: soon', 'soon', "'soon' is not a duration; write 200ms, 90s, 30m, 2h, 1d or 1w"),
        ('wait: {until: tomorrow}', 'tomorrow', "'tomorrow' is not an instant; write 2026-11-15T12:00:00Z"),
        ("wait: {until: '2026-11-15T12:00:00'}", "'2026", "'2026-11-15T12:00:00' has no time zone; add Z for UTC"),
        ("wait: {until: '9999-12-31T23:59:59-10:00'}", "'9999", "'9999-12-31T23:59:59-10:00' is not an instant that can be kept"),
        ("gate: {summary: x, artifact: {phase: 'a.output == phases.a'}}", "'a.", "there is no phase 'a.output == phases.a'"),
        ('gate: {summary: x, artifact: {diff: false}}', 'false', 'expected true, got false'),
        ("bash: ls, env: {'A=B': x}", "'A=B'", "'A=B' is not the name of a variable"),
        ('bash: ls, env: {A: "x\\0y"}', '"x', "the value of 'A' holds a NUL character"),
        ('bash: "a\\0b"', '"a', 'the command holds a NUL character'),
        ('python: ls, loop: {max_iterations: 2, until_command: "a\\0b"}', '"a', 'the command holds a NUL character'),
        ('workflow: nope', 'nope', "the fleet has no workflow 'nope'"),
        ('workflow: w', 'w', 'these workflows run each other: w -> w'),
        ('phases: []', '[]', 'there are no phases'),
        ("phases: [{name: b, bash: '${phases[0]}'}]", '${', "a command cannot contain expressions"),
        ("review: {agent: reviewer, prompt: '${nope}', fix: {agent: coder}}", 'nope', "unknown name 'nope'"),
        ("review: {agent: reviewer, prompt: x, fix: {agent: coder, prompt: '${nope}'}}", 'nope', "unknown name 'nope'"),
        ('review: {agent: reviewer, prompt: x, fix: {agent: codr}}', 'codr', "the fleet has no agent 'codr'"),
        ('review: {agent: reviewer, prompt: x, max_cycles: 1001, fix: {agent: coder}}', 'max', 'max_cycles is 1 to 1,000'),
        ('review: {agent: reviewer, prompt: x}', 'agent', "'fix' is missing"),
        ('review: {agent: reviewer, prompt: x, fix: {agent: coder}}, loop: {}', 'loop', "unknown key 'loop'"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_phase_has_its_column(
    flows: WorkflowFolder, keys: str, marked: str, message: str
) -> None:
    line = f"    {keys}}}"
    flows.workflow(f"phases:\n- {{name: a,\n{line}\n")
    value = line.index(":") + 1
    start = line.find(marked, value) if marked in line[value:] else line.index(marked)

    assert flows.errors() == [f"workflows/w.yaml:3:{start + 1} {message}"]


def test_an_agent_that_is_asked_nothing_is_shown_where_its_phase_begins(
    flows: WorkflowFolder,
) -> None:
    flows.workflow("phases:\n- name: a\n  agent: coder\n")

    assert flows.errors() == [
        "workflows/w.yaml:2:3 an agent needs 'prompt', 'prompt_file' or 'skill'"
    ]


def test_an_unknown_name_is_marked_in_the_value_also_when_the_key_has_it(
    flows: WorkflowFolder,
) -> None:
    flows.workflow("phases:\n- name: a\n  bash: ls\n  env: {nope: '${nope}'}\n")

    assert flows.errors() == ["workflows/w.yaml:4:18 unknown name 'nope'"]


def test_a_column_counts_characters_and_not_bytes(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- name: a\n  agent: coder\n  prompt: é😀 ${nope}\n")

    assert flows.errors() == ["workflows/w.yaml:4:16 unknown name 'nope'"]


def test_a_mistake_in_a_text_of_several_lines_has_its_line(flows: WorkflowFolder) -> None:
    flows.workflow(
        """\
        phases:
          - name: a
            agent: coder
            prompt: |  # a comment
              First line.

              Then ${nope.x} here, and ${run.id}.
                indented ${ inputs.zz }
          - name: b
            agent: coder
            when: >-
              phases.a.status == 'failed'
              and phases.a.outpt == 'x'
            prompt: plain text that
              goes on ${phases.b.output}
        """
    )

    assert flows.errors() == [
        "workflows/w.yaml:7:14 unknown name 'nope'",
        "workflows/w.yaml:8:28 inputs has no field 'zz'",
        "workflows/w.yaml:13:20 phases.a has no field 'outpt'",
        "workflows/w.yaml:15:24 phase 'b' has no result yet when this is evaluated",
    ]


def test_a_mistake_in_a_quoted_text_of_several_lines_has_its_line(flows: WorkflowFolder) -> None:
    flows.workflow(
        'phases:\n- name: a\n  agent: coder\n  prompt: "one\\n\\\n    two \\u00e9 \\"three\\"\n    ${nope}"\n'
    )

    assert flows.errors() == ["workflows/w.yaml:6:7 unknown name 'nope'"]


def test_a_mistake_in_a_prompt_file_is_shown_in_that_file(flows: WorkflowFolder) -> None:
    flows.write("workflows/plan.md", "Plan\r\nfor ${nope}\n")
    flows.workflow("phases: [{name: a, agent: coder, prompt_file: plan.md}]\n")

    assert flows.errors() == ["workflows/plan.md:2:7 unknown name 'nope'"]


def test_a_prompt_file_that_is_missing_is_shown_where_it_is_named(flows: WorkflowFolder) -> None:
    flows.workflow("phases: [{name: a, agent: coder, prompt_file: plan.md}]\n")

    assert flows.errors() == [
        "workflows/w.yaml:1:47 the file 'plan.md' cannot be read: there is no such file"
    ]


def test_inputs_and_triggers_are_located(flows: WorkflowFolder) -> None:
    flows.workflow(
        """\
        inputs:
          n: {type: number, default: x}
          T: text
        phases: [{name: a, bash: ls}]
        """
    )

    assert flows.errors() == [
        "workflows/w.yaml:2:30 expected a number, got a text",
        "workflows/w.yaml:3:6 'T' is not the name of an input: small letters, digits and '_'",
    ]


def test_inputs_of_triggers_are_located(flows: WorkflowFolder) -> None:
    flows.workflow(
        """\
        inputs: {n: {type: number, required: true}}
        concurrency: {max_runs: 1, key: "${phases.a.output}"}
        on:
          schedules:
            s: {interval: 1h, inputs: {n: x}}
          webhooks:
            gihub: {inputs: {n: "${inputs.n}", m: 1}}
          chat: true
        phases: [{name: a, bash: ls}]
        """
    )

    assert flows.errors() == [
        "workflows/w.yaml:2:36 unknown name 'phases'",
        "workflows/w.yaml:5:35 the input 'n' is a number; this is a text",
        "workflows/w.yaml:7:5 the fleet has no webhook 'gihub'",
        "workflows/w.yaml:7:28 unknown name 'inputs'",
        "workflows/w.yaml:7:40 the workflow has no input 'm'",
        "workflows/w.yaml:8:9 the input 'n' is required and is not given",
    ]


def test_on_and_triggers_are_not_given_together(flows: WorkflowFolder) -> None:
    flows.workflow("on: {api: true}\ntriggers: {api: false}\nphases: [{name: a, bash: ls}]\n")

    assert flows.errors() == [
        "workflows/w.yaml:2:1 'triggers' is another name of 'on'; give one of them"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 the file is empty"),
        ("- a", "1:1 expected a workflow, a mapping with 'phases', got a list"),
        ("description: x", "1:1 'phases' is missing"),
        ("phases: 3", "1:9 expected a list, got the number 3"),
        ("phases: [x]", "1:10 expected a mapping of keys to values, got the text 'x'"),
        ("phases: {a: x}", "1:13 expected a mapping of keys to values, got the text 'x'"),
        ("phases: {a: {name: b, bash: ls}}", "1:20 this phase calls itself the text 'b', not 'a'"),
        ("name: x\nphases: {a: {bash: ls}}", "1:7 this workflow calls itself 'x', not 'w'"),
        ("phases: [", "1:1 not valid YAML"),
    ],
)
def test_what_is_no_workflow_says_so(flows: WorkflowFolder, text: str, expected: str) -> None:
    flows.workflow(text)

    (error,) = flows.errors()

    assert error.startswith(f"workflows/w.yaml:{expected}")


def test_names_clash_between_the_fleet_file_and_the_directory(flows: WorkflowFolder) -> None:
    flows.write("nightherd.yaml", "workflows:\n  w: {phases: {a: {bash: ls}}}\n")
    flows.workflow("phases: {a: {bash: ls}}\n")

    (problem,) = flows.problems()

    assert flows.line(problem) == "workflows/w.yaml:1:1 a second workflow called 'w'"
    assert problem.hint is not None
    assert problem.hint.endswith("nightherd.yaml:2:3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("workflows: [a]\n", "1:12 expected a mapping of names to workflows, got a list"),
        ("workflows: {a b: {}}\n", "1:13 'a b' is not a name"),
        ("workflows: {a: x}\n", "1:16 expected a workflow, a mapping with 'phases', got the text"),
        ("workflows: {a: {phases: {b: {bash: ls, when: nope}}}}\n", "1:46 unknown name 'nope'"),
    ],
)
def test_inline_workflows_are_located_in_the_fleet_file(
    flows: WorkflowFolder, text: str, expected: str
) -> None:
    flows.write("nightherd.yaml", text)

    (error,) = flows.errors()

    assert error.startswith(f"nightherd.yaml:{expected}")


def test_workflows_that_run_each_other_in_a_circle_are_named(flows: WorkflowFolder) -> None:
    flows.workflow("phases: {x: {workflow: b}}\n", "a")
    flows.workflow("phases: {x: {workflow: a}}\n", "b")

    assert flows.errors() == ["workflows/b.yaml:1:24 these workflows run each other: a -> b -> a"]


def test_workflows_that_run_others_have_a_limited_number_of_phases(flows: WorkflowFolder) -> None:
    calls = "".join(f"  p{number}: {{workflow: NEXT}}\n" for number in range(20))
    for name, following in (("a", "b"), ("b", "c"), ("c", "d")):
        flows.workflow(f"phases:\n{calls.replace('NEXT', following)}", name)
    commands = "".join(f"  p{number}: {{bash: ls}}\n" for number in range(20))
    flows.workflow(f"phases:\n{commands}", "d")

    assert flows.errors() == [
        "workflows/a.yaml:3:18 more than 10,000 phases, with those of the workflows that it runs"
    ]


def test_command_has_the_variables_of_its_shell(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- {name: a, bash: 'echo ${HOME:-x} ${#PATH} ${items[@]} ${inputs}'}\n")

    assert flows.errors() == []


def test_workflow_that_cannot_be_read_is_not_unknown_as_well(flows: WorkflowFolder) -> None:
    flows.workflow("phases: {x: {workflow: b}}\n", "a")
    flows.workflow("phases: [\n", "b")

    assert [error.split(" ")[0] for error in flows.errors()] == ["workflows/b.yaml:2:1"]


@pytest.mark.parametrize("key", ["key: x", "when_busy: drop"])
def test_concurrency_without_a_number_of_runs_is_refused(flows: WorkflowFolder, key: str) -> None:
    flows.workflow(f"concurrency: {{{key}}}\nphases: [{{name: a, bash: ls}}]\n")

    word = key.split(":")[0]
    assert flows.errors() == [f"workflows/w.yaml:1:15 '{word}' has no effect without 'max_runs'"]


def test_key_of_another_kind_of_phase_is_not_suggested_for_itself(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- name: a\n  agnt: coder\n  prompt: x\n")

    hints = [problem.hint for problem in flows.problems()]
    assert hints == ["did you mean 'agent'?", None]


def test_name_of_a_phase_that_is_too_long_says_so(flows: WorkflowFolder) -> None:
    flows.workflow(f"phases:\n- {{name: {'a' * 61}, bash: ls}}\n")

    (error,) = flows.errors()
    assert error.endswith("is longer than 60 characters")


def test_workflows_run_others_five_levels_deep_and_no_more(flows: WorkflowFolder) -> None:
    for number in range(1, 6):
        flows.workflow(f"phases: {{x: {{workflow: w{number + 1}}}}}\n", f"w{number}")
    flows.workflow("phases: {x: {bash: ls}}\n", "w6")

    assert flows.errors() == ["workflows/w1.yaml:1:24 workflows run others more than 5 levels deep"]


def test_a_workflow_that_is_wrong_is_reported_once_and_not_where_it_is_run(
    flows: WorkflowFolder,
) -> None:
    flows.workflow("phases: {x: {workflow: b, inputs: {q: 1}}}\n", "a")
    flows.workflow("phases: {x: {bsh: ls}}\n", "b")

    assert flows.errors() == [
        "workflows/b.yaml:1:14 unknown key 'bsh'",
    ]


def test_prompt_file_without_text_is_shown_where_it_is_named(flows: WorkflowFolder) -> None:
    flows.write("workflows/empty.md", "\n")
    flows.workflow("phases:\n- {name: a, agent: coder, prompt_file: empty.md}\n")

    assert flows.errors() == ["workflows/w.yaml:2:40 the file 'empty.md' is empty"]


def test_phase_cannot_have_the_name_that_means_no_other_phase(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- {name: own, bash: ls}\n")

    (error,) = flows.errors()
    assert error.startswith("workflows/w.yaml:2:10 a phase cannot be called 'own'")


def test_template_in_the_inputs_of_a_schedule_is_a_notice(flows: WorkflowFolder) -> None:
    flows.workflow(
        "inputs: {t: text}\n"
        "on: {schedules: {s: {interval: 1h, inputs: {t: '${run.id}'}}}}\n"
        "phases: [{name: a, bash: ls}]\n"
    )

    flows.load()
    (notice,) = flows.findings.notices
    assert notice.message == "inputs of a schedule are values: '${' stays as it is"
    assert (notice.place.line, notice.place.column) == (2, 48)
