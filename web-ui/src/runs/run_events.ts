/** Events of a run as lines. */

import type { Answer } from "../api/types";

export type RunEvent = Answer<"/v1/runs/{run}/events">["data"][number];

export interface EventLine {
  id: string;
  at: string | null;
  /** The phase it is about; empty for the run itself. */
  phase: string;
  text: string;
  tone: "plain" | "bad" | "wait" | "quiet";
  /** The job and the event of it, for a link. */
  job: { id: string; seq: number } | null;
}

const LONGEST = 200;

/** Return an event as a line. */
export function lineOf(event: RunEvent): EventLine {
  switch (event.type) {
    case "node":
      return nodeLine(event.id, event.data);
    case "inbox":
      return {
        id: event.id,
        at: event.data.at,
        phase: event.data.phase ?? "",
        text:
          event.data.decided_at === null
            ? `asks: ${event.data.title}`
            : `${event.data.verdict ?? event.data.status} by ${event.data.decided_by ?? "nobody"}`,
        tone: "wait",
        job: null,
      };
    case "run":
      return {
        id: event.id,
        at: event.data.at,
        phase: "",
        text: [`the run is ${event.data.status}`, event.data.error].filter(Boolean).join(": "),
        tone: event.data.status === "failed" ? "bad" : "plain",
        job: null,
      };
    case "job":
      return jobLine(event.id, event.data);
  }
}

type Data<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>["data"];

function nodeLine(id: string, data: Data<"node">): EventLine {
  const attempt = data.attempt > 1 ? `, attempt ${data.attempt}` : "";
  const why = data.error ?? data.message;
  return {
    id,
    at: data.at,
    phase: data.path,
    text: [`${data.status}${attempt}`, why].filter(Boolean).join(": "),
    tone: data.status === "failed" ? "bad" : data.status === "paused" ? "wait" : "plain",
    job: data.job_id === null ? null : { id: data.job_id, seq: 0 },
  };
}

function jobLine(id: string, { event, phase, job_id: job }: Data<"job">): EventLine {
  return {
    id,
    at: event.timestamp ?? null,
    phase,
    text: shorten(saidBy(event)),
    tone: event.type === "error" || event.success === false ? "bad" : "quiet",
    job: { id: job, seq: event.seq },
  };
}

function saidBy(event: Data<"job">["event"]): string {
  switch (event.type) {
    case "assistant":
      return event.content ?? "(thinks)";
    case "tool_use":
      return `${event.tool_name ?? "tool"} ${JSON.stringify(event.input ?? "")}`;
    case "tool_result":
      return event.error ?? (typeof event.result === "string" ? event.result : "(result)");
    case "error":
      return typeof event.message === "string" ? event.message : (event.code ?? "error");
    case "system":
      return (event.subtype ?? "system").replaceAll("_", " ");
  }
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}
