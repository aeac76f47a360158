/** Costs by day and group as stacked columns. */

import type { Schemas } from "../api/types";

export type CostRow = Schemas["CostRow"];
/** What costs are divided by. Columns are days, and those of `day` have one part. */
export type Split = "agent" | "model" | "schedule" | "workflow" | "day";
export const SPLITS: readonly Split[] = ["agent", "model", "schedule", "workflow", "day"];
/** More groups cannot be told apart by their colours: the others are one. */
export const MOST_GROUPS = 5;
export const OTHERS = "others";

export interface Column {
  day: string;
  total: number;
  /** By group, in the order of `groups`. */
  parts: number[];
}

export interface Stack {
  groups: string[];
  columns: Column[];
  highest: number;
}

/** Return the group of a row; work without an agent's schedule, for example, is named so. */
export function groupOf(row: CostRow, split: Split): string {
  return row[split] ?? `no ${split}`;
}

/** Return the rows as a table shows them: days from the newest, other groups as they are, from the highest cost. */
export function tableOf(rows: readonly CostRow[], split: Split): CostRow[] {
  if (split !== "day") return [...rows];
  return rows.toSorted((left, right) => (right.day ?? "").localeCompare(left.day ?? ""));
}

/** Return one column for each day of the span, also for days without costs. */
export function stackOf(rows: readonly CostRow[], split: Split, days: readonly string[]): Stack {
  const totals = new Map<string, number>();
  const partOf = (row: CostRow) => (split === "day" ? "all" : groupOf(row, split));
  for (const row of rows) {
    const group = partOf(row);
    totals.set(group, (totals.get(group) ?? 0) + row.cost_usd);
  }
  const ranked = [...totals].sort(([, left], [, right]) => right - left).map(([group]) => group);
  const groups =
    ranked.length > MOST_GROUPS + 1 ? [...ranked.slice(0, MOST_GROUPS), OTHERS] : ranked;
  const columns = days.map((day): Column => {
    const parts = groups.map(() => 0);
    let total = 0;
    for (const row of rows) {
      if (row.day !== day) continue;
      const known = groups.indexOf(partOf(row));
      const place = known < 0 ? groups.length - 1 : known;
      parts[place] = (parts[place] ?? 0) + row.cost_usd;
      total += row.cost_usd;
    }
    return { day, total, parts };
  });
  return { groups, columns, highest: Math.max(0, ...columns.map(({ total }) => total)) };
}

/** Return the days from the first to the last, as `2026-11-18`. */
export function daysBetween(first: string, last: string, limit = 92): string[] {
  const days: string[] = [];
  const day = new Date(`${first}T00:00:00Z`);
  while (days.length < limit) {
    const text = day.toISOString().slice(0, 10);
    if (text > last) break;
    days.push(text);
    day.setUTCDate(day.getUTCDate() + 1);
  }
  return days;
}

/** Return the day of an instant in a time zone, as `2026-11-18`. */
export function dayIn(at: string, timeZone: string): string {
  return new Date(at).toLocaleDateString("sv-SE", { timeZone });
}
