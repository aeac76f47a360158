import { expect, it } from "vitest";

import { cutBytes, entriesOf } from "./conversation";
import type { Message } from "./documents";

function message(
  number: number,
  speaker: Message["speaker"],
  given: Partial<Message> = {},
): Message {
  return {
    message: number,
    speaker,
    text: "",
    calls: [],
    results: [],
    job_id: "job-1",
    seq: number * 10,
    turn: 1,
    timestamp: null,
    ...given,
  };
}

const call = { id: "toolu_1", tool: "Bash", input: { command: "ls" } };
const result = { id: "toolu_1", success: true, error: null };

it("shows a call with its result, where the result is", () => {
  const [asked, told] = entriesOf([
    message(1, "assistant", { text: "Let me look.", calls: [call] }),
    message(2, "tool", { text: "a\nb", results: [result] }),
  ]);
  expect(asked?.tools).toEqual([]);
  expect(told?.tools).toHaveLength(1);
  expect(told?.tools[0]?.call?.tool_name).toBe("Bash");
  expect(told?.tools[0]?.result?.result).toBe("a\nb");
});

it("shows a call that has no result yet where it was made", () => {
  const [asked] = entriesOf([message(1, "assistant", { calls: [call] })]);
  expect(asked?.tools[0]).toMatchObject({ result: null, isError: false });
});

it("shows a result whose call is on an earlier page, and that it failed", () => {
  const failed = { ...result, success: false, error: "exit code 1" };
  const [told] = entriesOf([message(2, "tool", { text: "no such file", results: [failed] })]);
  expect(told?.tools[0]).toMatchObject({ call: null, isError: true });
  expect(told?.tools[0]?.result?.error).toBe("exit code 1");
});

it("counts what is left out of a message", () => {
  const cut = [
    { field: "text", size: 9_000, url: "" },
    { field: "calls/0/input", size: 1_000, url: "" },
  ];
  expect(cutBytes(message(1, "user", { cut }))).toBe(10_000);
  expect(cutBytes(message(1, "user"))).toBe(0);
});
