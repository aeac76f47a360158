import { expect, it } from "vitest";

import type { JournalEvent } from "../transcript/journal";
import { lastWords } from "./last_words";

const EVENTS: JournalEvent[] = [
  { seq: 1, type: "system", subtype: "init" },
  { seq: 2, type: "assistant", content: "All tests pass." },
  { seq: 3, type: "assistant", content: "of a subagent", parent_tool_use_id: "t0" },
  { seq: 4, type: "tool_use", tool_name: "Bash", tool_use_id: "t1", input: {} },
  { seq: 5, type: "assistant", content: "later" },
];

it("finds what the agent said before the call, and the call itself", () => {
  expect(lastWords(EVENTS, "t1")).toEqual({ text: "All tests pass.", seq: 4 });
});

it("takes the last answer where no call is asked about", () => {
  expect(lastWords(EVENTS, null)).toEqual({ text: "later", seq: 5 });
});

it("has nothing to show of a job that said nothing", () => {
  expect(lastWords(EVENTS.slice(0, 1), null)).toBeNull();
});
