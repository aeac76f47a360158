import { expect, it } from "vitest";

import type { ItemDocument } from "../api/types";
import { askedOf, callItem } from "./asked";
import { changedInput, fieldsOf } from "./call_input";
import { effectsOf, expiryText, limitOfCode, noOf, yesOf } from "./verdicts";
import { toolView } from "../transcript/tools";

type Asks = ItemDocument["asks"];
const asked = (asks: Asks, kind: ItemDocument["kind"] = "approval") => askedOf({ asks, kind });

it("knows the answer that goes on and the one that does not, for every kind", () => {
  expect(yesOf({ verdicts: ["approve", "reject"] })).toBe("approve");
  expect(yesOf({ verdicts: ["reject", "reply"] })).toBe("reply");
  expect(yesOf({ verdicts: ["raise", "reject"] })).toBe("raise");
  expect(yesOf({ verdicts: ["dismiss", "retry"] })).toBe("retry");
  expect(yesOf({ verdicts: ["accept", "reject"] })).toBe("accept");
  expect(noOf({ verdicts: ["dismiss", "retry"] })).toBe("dismiss");
  expect(noOf({ verdicts: ["reject", "reply"] })).toBe("reject");
});

it("reads the limit out of an error code", () => {
  expect(limitOfCode("turns_exceeded")).toBe("turns");
  expect(limitOfCode("bad_luck")).toBeNull();
  expect(limitOfCode(null)).toBeNull();
});

it("says how long an item can be answered", () => {
  const at = Date.parse("2026-01-02T03:00:00Z");
  expect(expiryText({ expires_at: null }, at)).toBeNull();
  expect(expiryText({ expires_at: "2026-01-02T05:00:00Z" }, at)).toBe("expires in 2 h");
  expect(expiryText({ expires_at: "2026-01-02T02:00:00Z" }, at)).toBe("expired");
});

it("shows times of effects as the reader's clock has them", () => {
  const effect = "the gate fails at 2026-11-18T23:36:05.101097Z";
  const [shown] = effectsOf({ what_happens: { "no answer": effect } });
  expect(shown?.effect).toMatch(/^the gate fails at .*2026/);
  expect(shown?.effect).not.toContain("T23");
});

it("tells calls, questions, gates, errors and files apart", () => {
  expect(asked({ tool: "Bash", input: { command: "ls" } })).toMatchObject({
    kind: "call",
    preview: null,
  });
  const question = { tool: "ask_person", input: {}, question: "Which?", options: ["a", "b"] };
  expect(asked(question, "question")).toEqual({
    kind: "question",
    question: "Which?",
    options: ["a", "b"],
  });
  const gate = { gate: "approve", workflow: "news", summary: "Publish?", question: "Publish?" };
  expect(asked(gate)).toMatchObject({ kind: "gate", summary: "Publish?" });
  expect(asked({ error: "no luck", code: "bad", status: "failed" }, "failure")).toEqual({
    kind: "error",
    message: "no luck",
    code: "bad",
  });
  expect(asked({ file: "a.yaml", changes: "one\ntwo" }, "reload")).toEqual({
    kind: "file",
    file: "a.yaml",
    changes: ["one", "two"],
  });
  expect(asked({ something: "else" })).toEqual({ kind: "unknown", body: { something: "else" } });
});

it("shows an asked call with the renderers of the transcript", () => {
  const view = toolView(
    callItem("ask-1", "Edit", { file_path: "a", old_string: "x", new_string: "y" }),
  );
  expect(view).toMatchObject({ family: "edit", path: "a" });
});

it("returns changed arguments with their types, and nothing when nothing was changed", () => {
  const input = { command: "ls", timeout: 5, flags: ["-l"] };
  const fields = fieldsOf(input);
  expect(changedInput(input, fields)).toEqual({ input: null, problems: {} });
  const other = fields.map((field) =>
    field.name === "command" ? { ...field, text: "ls -a" } : field,
  );
  expect(changedInput(input, other).input).toEqual({
    command: "ls -a",
    timeout: 5,
    flags: ["-l"],
  });
});

it("names the argument that is no JSON", () => {
  const input = { timeout: 5 };
  const { input: changed, problems } = changedInput(input, [
    { name: "timeout", kind: "json", text: "5 s" },
  ]);
  expect(changed).toBeNull();
  expect(problems.timeout).toMatch(/^not JSON/);
});
