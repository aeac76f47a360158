"""A fleet whose agents wait for people: for tests of every surface that answers."""

from __future__ import annotations

WAITING_AGENTS = """\
agents:
  - name: pusher
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(touch:*)"}]
    script:
      - tool: Bash
        input: {command: touch pushed}
      - say: done
  - name: guarded
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(touch:*)", approvers: [alice]}]
    script:
      - tool: Bash
        input: {command: touch guarded}
      - say: done
  - name: asker
    runtime: scripted
    default_prompt: go
    questions: true
    script: [{tool: ask_person, input: {question: "Which server?"}}, {say: done}]
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script: [{repeat: 4, steps: [{say: word}, {usage: {output_tokens: 1}}]}]
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{fail: {message: no luck}}]
"""
