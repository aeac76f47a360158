/** Limits of a job as people type them: new maxima by name. */

import type { Schemas } from "../api/types";
import { countText, usdText } from "../ui/money";
import { spanText } from "../ui/time";

type LimitRow = Schemas["LimitRow"];

/** The limits that can be set for a job, with an example of each. */
export const LIMIT_NAMES = [
  ["spend", "2.50"],
  ["turns", "40"],
  ["tokens", "200000"],
  ["duration", "1h"],
  ["spawns", "5"],
  ["depth", "2"],
] as const;

/** Return what was typed, without what was left empty. */
export function givenLimits(typed: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(typed)
      .map(([name, value]) => [name, value.trim()] as const)
      .filter(([, value]) => value !== ""),
  );
}

/** Return an amount of a limit with its unit. */
export function amountText(limit: string, amount: number): string {
  if (limit === "spend") return usdText(amount);
  if (limit === "duration") return spanText(amount);
  return countText(amount);
}

/** Say what is used of a limit of the job itself, such as `3 of 40`; null when it has no such limit. */
export function usedText(limits: readonly LimitRow[], name: string): string | null {
  const row = limits.find(({ limit, scope }) => limit === name && scope === "job");
  if (row === undefined) return null;
  const used = row.used === null ? "?" : amountText(name, row.used);
  return `${used} of ${amountText(name, row.maximum)}`;
}
