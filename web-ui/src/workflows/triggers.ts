/** What starts a workflow, in words. */

import type { Schemas } from "../api/types";
import { spanText } from "../ui/time";

/** Return what starts a workflow, besides other workflows. */
export function triggersText(
  workflow: Pick<Schemas["SwitchedWorkflowRow"], "schedules" | "webhooks" | "chat" | "api">,
): string {
  const parts = [
    ...workflow.schedules.map((name) => `schedule ${name}`),
    ...workflow.webhooks.map((name) => `webhook ${name}`),
    ...(workflow.chat ? ["chat"] : []),
    ...(workflow.api ? ["by hand"] : ["not by hand"]),
  ];
  return parts.join(", ");
}

const SECONDS: Readonly<Record<string, number>> = { D: 86_400, H: 3_600, M: 60, S: 1 };

/** Return the seconds of a span of ISO 8601 such as `PT7200S` or `P1DT2H`. */
export function secondsOf(duration: string): number {
  const parts = [...duration.matchAll(/([\d.]+)([DHMS])/g)];
  return parts.reduce(
    (sum, [, amount = "0", unit = "S"]) => sum + Number(amount) * (SECONDS[unit] ?? 0),
    0,
  );
}

/** Return a span of ISO 8601 for people. */
export function durationText(duration: string): string {
  return spanText(secondsOf(duration));
}

/** Return the rule of a schedule. */
export function ruleText(schedule: Schemas["WorkflowSchedule"]): string {
  if (schedule.interval !== null) return `every ${durationText(schedule.interval)}`;
  return `${schedule.cron ?? ""} (${schedule.timezone})`;
}

/** Return how many runs there may be at once. */
export function concurrencyText({ max_runs, key, when_busy }: Schemas["Concurrency"]): string {
  if (max_runs === null) return "any number of runs at once";
  const runs = max_runs === 1 ? "1 run at once" : `${max_runs} runs at once`;
  const same = key === null ? "" : ` with the same ${key}`;
  return `${runs}${same}; ${BUSY[when_busy]}`;
}

const BUSY: Record<Schemas["Concurrency"]["when_busy"], string> = {
  queue: "a further one waits",
  drop: "a further one is not started",
  replace: "a further one cancels the oldest",
};
