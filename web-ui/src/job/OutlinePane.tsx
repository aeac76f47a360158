import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { classes } from "../ui/classes";
import { spanText, useNow } from "../ui/time";
import { isOpen, type Outline } from "./documents";
import { outlineRows, type OutlineRow } from "./outline_rows";
import type { Progress } from "./timeline";

const ROW =
  "flex min-h-9 w-full flex-col justify-center px-3 py-1 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2";

/** The job from beginning to end as a list; each row leads to its place in the transcript. */
export function OutlinePane({
  outline,
  progress,
  onGo,
}: {
  outline: Outline;
  progress: Progress | null;
  onGo: (seq: number) => void;
}) {
  const now = useNow();
  const end = isOpen(outline) ? now : 0;
  const rows = useMemo(() => outlineRows(outline, end, progress), [outline, end, progress]);
  if (rows.length === 0) return <p className="p-3 text-sm text-faint">Nothing has happened yet.</p>;
  return (
    <ol aria-label="Outline" className="flex flex-col py-1">
      {rows.map((row) => (
        <li key={row.key} className={classes(row.kind === "gap" && "hatched")}>
          {row.job === null ? (
            <button type="button" className={ROW} onClick={() => row.seq !== null && onGo(row.seq)}>
              <Line row={row} />
            </button>
          ) : (
            <Link to={`/jobs/${row.job}`} className={ROW}>
              <Line row={row} />
            </Link>
          )}
        </li>
      ))}
    </ol>
  );
}

function Line({ row }: { row: OutlineRow }) {
  return (
    <>
      <span className="flex w-full items-baseline gap-2">
        <span
          className={classes(
            "min-w-0 [overflow-wrap:anywhere]",
            row.kind === "gap" && "text-wait",
            row.kind === "child" && "text-lost",
            row.kind === "open" && "text-busy",
          )}
        >
          {row.kind === "child" && "↳ "}
          {row.name}
        </span>
        <span className="ml-auto shrink-0 text-xs text-faint">{spanText(row.seconds)}</span>
      </span>
      {(row.detail !== "" || row.errors > 0) && (
        <span className="flex w-full gap-2 text-xs text-faint">
          <span className="min-w-0 truncate">{row.detail}</span>
          {row.errors > 0 && (
            <span className="ml-auto shrink-0 text-bad">
              {row.errors === 1 ? "1 error" : `${row.errors} errors`}
            </span>
          )}
        </span>
      )}
    </>
  );
}
