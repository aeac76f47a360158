/** What an item asks, by what it is about. `asks` of the API is a different object for each kind of item. */

import type { ItemDocument } from "../api/types";
import type { ToolItem } from "../transcript/items";
import { asRecord, asText } from "../transcript/journal";
import { visibleValue } from "./visible_text";

export type Asked =
  | {
      kind: "call";
      tool: string;
      input: Record<string, unknown>;
      preview: string | null;
      note: string | null;
    }
  | { kind: "question"; question: string; options: string[] }
  | { kind: "gate"; workflow: string; gate: string; summary: string }
  | { kind: "error"; message: string; code: string | null }
  | { kind: "file"; file: string; changes: string[] }
  | { kind: "unknown"; body: unknown };

/** Return what the item asks. */
export function askedOf(item: Pick<ItemDocument, "asks" | "kind">): Asked {
  const { asks } = item;
  if (typeof asks.gate === "string") {
    return {
      kind: "gate",
      workflow: asText(asks.workflow),
      gate: asks.gate,
      summary: asText(asks.summary) || asText(asks.question),
    };
  }
  if (typeof asks.question === "string") {
    const options = Array.isArray(asks.options) ? asks.options.map(String) : [];
    return { kind: "question", question: asks.question, options };
  }
  if (typeof asks.tool === "string") {
    return {
      kind: "call",
      tool: asks.tool,
      input: asRecord(asks.input) ?? {},
      preview: typeof asks.preview === "string" ? asks.preview : null,
      note: typeof asks.note === "string" ? asks.note : null,
    };
  }
  if (item.kind === "reload" && typeof asks.changes === "string") {
    return { kind: "file", file: asText(asks.file), changes: asks.changes.split("\n") };
  }
  if (typeof asks.error === "string" || typeof asks.status === "string") {
    const message = asText(asks.error) || `the status is ${asText(asks.status)}`;
    return { kind: "error", message, code: typeof asks.code === "string" ? asks.code : null };
  }
  return { kind: "unknown", body: asks };
}

/** The call as the transcript shows calls: without a result, for it has not run. */
export function callItem(id: string, tool: string, input: unknown): ToolItem {
  return {
    kind: "tool",
    key: `asked:${id}`,
    seq: 0,
    lastSeq: 0,
    at: null,
    turn: null,
    startsTurn: false,
    isError: false,
    revision: "",
    call: { type: "tool_use", seq: 0, tool_name: tool, input: visibleValue(input) },
    result: null,
    reviews: [],
    denied: null,
    progress: null,
    children: [],
  };
}
