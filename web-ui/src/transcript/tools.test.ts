import { expect, it } from "vitest";

import type { ToolItem } from "./items";
import { contentOf, formatSize, resultOf } from "./results";
import { callTitle, toolView } from "./tools";

function tool(name: string, input: unknown, result?: unknown, more: object = {}): ToolItem {
  return {
    kind: "tool",
    key: "1",
    seq: 1,
    lastSeq: 2,
    at: null,
    turn: 1,
    startsTurn: false,
    isError: false,
    revision: "1",
    call: { type: "tool_use", seq: 1, tool_name: name, input },
    result:
      result === undefined ? null : { type: "tool_result", seq: 2, result, success: true, ...more },
    reviews: [],
    denied: null,
    progress: null,
    children: [],
  };
}

it("reads the exit code of a failed command and takes it out of the output", () => {
  const failed = { success: false, error: "Exit code 2" };
  expect(toolView(tool("Bash", { command: "make" }, "Exit code 2\nno rule", failed))).toMatchObject(
    {
      family: "bash",
      exitCode: 2,
      output: "no rule",
    },
  );
  const ours = { success: false, error: "exit code 127" };
  expect(toolView(tool("Bash", { command: "nope" }, "not found", ours))).toMatchObject({
    exitCode: 127,
    output: "not found",
  });
  expect(toolView(tool("Bash", { command: "echo" }, "exit code 3"))).toMatchObject({
    exitCode: null,
    output: "exit code 3",
  });
});

it("shows edits, files, searches, tasks and tools of servers by what they are", () => {
  expect(
    toolView(tool("Edit", { file_path: "a", old_string: "x", new_string: "y" })),
  ).toMatchObject({
    family: "edit",
    edits: [{ before: "x", after: "y" }],
  });
  const edits = [{ old_string: "1", new_string: "2" }];
  expect(toolView(tool("MultiEdit", { file_path: "a", edits }))).toMatchObject({ family: "edit" });
  expect(toolView(tool("Write", { file_path: "a", content: "c" }))).toMatchObject({
    family: "write",
  });
  expect(toolView(tool("Read", { file_path: "a", offset: 5, limit: 3 }, "text"))).toMatchObject({
    family: "read",
    range: "lines 5-7",
    content: "text",
  });
  expect(toolView(tool("Grep", { pattern: "x", path: "src" }, "src/a"))).toMatchObject({
    family: "search",
    where: "src",
  });
  expect(toolView(tool("Task", { prompt: "p", subagent_type: "explorer" }, "found"))).toMatchObject(
    {
      family: "task",
      agent: "explorer",
      answer: "found",
    },
  );
  expect(toolView(tool("mcp__git_hub__get_issue", { n: 1 }))).toMatchObject({
    family: "mcp",
    server: "git_hub",
    tool: "get_issue",
  });
});

it("shows a known tool with unexpected arguments, and an unknown tool, as JSON", () => {
  expect(toolView(tool("Bash", { command: 5 })).family).toBe("unknown");
  expect(toolView(tool("Edit", "text")).family).toBe("unknown");
  expect(toolView(tool("MultiEdit", { file_path: "a", edits: [1] })).family).toBe("unknown");
  expect(toolView(tool("constructor", {})).family).toBe("unknown");
  expect(toolView(tool("__proto__", { a: 1 })).family).toBe("unknown");
});

it("titles a call by the argument that says most, on one line", () => {
  expect(callTitle(tool("Bash", { description: "d", command: "a\n  b" }))).toBe("a b");
  expect(callTitle(tool("Odd", { x: 1 }))).toBe('{"x":1}');
  expect(callTitle({ ...tool("Odd", {}), call: null })).toBe("result of an earlier call");
  expect(callTitle(tool("Bash", { command: "x".repeat(500) })).length).toBe(160);
});

it("finds the images of a result and names other encoded data", () => {
  const image = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: "aGk=" },
  };
  expect(contentOf([{ type: "text", text: "t" }, image])).toEqual({
    text: "t",
    pictures: [{ mediaType: "image/png", data: "aGk=" }],
  });
  expect(contentOf([{ data: "aGk=", mimeType: "image/webp" }]).pictures).toHaveLength(1);
  const svg = { source: { media_type: "image/svg+xml", data: "aGk=" } };
  expect(contentOf([svg])).toEqual({ text: "[image/svg+xml, 3 B]", pictures: [] });
  expect(contentOf({ a: 1 }).text).toBe('{\n  "a": 1\n}');
});

it("puts the error of a result first, once", () => {
  const failed = { type: "tool_result", seq: 1, success: false } as const;
  expect(resultOf({ ...failed, result: "more", error: "broken" }).text).toBe("broken\nmore");
  expect(resultOf({ ...failed, result: "it is broken", error: "broken" }).text).toBe(
    "it is broken",
  );
});

it("writes sizes for people", () => {
  expect([10, 2048, 3_500_000].map(formatSize)).toEqual(["10 B", "2.0 KB", "3.3 MB"]);
});
