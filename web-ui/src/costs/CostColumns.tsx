import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import type { Stack } from "./stack";

const TONES = ["bg-accent", "bg-busy", "bg-lost", "bg-wait", "bg-good", "bg-edge"];

/** Costs of each day, divided by group. A table has the same numbers: of days, or of the groups. */
export function CostColumns({ stack }: { stack: Stack }) {
  const { groups, columns, highest } = stack;
  const every = Math.ceil(columns.length / 5);
  return (
    <figure className="rounded-lg border border-line bg-panel p-3">
      <figcaption className="mb-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-soft">
        {groups.map((group, place) => (
          <span key={group} className="flex items-center gap-1.5 wrap-anywhere">
            <span aria-hidden className={classes("inline-block size-3 rounded-sm", TONES[place])} />
            {group}
          </span>
        ))}
        <span className="ml-auto text-faint">highest day {usdText(highest)}</span>
      </figcaption>
      <div
        role="img"
        aria-label={`Costs of ${columns.length} days, at most ${usdText(highest)} a day`}
        className="flex h-40 items-end gap-0.5"
      >
        {columns.map((column) => (
          <div
            key={column.day}
            title={titleOf(column.day, column.total, column.parts, groups)}
            className="flex h-full min-w-0 flex-1 flex-col-reverse rounded-t-sm bg-raised"
          >
            {column.parts.map((part, place) => (
              <div
                key={groups[place]}
                className={TONES[place]}
                style={{ height: highest === 0 ? 0 : `${(part / highest) * 100}%` }}
              />
            ))}
          </div>
        ))}
      </div>
      <div aria-hidden className="mt-1 flex gap-0.5 text-[0.7rem] text-faint">
        {columns.map((column, place) => (
          <span key={column.day} className="min-w-0 flex-1 overflow-visible whitespace-nowrap">
            {place % every === 0 ? dayText(column.day) : ""}
          </span>
        ))}
      </div>
    </figure>
  );
}

/** A day as people write it, such as `19 Nov`. */
function dayText(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

function titleOf(day: string, total: number, parts: readonly number[], groups: readonly string[]) {
  const lines = parts
    .map((part, place) => [part, groups[place] ?? ""] as const)
    .filter(([part]) => part > 0)
    .map(([part, group]) => `${group}: ${usdText(part)}`);
  return [`${day}: ${usdText(total)}`, ...lines].join("\n");
}
