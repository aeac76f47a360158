import type { JournalEvent } from "../transcript/journal";

export interface LastWords {
  /** The agent's last answer before it asked. */
  text: string;
  /** The event of the call that is asked about, else of the answer. */
  seq: number;
}

/** Find what the agent said before the call that is asked about, or at the end. */
export function lastWords(
  events: readonly JournalEvent[],
  toolUseId: string | null,
): LastWords | null {
  const call = events.findLastIndex(
    (event) => event.type === "tool_use" && toolUseId !== null && event.tool_use_id === toolUseId,
  );
  const end = call < 0 ? events.length : call;
  const said = events
    .slice(0, end)
    .findLast((event) => event.type === "assistant" && !event.parent_tool_use_id && event.content);
  const place = events[call] ?? said;
  if (place === undefined) return null;
  return { text: said?.type === "assistant" ? (said.content ?? "") : "", seq: place.seq };
}
