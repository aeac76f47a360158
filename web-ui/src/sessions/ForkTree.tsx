import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useEffectEvent, useMemo, useRef, useState, type KeyboardEvent } from "react";

import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { IS_WIDE, useMedia } from "../ui/media";
import { JobState, State } from "../ui/Status";
import { Ago } from "../ui/time";
import { messagesText, titleOf, type Family } from "./documents";
import { treeOf, type TreeRow } from "./family_rows";
import { TreeLines } from "./TreeLines";
import type { Picked } from "./use_picked";

/** The family of a session: a row for each session and each of its jobs. Only rows that are seen are made. */
export function ForkTree({
  family,
  here,
  hasJobs,
  picks,
}: {
  family: Family;
  /** The session that is looked at. */
  here: string;
  hasJobs: boolean;
  picks: Picked;
}) {
  const { rows, lanes } = useMemo(() => treeOf(family, hasJobs), [family, hasJobs]);
  const isWide = useMedia(IS_WIDE);
  const height = isWide ? 32 : 46;
  const frame = useRef<HTMLDivElement>(null);
  const home = rows.findIndex((row) => row.kind === "session" && row.node.id === here);
  const [focused, setFocused] = useState<string | null>(null);
  const start = rows.findIndex(({ key }) => key === focused);
  const active = start < 0 ? Math.max(0, home) : start;
  // eslint-disable-next-line react-hooks/incompatible-library -- its rows are cheap to make
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => height,
    getItemKey: (at) => rows[at]?.key ?? at,
    overscan: 12,
  });
  const goHome = useEffectEvent(() => {
    if (home > 0) list.scrollToIndex(home, { align: "center" });
  });
  // Where the page begins, not whenever the family grows.
  useEffect(() => goHome(), [here]);
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = Math.min(rows.length - 1, Math.max(0, active + step));
    setFocused(rows[next]?.key ?? null);
    list.scrollToIndex(next);
    // The row may be made only after the scroll.
    requestAnimationFrame(() =>
      frame.current?.querySelector<HTMLElement>(`[data-at="${next}"] a`)?.focus(),
    );
  };
  return (
    <div
      ref={frame}
      onKeyDown={move}
      className="max-h-[55dvh] overflow-y-auto rounded-lg border border-line bg-panel"
    >
      <ol aria-label="Fork tree" className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const isHere = row.node.id === here;
          return (
            <li
              key={item.key}
              data-at={item.index}
              {...(row.kind === "session" && { "data-session": row.node.id })}
              aria-posinset={item.index + 1}
              aria-setsize={rows.length}
              {...(isHere && row.kind === "session" && { "aria-current": "true" })}
              className={classes(
                "absolute inset-x-0 top-0 flex items-center gap-2 pr-2 text-sm focus-within:bg-hover hover:bg-hover",
                isHere && "bg-accent-soft",
              )}
              style={{ height, transform: `translateY(${item.start}px)` }}
            >
              <TreeLines row={row} lanes={lanes} height={height} isHere={isHere} />
              <RowText row={row} isActive={item.index === active} isHere={isHere} picks={picks} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const STEPS: Record<string, number> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -100_000,
  End: 100_000,
};

function RowText({
  row,
  isActive,
  isHere,
  picks,
}: {
  row: TreeRow;
  isActive: boolean;
  isHere: boolean;
  picks: Picked;
}) {
  const tabIndex = isActive ? 0 : -1;
  if (row.kind === "rest") {
    return (
      <Link
        to={`/sessions/${row.node.id}`}
        tabIndex={tabIndex}
        className="truncate text-xs text-faint hover:underline"
      >
        {row.text}
      </Link>
    );
  }
  if (row.kind === "job") {
    const { job } = row;
    return (
      <>
        <Link
          to={`/jobs/${job.id}`}
          tabIndex={tabIndex}
          className="flex h-full min-w-0 flex-1 items-center gap-2 text-soft hover:underline"
        >
          <JobState job={{ ...job, waits_behind: null }} />
          <span className="truncate">
            {job.error?.message ?? job.summary ?? job.trigger_type.replaceAll("_", " ")}
          </span>
        </Link>
        <span className="shrink-0 text-xs text-faint tabular-nums">{rangeOf(row)}</span>
        <span className="hidden w-20 shrink-0 text-right text-xs text-faint tabular-nums md:inline">
          {usdText(job.cost_usd)}
        </span>
      </>
    );
  }
  const { node, edge } = row;
  return (
    <>
      <label className="grid size-11 shrink-0 place-items-center md:size-6">
        <input
          type="checkbox"
          tabIndex={tabIndex}
          aria-label={`Select ${titleOf(node)} to compare it`}
          checked={picks.picked.includes(node.id)}
          onChange={() => picks.toggle(node.id)}
        />
      </label>
      <Link
        to={`/sessions/${node.id}`}
        tabIndex={tabIndex}
        className={classes(
          "flex h-full min-w-0 items-center truncate hover:underline",
          isHere ? "font-semibold" : "font-medium",
        )}
      >
        {titleOf(node)}
      </Link>
      <State status={node.lost === null ? node.status : "lost"} />
      {node.is_current && (
        <span
          title="The next job of its agent continues here"
          className="shrink-0 rounded border border-accent px-1 text-xs text-accent"
        >
          current
        </span>
      )}
      {edge !== null && (
        <span className="truncate text-xs text-soft">fork after message {edge.message}</span>
      )}
      <span className="ml-auto hidden shrink-0 text-xs text-faint tabular-nums md:inline">
        {messagesText(node.message_count)} · {usdText(node.cost_usd)} ·{" "}
        <Ago at={node.last_active_at} />
      </span>
    </>
  );
}

function rangeOf({ job }: Extract<TreeRow, { kind: "job" }>): string {
  if (job.messages === 0) return "no messages";
  const last = job.first_message + job.messages - 1;
  return job.messages === 1 ? `#${last}` : `#${job.first_message}–${last}`;
}
