/** System events as short notices for people. */

import type { NoticeItem, Severity } from "./items";
import type { SystemEvent } from "./journal";
import { asNumber, asText } from "./journal";

type Notice = Pick<NoticeItem, "label" | "text" | "severity" | "isQuiet">;

/** Subtypes that matter to programs more than to people. */
const QUIET = new Set([
  "header",
  "context",
  "checkpoint",
  "init",
  "tool_progress",
  "snapshot",
  "complete",
  "session_end",
  "execution_started",
]);

/** Return what a system event says, in words. */
export function noticeOf(event: SystemEvent): Notice {
  const extra = event.extra ?? {};
  const label = event.subtype.replaceAll("_", " ");
  const text = DETAILS[event.subtype]?.(extra, event) ?? event.content ?? plain(extra);
  return { label, text, severity: severityOf(event), isQuiet: QUIET.has(event.subtype) };
}

function severityOf(event: SystemEvent): Severity {
  const extra = event.extra ?? {};
  if (event.subtype === "denied" || event.subtype === "torn_tail") return "bad";
  if (event.subtype === "hook" && extra.success === false) return "bad";
  if (event.subtype === "auth_status" && extra.is_authenticated === false) return "bad";
  return event.subtype === "warning" ? "warning" : "info";
}

type Detail = (extra: Record<string, unknown>, event: SystemEvent) => string | null;

const DETAILS: Record<string, Detail> = {
  header: (extra) => `${asText(extra.id)} of ${asText(extra.agent)}`,
  execution_started: (extra) => `worker ${asText(extra.worker)}`,
  init: (extra) =>
    [asText(extra.runtime), asText(extra.model), asText(extra.working_directory)]
      .filter((part) => part)
      .join(", "),
  checkpoint: (extra) => `${asNumber(extra.number) ?? "?"}, ${asText(extra.trigger)}`,
  denied: (extra, event) => event.content ?? `${asText(extra.tool_name)}: ${asText(extra.reason)}`,
  hook: (extra) => {
    const name = `${asText(extra.event)}: ${asText(extra.name)}`;
    if (extra.success === undefined || extra.success === null) {
      return extra.is_interrupted === true ? `${name} was interrupted` : `${name} runs`;
    }
    const outcome = extra.success === true ? "succeeded" : "failed";
    const detail = asText(extra.error) || asText(extra.output);
    return `${name} ${outcome}${detail ? `: ${detail}` : ""}`;
  },
  container: (extra) => `${asText(extra.image)} (${asText(extra.container_id).slice(0, 12)})`,
  workspace: (extra, event) =>
    event.content ?? `${asText(extra.mode)} in ${asText(extra.directory)}`,
  snapshot: (extra) => `${asNumber(extra.changed) ?? 0} paths changed`,
  compact_boundary: (extra, event) => {
    const before = asNumber(extra.tokens_before);
    return event.content ?? (before === null ? "" : `${before.toLocaleString("en")} tokens before`);
  },
  torn_tail: () => "an incomplete line of a killed writer was cut off; its bytes are kept",
};

function plain(extra: Record<string, unknown>): string {
  return Object.entries(extra)
    .filter(([name]) => name !== "$journal")
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
