/** The text of an item, for finding in the loaded part. */

import type { Item } from "./items";
import { stripAnsi } from "./ansi";
import { resultOf } from "./results";

/** Return all text of an item, in lower case. */
export function searchText(item: Item): string {
  return partsOf(item).join("\n").toLowerCase();
}

function partsOf(item: Item): string[] {
  switch (item.kind) {
    case "prompt":
    case "live":
      return [item.text];
    case "answer":
      return [item.text, item.thinking];
    case "tool":
      return [
        item.call?.tool_name ?? "",
        JSON.stringify(item.call?.input ?? ""),
        item.result === null ? "" : stripAnsi(resultOf(item.result).text),
        ...item.children.map(searchText),
      ];
    case "subagent":
      return item.children.map(searchText);
    case "gap":
      return [item.reason, item.text];
    case "wait":
      return [item.reason, item.text, item.code ?? ""];
    case "notice":
      return [item.label, item.text];
    case "error":
      return [item.event.message, item.event.code ?? ""];
    case "end":
      return [item.status, item.exitReason];
    case "unknown":
      return [JSON.stringify(item.event)];
  }
}

/** Return the numbers of the items in which `words` occur. */
export function findIn(items: readonly Item[], words: string): number[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  return items.filter((item) => searchText(item).includes(wanted)).map((item) => item.seq);
}
