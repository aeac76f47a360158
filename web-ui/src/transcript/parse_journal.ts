/** Journals from files: a job's `.jsonl`, or what `nightherd session export` wrote. */

import { asRecord, asText, isJournalEvent, type JournalEvent } from "./journal";

export interface OpenedJob {
  id: string;
  events: JournalEvent[];
}

export interface OpenedFile {
  name: string;
  /** Facts about what is shown, for its header. */
  facts: [string, string][];
  jobs: OpenedJob[];
  /** How many lines were no events that count. */
  ignored: number;
}

const EXPORT = "nightherd/v1/session_export";

/** Return whether a file is an exported session, which can be imported. */
export function isExportedSession(text: string): boolean {
  return asRecord(tryParse(text))?.schema === EXPORT;
}

/** Return the jobs of a file; an error says what it is instead. */
export function parseFile(name: string, text: string): OpenedFile {
  const whole = text.trimStart().startsWith("{") ? tryParse(text) : undefined;
  const document = asRecord(whole);
  if (document?.schema === EXPORT) return sessionExport(name, asRecord(document.data) ?? {});
  const { events, ignored } = parseLines(text);
  if (events.length === 0) throw new Error(`${name} has no events of a job's journal`);
  const header = events.find((event) => event.type === "system" && event.subtype === "header");
  const id = asText(header?.extra?.id) || name.replace(/\.jsonl$/, "");
  return {
    name,
    facts: [["agent", asText(header?.extra?.agent)]],
    jobs: [{ id, events }],
    ignored,
  };
}

/** Return the events of a journal that count (docs/formats/journal.md, Which lines count). */
export function parseLines(text: string): { events: JournalEvent[]; ignored: number } {
  const events: JournalEvent[] = [];
  let [epoch, seq, ignored] = [0, 0, 0];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const event = tryParse(line);
    if (!isJournalEvent(event)) {
      ignored += 1;
      continue;
    }
    const own = event.epoch ?? 0;
    const counts = own >= epoch && event.seq > seq;
    epoch = Math.max(epoch, own);
    if (!counts) {
      ignored += 1;
      continue;
    }
    seq = event.seq;
    events.push(event);
  }
  return { events, ignored };
}

function sessionExport(name: string, data: Record<string, unknown>): OpenedFile {
  const session = asRecord(data.session) ?? {};
  const parts = Array.isArray(data.jobs) ? data.jobs.map((part) => asRecord(part) ?? {}) : [];
  const jobs = parts.map((part) => ({
    id: asText(asRecord(part.job)?.id),
    events: Array.isArray(part.events) ? part.events.filter(isJournalEvent) : [],
  }));
  const facts: [string, string][] = [
    ["session", asText(session.id)],
    ["agent", asText(session.agent)],
  ];
  return { name, facts, jobs, ignored: 0 };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
