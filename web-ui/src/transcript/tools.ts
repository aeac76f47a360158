/** What a tool call is about, by the name of the tool: one value for each way of showing calls. */

import type { ToolItem } from "./items";
import { asNumber, asRecord, asText } from "./journal";
import { resultOf, type Result } from "./results";

export interface Edit {
  before: string;
  after: string;
}

export type ToolView =
  | {
      family: "bash";
      command: string;
      description: string;
      exitCode: number | null;
      output: string;
    }
  | { family: "read"; path: string; range: string; content: string }
  | { family: "edit"; path: string; edits: Edit[]; replacesAll: boolean }
  | { family: "write"; path: string; content: string }
  | { family: "search"; pattern: string; where: string; matches: string }
  | { family: "todo"; todos: Todo[] }
  | { family: "web"; target: string; prompt: string; output: string }
  | { family: "task"; description: string; agent: string; prompt: string; answer: string }
  | { family: "mcp"; server: string; tool: string; input: unknown; output: string }
  | { family: "unknown"; input: unknown; output: string };

export interface Todo {
  text: string;
  status: string;
}

type Input = Record<string, unknown>;
type Reader = (input: Input, result: Result, isFailed: boolean) => ToolView | null;

/** Return how the call is shown. A call whose arguments are not as its tool takes them is shown as JSON. */
export function toolView(item: ToolItem): ToolView {
  const name = item.call?.tool_name ?? "";
  const result = item.result === null ? { text: "", pictures: [] } : resultOf(item.result);
  const input = asRecord(item.call?.input);
  const reader = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
  const view = input === null ? null : reader?.(input, result, item.result?.success === false);
  if (view !== null && view !== undefined) return view;
  const mcp = /^mcp__(.+?)__(.+)$/.exec(name);
  const output = result.text;
  if (mcp !== null) {
    return {
      family: "mcp",
      server: mcp[1] ?? "",
      tool: mcp[2] ?? "",
      input: item.call?.input,
      output,
    };
  }
  return { family: "unknown", input: item.call?.input, output };
}

const READERS: Record<string, Reader> = {
  Bash: readBash,
  Read: (input, result) => {
    const path = text(input, "file_path");
    if (path === null) return null;
    return { family: "read", path, range: rangeOf(input), content: result.text };
  },
  Edit: (input) => {
    const [path, before, after] = [
      text(input, "file_path"),
      text(input, "old_string"),
      text(input, "new_string"),
    ];
    if (path === null || before === null || after === null) return null;
    return {
      family: "edit",
      path,
      edits: [{ before, after }],
      replacesAll: input.replace_all === true,
    };
  },
  MultiEdit: (input) => {
    const path = text(input, "file_path");
    const edits = Array.isArray(input.edits) ? input.edits.map(editOf) : [];
    if (path === null || edits.length === 0) return null;
    const whole = edits.filter((edit) => edit !== null);
    return whole.length < edits.length
      ? null
      : { family: "edit", path, edits: whole, replacesAll: false };
  },
  Write: (input) => {
    const [path, content] = [text(input, "file_path"), text(input, "content")];
    return path === null || content === null ? null : { family: "write", path, content };
  },
  NotebookEdit: (input) => {
    const [path, content] = [text(input, "notebook_path"), text(input, "new_source")];
    return path === null || content === null ? null : { family: "write", path, content };
  },
  Grep: readSearch,
  Glob: readSearch,
  LS: (input, result) => {
    const where = text(input, "path");
    return where === null ? null : { family: "search", pattern: "", where, matches: result.text };
  },
  Task: readTask,
  Agent: readTask,
  TodoWrite: (input) => {
    if (!Array.isArray(input.todos)) return null;
    return { family: "todo", todos: input.todos.map(todoOf) };
  },
  WebFetch: (input, result) => {
    const target = text(input, "url");
    if (target === null) return null;
    return { family: "web", target, prompt: asText(input.prompt), output: result.text };
  },
  WebSearch: (input, result) => {
    const target = text(input, "query");
    return target === null ? null : { family: "web", target, prompt: "", output: result.text };
  },
};

const EXIT = /^(?:Error: )?exit code (\d{1,3})\b[:.]?\n?/i;

function readBash(input: Input, result: Result, isFailed: boolean): ToolView | null {
  const command = text(input, "command");
  if (command === null) return null;
  const exit = isFailed ? EXIT.exec(result.text) : null;
  return {
    family: "bash",
    command,
    description: asText(input.description),
    exitCode: exit === null ? null : Number(exit[1]),
    output: exit === null ? result.text : result.text.slice(exit[0].length),
  };
}

function readSearch(input: Input, result: Result): ToolView | null {
  const pattern = text(input, "pattern");
  if (pattern === null) return null;
  const where = [asText(input.path), asText(input.glob), asText(input.type)].filter((part) => part);
  return { family: "search", pattern, where: where.join(" "), matches: result.text };
}

function readTask(input: Input, result: Result): ToolView | null {
  const prompt = text(input, "prompt");
  if (prompt === null) return null;
  return {
    family: "task",
    description: asText(input.description),
    agent: asText(input.subagent_type),
    prompt,
    answer: result.text,
  };
}

function rangeOf(input: Input): string {
  const [offset, limit] = [asNumber(input.offset), asNumber(input.limit)];
  if (offset === null && limit === null) return "";
  const first = offset ?? 1;
  return limit === null ? `from line ${first}` : `lines ${first}-${first + limit - 1}`;
}

function editOf(value: unknown): Edit | null {
  const edit = asRecord(value);
  if (edit === null) return null;
  const [before, after] = [text(edit, "old_string"), text(edit, "new_string")];
  return before === null || after === null ? null : { before, after };
}

function todoOf(value: unknown): Todo {
  const todo = asRecord(value) ?? {};
  return { text: asText(todo.content) || asText(todo.activeForm), status: asText(todo.status) };
}

function text(input: Input, field: string): string | null {
  const value = input[field];
  return typeof value === "string" ? value : null;
}

/** The field of a call's input that says most about it, first found. */
const TELLING = [
  "command",
  "file_path",
  "notebook_path",
  "path",
  "pattern",
  "url",
  "query",
  "description",
];

/** Return one line about the call, for its closed header and for lists. */
export function callTitle(item: ToolItem): string {
  const input = asRecord(item.call?.input);
  if (input === null)
    return item.call === null
      ? "result of an earlier call"
      : oneLine(JSON.stringify(item.call.input ?? ""));
  const field = TELLING.find((name) => typeof input[name] === "string");
  return oneLine(field === undefined ? JSON.stringify(input) : asText(input[field]));
}

const TITLE = 160;

function oneLine(value: string): string {
  const line = value.replace(/\s+/g, " ").trim();
  return line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line;
}
