/** What the transcript shows: one item for each thing that was said or done, made from journal events by `fold`. */

import type {
  AssistantEvent,
  ErrorEvent,
  JournalEvent,
  SystemEvent,
  ToolResultEvent,
  ToolUseEvent,
} from "./journal";

interface Base {
  /** Stays the same while more of the item becomes known. */
  key: string;
  /** The first event of the item: the permalink. */
  seq: number;
  /** The last event that belongs to the item. */
  lastSeq: number;
  at: string | null;
  turn: number | null;
  /** Whether a new turn begins here. */
  startsTurn: boolean;
  /** Whether `n` and `p` stop here. */
  isError: boolean;
  /** Changes when what is shown of the item changes. */
  revision: string;
}

/** What the agent was asked. */
export interface PromptItem extends Base {
  kind: "prompt";
  event: SystemEvent;
  text: string;
  /** `hand` when a person asked it outside nightherd. */
  by: string | null;
}

export interface AnswerItem extends Base {
  kind: "answer";
  event: AssistantEvent;
  text: string;
  thinking: string;
  isCutOff: boolean;
}

export interface Review {
  item: string;
  status: string;
  by: string | null;
  via: string | null;
  /** The arguments it runs with, where the person changed them. */
  input: unknown;
  seq: number;
}

/** A tool call with its result. Either may be outside the loaded part of the journal. */
export interface ToolItem extends Base {
  kind: "tool";
  call: ToolUseEvent | null;
  result: ToolResultEvent | null;
  reviews: Review[];
  denied: string | null;
  /** Descriptions of background work and the time it has taken so far. */
  progress: { text: string; elapsedMs: number | null } | null;
  /** What the subagent did that this call started. */
  children: Item[];
}

/** What a subagent did whose call is not in the loaded part. */
export interface SubagentItem extends Base {
  kind: "subagent";
  parent: string;
  children: Item[];
}

export type GapReason =
  | "crash"
  | "handover"
  | "limit"
  | "budget"
  | "rate_limit"
  | "approval"
  | "error"
  | "resumed"
  | "unknown";

/** Time in which no worker ran the job, and why. */
export interface GapItem extends Base {
  kind: "gap";
  reason: GapReason;
  text: string;
  from: string | null;
  to: string | null;
  worker: string | null;
}

/** The job waits: for a person, for a time, or for another job. */
export interface WaitItem extends Base {
  kind: "wait";
  event: SystemEvent;
  reason: string;
  code: string | null;
  text: string;
  until: string | null;
  /** When it continued; null while it waits, or when that is outside the loaded part. */
  resumedAt: string | null;
}

export type Severity = "info" | "warning" | "bad";

/** Something about the run itself: a checkpoint, a hook, a container, a warning. */
export interface NoticeItem extends Base {
  kind: "notice";
  event: SystemEvent;
  label: string;
  text: string;
  severity: Severity;
  /** Details that matter to few; shown on demand. */
  isQuiet: boolean;
}

export interface ErrorItem extends Base {
  kind: "error";
  event: ErrorEvent;
}

export interface EndItem extends Base {
  kind: "end";
  event: SystemEvent;
  status: string;
  exitReason: string;
}

/** Text of an answer that is arriving; not in the journal yet. */
export interface LiveItem extends Base {
  kind: "live";
  text: string;
}

/** A line that is no event of a known kind. It is shown as it is, never left out. */
export interface UnknownItem extends Base {
  kind: "unknown";
  event: JournalEvent;
}

export type Item =
  | PromptItem
  | AnswerItem
  | ToolItem
  | SubagentItem
  | GapItem
  | WaitItem
  | NoticeItem
  | ErrorItem
  | EndItem
  | LiveItem
  | UnknownItem;

/** The events of an item, for the raw view. */
export function eventsOf(item: Item): JournalEvent[] {
  switch (item.kind) {
    case "tool":
      return [item.call, item.result].filter((event) => event !== null);
    case "subagent":
    case "gap":
    case "live":
      return [];
    default:
      return [item.event];
  }
}
