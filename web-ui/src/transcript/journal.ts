/** The lines of a job's journal (docs/formats/journal.md), as the API and a `.jsonl` file give them. */

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_creation_input_tokens?: number;
  cache_read_input_tokens?: number;
  cost_microusd?: number;
}

/** A text that the server shortened (`bodies=short`), and where the whole of it is. */
export interface Cut {
  field: string;
  size: number;
  url: string;
}

interface Line {
  seq: number;
  v?: number;
  epoch?: number;
  timestamp?: string | null;
  execution?: string | null;
  turn?: number | null;
  uuid?: string | null;
  parent_tool_use_id?: string | null;
  extra?: Record<string, unknown> | null;
  cut?: Cut[] | null;
}

interface MessageLine extends Line {
  message?: number | null;
  index?: number | null;
  end?: boolean;
}

export interface SystemEvent extends MessageLine {
  type: "system";
  subtype: string;
  content?: string | null;
}

export interface AssistantEvent extends MessageLine {
  type: "assistant";
  content?: string | null;
  thinking?: string | null;
  partial?: boolean | null;
  usage?: Usage | null;
}

export interface ToolUseEvent extends MessageLine {
  type: "tool_use";
  tool_name: string;
  tool_use_id?: string | null;
  input?: unknown;
}

/** All that a tool printed, where its result has only the beginning and the end. */
export interface FullOutput {
  sha256?: string;
  size?: number;
  left_out?: number;
  text?: string | null;
}

export interface ToolResultEvent extends MessageLine {
  type: "tool_result";
  tool_use_id?: string | null;
  result?: unknown;
  success?: boolean | null;
  error?: string | null;
  full_output?: FullOutput | null;
}

export interface ErrorEvent extends Line {
  type: "error";
  message: string;
  code?: string | null;
  stack?: string | null;
}

export type JournalEvent =
  SystemEvent | AssistantEvent | ToolUseEvent | ToolResultEvent | ErrorEvent;

/** A piece of an answer that is in no journal line yet. */
export interface TextDelta {
  epoch: number;
  /** The last recorded event when the piece was written. */
  after: number;
  /** The number of the text within the execution. */
  part: number;
  /** Characters of the part before this piece. */
  at: number;
  text: string;
}

const TYPES = new Set(["system", "assistant", "tool_use", "tool_result", "error"]);

/** Whether a parsed line is an event of the journal. */
export function isJournalEvent(value: unknown): value is JournalEvent {
  const line = asRecord(value);
  if (line === null || typeof line.seq !== "number" || typeof line.type !== "string") return false;
  if (line.type === "system") return typeof line.subtype === "string";
  if (line.type === "tool_use") return typeof line.tool_name === "string";
  return TYPES.has(line.type);
}

/** The value as an object with keys; null when it is none. */
export function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** The value if it is text, else an empty text. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The value if it is a finite number, else null. */
export function asNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** A body that is stored beside the journal, by the field it belongs to. */
export interface BlobNote {
  sha256: string;
  size: number;
  kind: string;
}

/** The note about a field whose body is stored as a blob; null when the line has it. */
export function blobOf(event: JournalEvent, field: string): BlobNote | null {
  const notes = asRecord(asRecord(event.extra?.$journal)?.blobs);
  const note = asRecord(notes?.[field]);
  if (note === null || typeof note.sha256 !== "string") return null;
  return { sha256: note.sha256, size: asNumber(note.size) ?? 0, kind: asText(note.kind) };
}

/** Where the whole of a field is when the page has only a part of it, or nothing. */
export function cutOf(event: JournalEvent, field: string): Cut | null {
  return event.cut?.find((cut) => cut.field === field) ?? null;
}

/** Whether the event gives the text of an answer of the agent itself: streamed pieces before it are void. */
export function isAboutAnswer(event: JournalEvent): boolean {
  if (event.parent_tool_use_id) return false;
  if (event.type === "tool_use") return true;
  if (event.type !== "assistant") return false;
  return !event.partial || event.extra?.cut_off === true;
}
