/** Answers to inbox items: which there are, what they are called and what they do. */

import type { ItemDocument, ItemRow, Schemas } from "../api/types";
import { spanText, timeText } from "../ui/time";

export type Verdict = Schemas["Verdict"];

const YES: readonly Verdict[] = ["approve", "accept", "reply", "raise", "retry"];
const NO: readonly Verdict[] = ["reject", "dismiss"];

/** What a button of a verdict says. */
export const VERDICT_NAMES: Record<Verdict, string> = {
  approve: "Approve",
  accept: "Accept",
  reply: "Reply",
  raise: "Raise and continue",
  retry: "Retry",
  reject: "Reject",
  dismiss: "Dismiss",
  comment: "Comment",
};

/** What was done, for messages. */
export const VERDICT_DONE: Record<Verdict, string> = {
  approve: "approved",
  accept: "accepted",
  reply: "answered",
  raise: "limit raised",
  retry: "retried",
  reject: "rejected",
  dismiss: "dismissed",
  comment: "commented",
};

export const KIND_NAMES: Record<Schemas["ItemKind"], string> = {
  approval: "approval",
  question: "question",
  limit: "limit",
  failure: "failure",
  reload: "fleet file",
};

/** The answer that lets things go on. */
export function yesOf(item: Pick<ItemRow, "verdicts">): Verdict | null {
  return YES.find((verdict) => item.verdicts.includes(verdict)) ?? null;
}

/** The answer that does not. */
export function noOf(item: Pick<ItemRow, "verdicts">): Verdict | null {
  return NO.find((verdict) => item.verdicts.includes(verdict)) ?? null;
}

/** The limit that an error of a job names: `turns` of `turns_exceeded`. */
export function limitOfCode(code: unknown): string | null {
  return typeof code === "string" ? (/^([a-z]+)_exceeded$/.exec(code)?.[1] ?? null) : null;
}

const INSTANT = /\d{4}-\d{2}-\d{2}T[\d:.]+Z/g;

/** What each answer does, and what happens without one; times as the reader's clock shows them. */
export function effectsOf(
  item: Pick<ItemDocument, "what_happens">,
): { verdict: string; effect: string }[] {
  return Object.entries(item.what_happens).map(([verdict, effect]) => ({
    verdict,
    effect: effect.replace(INSTANT, timeText),
  }));
}

/** Say how long an item can still be answered; null when it waits for ever. */
export function expiryText(item: Pick<ItemRow, "expires_at">, now: number): string | null {
  if (item.expires_at === null) return null;
  const seconds = (Date.parse(item.expires_at) - now) / 1_000;
  return seconds > 0 ? `expires in ${spanText(seconds)}` : "expired";
}

/** Who has approved an item that several people have to approve. */
export function approvals(item: Pick<ItemDocument, "answers">): string[] {
  return item.answers.filter(({ verdict }) => verdict === "approve").map(({ by }) => by);
}

/** Say who an item waits for: an agent, a workflow or a file. */
export function askerOf(item: ItemRow): string {
  if (item.agent !== null) return item.agent;
  if (item.gate !== null) return `gate ${item.gate}`;
  if (item.kind === "reload") return item.subject.split("/").at(-1) ?? item.subject;
  return item.workflow_run_id ?? item.subject;
}
