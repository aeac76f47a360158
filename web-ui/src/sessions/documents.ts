/** Documents about sessions: docs/formats/cli-json.md. */

import type { Schemas, SessionRow } from "../api/types";
import { quote } from "../job/shell_word";

export type SessionDocument = Schemas["SessionDocument"];
export type Family = Schemas["SessionFamily"];
export type FamilyNode = Schemas["FamilyNode"];
export type FamilyJob = Schemas["FamilyJob"];
export type FamilyEdge = Schemas["FamilyEdge"];
export type Message = Schemas["SessionMessage"];
export type Comparison = Schemas["ComparedSessions"];
export type Side = Schemas["SideDocument"];

/** The path of a session in the API. */
export function sessionPath(session: string): string {
  return `/sessions/${encodeURIComponent(session)}`;
}

/** What a session is called: its name, else the end of its id. */
export function titleOf(session: { id: string; name: string | null }): string {
  return session.name ?? session.id.replace(/^sess-/, "");
}

/** Whether a session never changes again. A job in it runs in a fork at its end. */
export function isOver(session: Pick<SessionRow, "status" | "removed_at">): boolean {
  return ["completed", "expired"].includes(session.status) || session.removed_at !== null;
}

/** Say why the agent's next job cannot continue in a session; null when it can. */
export function whyNotUsable(
  session: Pick<SessionRow, "mode" | "status" | "removed_at">,
): string | null {
  if (session.mode === "fresh_per_job") return "Each job of this agent begins a session of its own";
  return isOver(session) ? "The session is over; fork it" : null;
}

/** Which jobs come into a session by themselves. */
export function keyText(session: Pick<SessionRow, "mode" | "channel_id" | "schedule">): string {
  const parts = [session.mode.replaceAll("_", " ")];
  if (session.channel_id !== null) parts.push(`channel ${session.channel_id}`);
  if (session.schedule !== null) parts.push(`schedule ${session.schedule}`);
  return parts.join(", ");
}

const CLAUDE = ["cli", "sdk"];

/** The command that continues a session by hand; null for a runtime other than Claude, or before its first turn. */
export function resumeCommand(
  session: Pick<SessionRow, "runtime_type" | "runtime_session_id" | "working_directory">,
): string | null {
  const { runtime_type: runtime, runtime_session_id: id } = session;
  if (!CLAUDE.includes(runtime) || id === null) return null;
  return `cd ${quote(session.working_directory)} && claude --resume ${quote(id)}`;
}

/** Say a number of messages. */
export function messagesText(count: number): string {
  return count === 1 ? "1 message" : `${count} messages`;
}
