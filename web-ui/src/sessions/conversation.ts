/** The messages of a session as a transcript shows them: calls of tools stand with their results. */

import type { ToolItem } from "../transcript/items";
import type { Message } from "./documents";

export interface Entry {
  message: Message;
  /** Calls of this message whose results are not on the page, and, of a result, its own call. */
  tools: ToolItem[];
}

/** Return an entry for each message. A call is shown by the message that has its result, if there is one. */
export function entriesOf(messages: readonly Message[]): Entry[] {
  const calls = new Map<string, { call: Message["calls"][number]; message: Message }>();
  const answered = new Set<string>();
  for (const message of messages) {
    for (const call of message.calls) if (call.id !== null) calls.set(call.id, { call, message });
    for (const { id } of message.results) if (id !== null) answered.add(id);
  }
  return messages.map((message) => {
    const open = message.calls.filter(({ id }) => id === null || !answered.has(id));
    const results = message.results.map((result, at) => {
      const asked = result.id === null ? undefined : calls.get(result.id);
      return toolItem(message, at, asked?.call ?? null, result);
    });
    return {
      message,
      tools: [...results, ...open.map((call, at) => toolItem(message, at, call, null))],
    };
  });
}

function toolItem(
  message: Message,
  at: number,
  call: Message["calls"][number] | null,
  result: Message["results"][number] | null,
): ToolItem {
  const { seq, turn } = message;
  const isError = result?.success === false;
  // What is printed is the text of the message; of several results in one, it belongs to the first.
  const printed = at === 0 ? message.text : "";
  return {
    kind: "tool",
    key: `message:${message.job_id}:${message.message}:${result === null ? "call" : "result"}:${at}`,
    seq,
    lastSeq: seq,
    at: message.timestamp,
    turn,
    startsTurn: false,
    isError,
    revision: "",
    call:
      call === null
        ? null
        : { type: "tool_use", seq, tool_name: call.tool, tool_use_id: call.id, input: call.input },
    result:
      result === null
        ? null
        : {
            type: "tool_result",
            seq,
            result: printed,
            success: result.success,
            error: result.error,
            tool_use_id: result.id,
          },
    reviews: [],
    denied: null,
    progress: null,
    children: [],
  };
}

/** Return how many bytes of a message are not on the page. */
export function cutBytes(message: Message): number {
  return (message.cut ?? []).reduce((sum, { size }) => sum + size, 0);
}
