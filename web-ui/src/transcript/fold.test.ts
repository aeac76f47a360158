import { describe, expect, it } from "vitest";

import { fold, LiveText } from "./fold";
import type { Item, ToolItem } from "./items";
import type { JournalEvent } from "./journal";

type Loose = Partial<Record<string, unknown>> & { type: string };

function journal(...lines: Loose[]): JournalEvent[] {
  return lines.map(
    (line, place) =>
      ({
        seq: place + 1,
        epoch: 1,
        timestamp: `2026-01-02T03:04:${String(place).padStart(2, "0")}Z`,
        ...line,
      }) as unknown as JournalEvent,
  );
}

const asked = { type: "system", subtype: "user_input", content: "Fix it" };
const call = (id: string, more: object = {}) => ({
  type: "tool_use",
  tool_name: "Bash",
  tool_use_id: id,
  input: { command: "ls" },
  turn: 1,
  ...more,
});
const result = (id: string, more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  result: "ok",
  success: true,
  ...more,
});

function kinds(items: Item[]): string[] {
  return items.map((item) => item.kind);
}

describe("fold", () => {
  it("pairs a call with its result and counts turns", () => {
    const items = fold(
      journal(
        asked,
        { type: "assistant", content: "Let me look.", turn: 1 },
        call("a"),
        result("a"),
        {
          type: "assistant",
          content: "Done.",
          turn: 2,
        },
      ),
    );
    expect(kinds(items)).toEqual(["prompt", "answer", "tool", "answer"]);
    expect((items[2] as ToolItem).result?.seq).toBe(4);
    expect(items.map((item) => item.startsTurn)).toEqual([false, true, false, true]);
  });

  it("nests what a subagent did inside the call that started it, at any depth", () => {
    const items = fold(
      journal(
        call("task", { tool_name: "Task" }),
        { type: "assistant", content: "inner", parent_tool_use_id: "task" },
        call("deep", { tool_name: "Task", parent_tool_use_id: "task" }),
        { type: "assistant", content: "innermost", parent_tool_use_id: "deep" },
        result("deep", { parent_tool_use_id: "task" }),
        result("task"),
      ),
    );
    expect(kinds(items)).toEqual(["tool"]);
    const task = items[0] as ToolItem;
    expect(kinds(task.children)).toEqual(["answer", "tool"]);
    expect(kinds((task.children[1] as ToolItem).children)).toEqual(["answer"]);
    expect(task.lastSeq).toBe(6);
  });

  it("keeps a subagent together whose call is before the loaded part", () => {
    const events = journal(
      call("task"),
      { type: "assistant", content: "inner", parent_tool_use_id: "task" },
      result("task"),
    );
    const items = fold(events.slice(1));
    expect(kinds(items)).toEqual(["subagent", "tool"]);
    expect((items[1] as ToolItem).call).toBeNull();
    expect(kinds(fold(events))).toEqual(["tool"]);
  });

  it("does not claim that a turn begins where the loaded part begins", () => {
    const events = journal(asked, { type: "assistant", content: "a", turn: 1 }, call("a"));
    expect(fold(events.slice(2))[0]?.startsTurn).toBe(false);
  });

  it("shows the time without a worker as a gap with its reason", () => {
    const items = fold(
      journal(
        { type: "system", subtype: "execution_started", extra: { worker: "w1" } },
        { type: "assistant", content: "working", turn: 1 },
        {
          type: "system",
          subtype: "execution_started",
          epoch: 2,
          timestamp: "2026-01-02T03:05:00Z",
          extra: { worker: "w2", continues_after: 2 },
        },
        {
          type: "system",
          subtype: "recovered",
          epoch: 2,
          extra: { lost_execution: "x.1", reason: "its worker is gone" },
        },
      ),
    );
    expect(kinds(items)).toEqual(["notice", "answer", "gap"]);
    expect(items[2]).toMatchObject({
      reason: "crash",
      text: "its worker is gone",
      from: "2026-01-02T03:04:01Z",
      to: "2026-01-02T03:05:00Z",
      worker: "w2",
      lastSeq: 4,
    });
  });

  it("names a planned handover and a wait as what they are", () => {
    const started = {
      type: "system",
      subtype: "execution_started",
      epoch: 2,
      extra: { worker: "w2", continues_after: 1 },
    };
    const handed = fold(
      journal(asked, started, {
        type: "system",
        subtype: "recovered",
        extra: { lost_execution: "x.1", reason: "its worker stopped and handed it over" },
      }),
    );
    expect(handed[1]).toMatchObject({ kind: "gap", reason: "handover" });
    const waited = fold(
      journal(
        {
          type: "system",
          subtype: "suspended",
          content: "spent $1 of $1",
          extra: { reason: "limit", code: "spend_exceeded", until: null },
        },
        started,
        { type: "system", subtype: "resumed", epoch: 2, extra: { reason: "suspended" } },
      ),
    );
    expect(waited[0]).toMatchObject({
      kind: "wait",
      reason: "limit",
      resumedAt: expect.any(String) as string,
    });
    expect(waited[1]).toMatchObject({ kind: "gap", reason: "limit", lastSeq: 3 });
    expect(waited).toHaveLength(2);
  });

  it("puts denials, reviews and progress on the call they are about", () => {
    const items = fold(
      journal(
        call("a"),
        {
          type: "system",
          subtype: "review",
          extra: { tool_use_id: "a", item: "item-1", status: "pending" },
        },
        {
          type: "system",
          subtype: "review",
          extra: { tool_use_id: "a", item: "item-1", status: "approved", by: "ann", via: "web" },
        },
        { type: "system", subtype: "tool_progress", extra: { tool_use_id: "a", elapsed_ms: 5000 } },
        call("b"),
        {
          type: "system",
          subtype: "denied",
          extra: { tool_use_id: "b", tool_name: "Bash", reason: "plan" },
        },
      ),
    );
    expect(kinds(items)).toEqual(["tool", "tool"]);
    expect((items[0] as ToolItem).reviews.map((review) => review.status)).toEqual([
      "pending",
      "approved",
    ]);
    expect((items[0] as ToolItem).progress?.elapsedMs).toBe(5000);
    expect(items[1]).toMatchObject({ denied: "plan", isError: true });
  });

  it("marks failed results, errors and failed ends for n and p", () => {
    const items = fold(
      journal(
        call("a"),
        result("a", { success: false, error: "exit code 1" }),
        { type: "error", message: "the model is gone", code: "outage" },
        { type: "system", subtype: "end", extra: { status: "failed", exit_reason: "error" } },
        {
          type: "system",
          subtype: "hook",
          extra: { name: "h", event: "after_run", success: false },
        },
      ),
    );
    expect(items.map((item) => item.isError)).toEqual([true, true, true, true]);
  });

  it("leaves out usage lines and arriving pieces, but keeps an answer that was cut off", () => {
    const items = fold(
      journal(
        { type: "assistant", partial: true, usage: { cost_microusd: 5 } },
        { type: "assistant", usage: { cost_microusd: 5 } },
        { type: "assistant", partial: true, content: "half an ans", extra: { cut_off: true } },
      ),
    );
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ kind: "answer", isCutOff: true, text: "half an ans" });
  });

  it("changes the revision of a call when its result or something inside it arrives", () => {
    const events = journal(
      call("task"),
      { type: "assistant", content: "inner", parent_tool_use_id: "task" },
      result("task"),
    );
    const revisions = [1, 2, 3].map((count) => fold(events.slice(0, count))[0]?.revision);
    expect(new Set(revisions).size).toBe(3);
    expect(fold(events)[0]?.revision).toBe(revisions[2]);
  });

  it("treats a call id that is used again as another call", () => {
    const items = fold(
      journal(call("a"), result("a"), call("a"), result("a", { result: "again" })),
    );
    expect(items).toHaveLength(2);
    expect(new Set(items.map((item) => item.key)).size).toBe(2);
  });

  it("shows an event of an unknown type instead of leaving it out", () => {
    expect(kinds(fold(journal({ type: "novel" })))).toEqual(["unknown"]);
  });
});

describe("LiveText", () => {
  const piece = (at: number, text: string, part = 1, after = 4) => ({
    epoch: 1,
    after,
    part,
    at,
    text,
  });

  it("joins pieces, ignores repeated ones, and never shows text after a hole", () => {
    const live = new LiveText();
    live.add(piece(0, "I will "));
    live.add(piece(0, "I will "));
    live.add(piece(7, "look."));
    live.add(piece(99, "lost"));
    expect(live.item()).toMatchObject({ kind: "live", text: "I will look." });
  });

  it("is over once a recorded event has the text", () => {
    const live = new LiveText();
    live.add(piece(0, "I will look."));
    live.see({ type: "assistant", seq: 5, parent_tool_use_id: "sub", content: "x" });
    expect(live.item()).not.toBeNull();
    live.see({ type: "assistant", seq: 5, content: "I will look." });
    expect(live.item()).toBeNull();
  });
});
