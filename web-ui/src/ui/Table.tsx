import type { ReactNode } from "react";

import { classes } from "./classes";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  isNumber?: boolean;
}

/** Rows with a heading for each column; a table that is too wide scrolls by itself. */
export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
}: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}) {
  return (
    <div
      role="region"
      aria-label={label}
      tabIndex={0}
      className="overflow-x-auto rounded-lg border border-line bg-panel"
    >
      <table className="w-full text-sm">
        <thead className="border-b border-line text-left text-xs text-faint">
          <tr>
            {columns.map(({ head, isNumber }) => (
              <th
                key={head}
                scope="col"
                className={classes("px-3 py-1.5 font-medium", isNumber && "text-right")}
              >
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className="border-b border-line align-top last:border-0">
              {columns.map(({ head, cell, isNumber }) => (
                <td
                  key={head}
                  className={classes(
                    "px-3 py-1.5",
                    isNumber ? "text-right whitespace-nowrap tabular-nums" : "wrap-break-word",
                  )}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
